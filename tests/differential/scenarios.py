"""The scenarios: what a file says about one queue, and how a client treats the message that it takes from there.

Each is played on the real broker that has the file, and on the embedded broker that has the same one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

Manner: TypeAlias = Literal[
    "modified-failed",
    "modified",
    "undeliverable",  # modified, undeliverable-here; then the link is closed, and there is another one
    "released",
    "rejected",
    "close-link",
    "close-connection",
    "stomp-drop",
    "stomp-disconnect",
    "stomp-unsubscribe",
    "stomp-nack",
    "stomp-ack-abort",
    "leave",  # nobody takes it
    "stomp-leave",
]


@dataclass(frozen=True, slots=True)
class Scenario:
    """``file``: a name in `files`. ``queue``: its own, which that file knows. ``most``: deliveries, then it is enough.

    ``ttl``: milliseconds. ``dead``: where its dead letters are read. ``sends``: how many messages. ``tolerance``:
    milliseconds that the real broker may deliver later than its rules say, the step of its timers. ``patience``:
    seconds without a message until there is none. ``differs``: why the embedded broker does otherwise.
    """

    name: str
    file: str
    queue: str
    manner: Manner = "modified-failed"
    most: int = 12
    ttl: int = 0
    durable: bool = True
    dead: tuple[str, ...] = ()
    sends: int = 1
    tolerance: int = 150
    patience: float = 0.6
    says: str = ""
    differs: str = ""


def _artemis(name: str, says: str, manner: Manner = "modified-failed", **more: object) -> Scenario:
    queue = f"a.{name}"
    fields: dict[str, object] = {"dead": (f"DLA.{queue}",), **more}
    return Scenario(f"artemis {name}", "artemis", queue, manner, says=says, **fields)  # type: ignore[arg-type]  # handed through


DOUBLING: Final = {"redelivery-delay": 100, "redelivery-delay-multiplier": 2, "max-redelivery-delay": 300}
ADDRESSES: Final[Mapping[str, Mapping[str, object]]] = {
    "doubling": {**DOUBLING, "max-delivery-attempts": 5},
    "default-maximum": {"redelivery-delay": 20, "redelivery-delay-multiplier": 4, "max-delivery-attempts": 5},
    "three": {"max-delivery-attempts": 3},
    "ten": {},
    "endless": {"max-delivery-attempts": -1},
    "delayed-endless": {"redelivery-delay": 50, "max-delivery-attempts": -1},
    "removed": {"max-delivery-attempts": 3, "dead-letter-address": None},
    "unbound": {"max-delivery-attempts": 2, "dead-letter-address": "NOBODY"},
    "created": {"max-delivery-attempts": 2, "dead-letter-address": "DLC", "auto-create-dead-letter-resources": "true"},
    "suffixed": {
        "max-delivery-attempts": 2,
        "dead-letter-address": "DLC",
        "auto-create-dead-letter-resources": "true",
        "dead-letter-queue-prefix": "",
        "dead-letter-queue-suffix": ".DLQ",
    },
    "released": {"redelivery-delay": 100, "redelivery-delay-multiplier": 2, "max-delivery-attempts": 3},
    "modified": {"redelivery-delay": 100, "max-delivery-attempts": 3},
    "undeliverable": {"redelivery-delay": 100, "max-delivery-attempts": 3},
    "rejected": {"redelivery-delay": 300, "max-delivery-attempts": 5},
    "rejected-removed": {"dead-letter-address": None},
    "link": {"redelivery-delay": 300, "max-delivery-attempts": 3},
    "connection": {"redelivery-delay": 300, "max-delivery-attempts": 3},
    "stomp-drop": {"redelivery-delay": 100, "max-delivery-attempts": 3},
    "stomp-disconnect": {"redelivery-delay": 100, "max-delivery-attempts": 3},
    "stomp-unsubscribe": {"redelivery-delay": 300, "max-delivery-attempts": 3},
    "stomp-nack": {"max-delivery-attempts": 3},
    "stomp-ack-abort": {"max-delivery-attempts": 3},
    "overtaken": {"redelivery-delay": 200, "max-delivery-attempts": 3},
    "expired": {"expiry-address": "EXP.a.expired"},
    "expired-removed": {"expiry-address": None},
    "expiry-delay": {"expiry-delay": 300, "expiry-address": "EXP.a.expiry-delay"},
    "expiry-delay-own": {"expiry-delay": 5000, "expiry-address": "EXP.a.expiry-delay-own"},
    "max-expiry": {"max-expiry-delay": 300, "expiry-address": "EXP.a.max-expiry"},
    "expired-in-delay": {"redelivery-delay": 1500, "expiry-address": "EXP.a.expired-in-delay"},
}
# Patterns of which several match an address.
MATCHES: Final[Mapping[str, Mapping[str, object]]] = {
    "a.merged.#": {"redelivery-delay": 120, "max-delivery-attempts": 7},
    "a.merged.x": {"max-delivery-attempts": 3, "dead-letter-address": "DLA.a.merged.x"},
    "a.star.#": {"max-delivery-attempts": 4, "dead-letter-address": "DLA.a.star.x"},
    "a.star.*": {"max-delivery-attempts": 2},
}
ARTEMIS: Final = (
    _artemis("doubling", "100 ms, doubled, at most 300; 5 deliveries"),
    _artemis("default-maximum", "20 ms times 4; the maximum is ten times 20"),
    _artemis("three", "3 deliveries at once"),
    _artemis("ten", "10 deliveries by default"),
    _artemis("endless", "-1: without an end", most=15),
    _artemis("delayed-endless", "-1, with a delay", most=8),
    _artemis("removed", "no dead-letter-address"),
    _artemis("unbound", "a dead-letter-address without a queue", dead=("NOBODY",)),
    _artemis("created", "auto-create-dead-letter-resources", dead=("DLC::DLQ.a.created",)),
    _artemis("suffixed", "its prefix and suffix", dead=("DLC::a.suffixed.DLQ",)),
    _artemis("released", "released: waits the first delay, uncounted", "released", most=4),
    _artemis("modified", "modified without delivery-failed: likewise", "modified", most=4),
    _artemis("undeliverable", "undeliverable-here: to the next link, uncounted", "undeliverable", most=4),
    _artemis("rejected", "rejected: a dead letter at once", "rejected"),
    _artemis("rejected-removed", "rejected without a dead-letter-address", "rejected"),
    _artemis("link", "the link is closed", "close-link", most=5),
    _artemis("connection", "the connection is closed", "close-connection", most=5),
    _artemis("stomp-drop", "STOMP: the connection is dropped", "stomp-drop"),
    _artemis("stomp-disconnect", "STOMP: DISCONNECT", "stomp-disconnect"),
    _artemis("stomp-unsubscribe", "STOMP: UNSUBSCRIBE", "stomp-unsubscribe", most=5),
    _artemis("stomp-nack", "STOMP: NACK", "stomp-nack"),
    _artemis("stomp-ack-abort", "STOMP: ACK in a transaction that is aborted", "stomp-ack-abort"),
    _artemis("overtaken", "later messages overtake", sends=3),
    _artemis("expired", "expires, to its expiry-address", "leave", ttl=100, dead=("EXP.a.expired",)),
    _artemis("expired-removed", "expires, without one", "leave", ttl=100, dead=("EXP.a.expired-removed",)),
    _artemis("expiry-delay", "expiry-delay for what has no time to live", "leave", dead=("EXP.a.expiry-delay",)),
    _artemis("expiry-delay-own", "it has one", "leave", ttl=200, dead=("EXP.a.expiry-delay-own",)),
    _artemis("max-expiry", "max-expiry-delay for what has none", "leave", dead=("EXP.a.max-expiry",)),
    _artemis("merged.x", "two matches, merged field by field"),
    _artemis("star.x", "* comes before #"),
    _artemis("expired-in-delay", "expires while it waits", ttl=500, most=1, dead=("EXP.a.expired-in-delay",)),
)


JMS_ADDRESSES: Final[Mapping[str, Mapping[str, object]]] = {
    "three": {"dead-letter-address": "jms.queue.DLA.h.three", "max-delivery-attempts": 3},
    "delayed": {
        "dead-letter-address": "jms.queue.DLA.h.delayed",
        "redelivery-delay": 200,
        "redelivery-delay-multiplier": 2,
        "max-redelivery-delay": 500,
        "max-delivery-attempts": 4,
    },
    "removed": {"max-delivery-attempts": 2},
    "endless": {"max-delivery-attempts": -1},
    "expiry-delay": {"expiry-delay": 300, "expiry-address": "jms.queue.EXP.h.expiry-delay"},
}


def _hornetq(name: str, says: str, manner: Manner = "stomp-disconnect", **more: object) -> Scenario:
    fields: dict[str, object] = {"dead": (f"DLA.h.{name}",), **more}
    return Scenario(f"hornetq {name}", "hornetq", f"h.{name}", manner, says=says, **fields)  # type: ignore[arg-type]  # handed through


HORNETQ: Final = (
    _hornetq("three", "3 deliveries, each ended by DISCONNECT"),
    _hornetq("delayed", "200 ms, doubled, at most 500", patience=1.0),
    _hornetq("removed", "no dead-letter-address"),
    _hornetq("endless", "-1: without an end", most=6),
    _hornetq(
        "expiry-delay",
        "expiry-delay for what has no time to live",
        "stomp-leave",
        dead=("EXP.h.expiry-delay",),
        patience=1.5,
    ),
)


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
    _classic("classic-discarding", "kept", "dropOnly does not match"),
    _classic("classic-discarding", "drop.123", "dropOnly matches as a whole"),
    _classic("classic-discarding", "drop.1234x", "dropOnly matches a part"),
    _classic("classic-redelivery", "special", "redeliveryPlugin: 1000 ms, three times", tolerance=600, patience=2.5),
    _classic("classic-redelivery", "none", "no policy matches: fallbackToDeadLetter"),
    _classic(
        "classic-redelivery",
        "volatile.special",
        "non-persistent: redelivered, then removed",
        durable=False,
        tolerance=600,
        patience=2.5,
    ),
)


GONE: Final = (
    _classic("classic-gone", "special", "sendToDlqIfMaxRetriesExceeded=false", tolerance=600, patience=2.5),
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


def _broker_j(
    name: str, says: str, manner: Manner = "modified-failed", *, file: str = "broker-j", **more: object
) -> Scenario:
    queue = f"j.{name}"
    fields: dict[str, object] = {"dead": (f"{queue}_DLQ",), "durable": False, **more}
    return Scenario(f"{file} {name}", file, queue, manner, says=says, **fields)  # type: ignore[arg-type]  # handed through


QUEUES: Final[Mapping[str, Mapping[str, object]]] = {
    "three": {"maximumDeliveryAttempts": 3, "dead": True},
    "discarded": {"maximumDeliveryAttempts": 3},
    "of-host": {"dead": True},
    "off": {"maximumDeliveryAttempts": 0, "dead": True},
    "released": {"maximumDeliveryAttempts": 3, "dead": True},
    "undeliverable": {"maximumDeliveryAttempts": 3, "dead": True},
    "rejected": {"maximumDeliveryAttempts": 3, "dead": True},
    "link": {"maximumDeliveryAttempts": 3, "dead": True},
    "connection": {"maximumDeliveryAttempts": 3, "dead": True},
    "expired": {"expiryPolicy": "DELETE", "dead": True},
}
BROKER_J: Final = (
    _broker_j("three", "3 deliveries, then the alternate binding"),
    _broker_j("discarded", "3 deliveries, and no alternate binding"),
    _broker_j("of-host", "the virtual host's maximum of 5"),
    _broker_j("off", "0 at the queue wins over the virtual host's 5", most=9),
    _broker_j("released", "released does not count", "released", most=6),
    _broker_j("undeliverable", "undeliverable-here: to the next link, uncounted", "undeliverable", most=4),
    _broker_j("rejected", "rejected is a counted redelivery", "rejected"),
    _broker_j("link", "a closed link counts", "close-link"),
    _broker_j("connection", "a closed connection counts", "close-connection"),
    _broker_j("expired", "an expired message is deleted", "leave", ttl=100, patience=1.0),
)
# ``dead`` is false: there is such a queue, which it does not name.
BOUND: Final[Mapping[str, Mapping[str, object]]] = {
    "by-name": {"maximumDeliveryAttempts": 2, "dead": True},
    "by-placeholder": {"maximumDeliveryAttempts": 2, "dead": False},
}
BOUND_BY_DEFAULT: Final = (
    _broker_j("by-name", "an alternate binding of its own", file="broker-j-bound"),
    _broker_j("by-placeholder", "${this:name} in queue.defaultAlternateBinding does not route", file="broker-j-bound"),
)
SCENARIOS: Final = (*ARTEMIS, *HORNETQ, *CLASSIC, *GONE, *INDIVIDUAL, *BROKER_J, *BOUND_BY_DEFAULT)


@dataclass(slots=True)
class Played:
    """What a client saw. ``deliveries``: body and count of each; ``waits``: milliseconds before each but the first.

    ``dead``: the bodies of dead letters by where they were, with what says their origin. ``left``: what is still there.
    """

    deliveries: list[tuple[str, int]] = field(default_factory=list)
    waits: list[int] = field(default_factory=list)
    dead: list[tuple[str, str, str]] = field(default_factory=list)
    left: int = 0
