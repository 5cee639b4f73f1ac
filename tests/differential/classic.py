"""The scenarios on ActiveMQ Classic."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tests.differential.scenario import Manner, Scenario


def _classic(file: str, name: str, says: str, manner: Manner = "rejected", **more: object) -> Scenario:
    fields: dict[str, object] = {"dead": ("ActiveMQ.DLQ",), **more}
    return Scenario(f"{file} {name}", file, f"c.{name}", manner, says=says, **fields)  # type: ignore[arg-type]  # handed through


CLASSIC: Final = (
    _classic("classic", "failed", "failures have no limit", "modified-failed", most=9),
    _classic("classic", "released", "released", "released", most=5),
    _classic("classic", "rejected", "a poison acknowledgement"),
    _classic("classic", "undeliverable", "undeliverable-here: a dead letter", "undeliverable"),
    _classic("classic", "nack", "STOMP: NACK", "stomp-nack"),
    _classic("classic", "volatile", "non-persistent: removed", durable=False),
    _classic("classic", "individual.eu", "individualDeadLetterStrategy", dead=("DLQ.c.individual.eu",)),
    _classic("classic", "volatile-kept", "processNonPersistent", durable=False, dead=("DLQ.c.volatile-kept",)),
    _classic("classic", "expired", "an expired message", "leave", ttl=100, patience=2.5),
    _classic("classic", "expired-removed", "processExpired=false", "leave", ttl=100, patience=2.5),
    _classic(
        "classic",
        "link",
        "the link is closed",
        "close-link",
        most=5,
        differs="Classic forgets the count when a link is closed; the embedded broker keeps it, as JMS asks for",
    ),
    _classic("classic", "connection", "the connection is closed", "close-connection", most=5),
    replace(
        _classic("classic", "nack-volatile-kept", "processNonPersistent: originalDeliveryMode", "stomp-nack"),
        queue="c.volatile-kept",
        durable=False,
        dead=("DLQ.c.volatile-kept",),
    ),
    _classic("classic", "expiring", "expiration of a strategy, on its dead letters", dead=("DLQ.c.expiring",)),
    replace(
        _classic("classic", "nack-expiring", "the same, without originalExpiration", "stomp-nack"),
        queue="c.expiring",
        dead=("DLQ.c.expiring",),
    ),
    _classic("classic", "nack-expired", "an expired message: cause and time", "stomp-leave", ttl=100, patience=2.5),
    replace(
        _classic("classic", "own", "a dead letter that fails in ActiveMQ.DLQ itself: removed", "stomp-nack"),
        queue="ActiveMQ.DLQ",
    ),
    _classic(
        "classic",
        "durable",
        "destinationPerDurableSubscriber",
        "stomp-durable-nack",
        dead=("DLQ.c.durable.client:own.end",),
    ),
    _classic(
        "classic", "durable-volatile", "a durable subscription, non-persistent", "stomp-durable-nack", durable=False
    ),
    _classic("classic", "pair", "two durable subscriptions refuse one message", "stomp-durable-pair-nack"),
    _classic("classic-discarding", "kept", "dropOnly does not match"),
    _classic("classic-discarding", "drop.123", "dropOnly matches as a whole"),
    _classic("classic-discarding", "drop.1234x", "dropOnly matches a part"),
    _classic(
        "classic-redelivery",
        "special",
        "redeliveryPlugin: 1000 ms, three times",
        delays=(1000,),
        tolerance=600,
        patience=2.5,
    ),
    _classic(
        "classic-redelivery",
        "endless",
        "redeliveryPlugin: maximumRedeliveries=-1",
        most=8,
        delays=(1000,),
        tolerance=600,
        patience=2.5,
    ),
    _classic(
        "classic-redelivery",
        "exponential",
        "redeliveryPlugin: 1000 ms, doubled, at most 3000",
        delays=(1000, 2000, 3000),
        tolerance=600,
        patience=4.5,
    ),
    replace(
        _classic(
            "classic-redelivery",
            "order",
            "redeliveryPlugin: the second message overtakes the first",
            sends=2,
            delays=(None,),
            patience=2.5,
        ),
        queue="c.special",
    ),
    replace(
        _classic(
            "classic-redelivery",
            "nack",
            "redeliveryPlugin over STOMP: what it writes",
            "stomp-nack",
            delays=(1000,),
            tolerance=600,
            patience=2.5,
        ),
        queue="c.special",
    ),
    _classic(
        "classic-redelivery",
        "expired.special",
        "redeliveryPlugin: expired, a dead letter at once",
        "leave",
        ttl=100,
        patience=2.5,
    ),
    _classic("classic-redelivery", "none", "no policy matches: fallbackToDeadLetter"),
    _classic(
        "classic-redelivery",
        "volatile.special",
        "non-persistent: redelivered, then removed",
        durable=False,
        delays=(1000,),
        tolerance=600,
        patience=2.5,
    ),
)


GONE: Final = (
    _classic(
        "classic-gone", "special", "sendToDlqIfMaxRetriesExceeded=false", delays=(1000,), tolerance=600, patience=2.5
    ),
    _classic("classic-gone", "none", "no policy matches, and fallbackToDeadLetter=false"),
)
INDIVIDUAL: Final = (
    _classic("classic-individual", "any", "an individual strategy on >", dead=("DLQ.c.any",)),
    replace(
        _classic("classic-individual", "looped", "what fails in a dead-letter queue", dead=("DLQ.DLQ.c.looped",)),
        queue="DLQ.c.looped",
    ),
    _classic(
        "classic-individual",
        "topic",
        "useQueueForQueueMessages=false, with a subscriber",
        dead=("topic://DLQ.c.topic", "DLQ.c.topic"),
    ),
)
