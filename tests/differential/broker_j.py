"""What Broker-J has in its files, and the scenarios on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.differential.scenario import Manner, Scenario


def _broker_j(
    name: str, says: str, manner: Manner = "modified-failed", *, file: str = "broker-j", **more: object
) -> Scenario:
    queue = f"j.{name}"
    fields: dict[str, object] = {"dead": (f"{queue}_DLQ",), "durable": False, **more}
    return Scenario(f"{file} {name}", file, queue, manner, says=says, **fields)  # type: ignore[arg-type]  # handed through


# The exchanges, each with its type and the binding keys of its queues.
EXCHANGES: Final = {
    "fanned": ("fanout", {"j.fanout_DLQ": "any"}),
    "directed": ("direct", {"j.direct_DLQ": "j.direct", "j.later_DLQ": "another"}),
}
MADE: Final = {"published": "createdOnPublish", "consumed": "createdOnConsume"}  # the queues of these names
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
    "drop": {"maximumDeliveryAttempts": 3, "dead": True},
    "prefetched": {"maximumDeliveryAttempts": 3, "dead": True},
    "expired": {"expiryPolicy": "DELETE", "dead": True},
    "expired-routed": {"expiryPolicy": "ROUTE_TO_ALTERNATE", "dead": True},
    # ``alternate``: what it names instead; ``after``: a queue that stands behind it in the file.
    "gone": {"maximumDeliveryAttempts": 2, "alternate": "j.gone_DLQ"},
    "gone-expired": {"expiryPolicy": "ROUTE_TO_ALTERNATE", "maximumMessageTtl": 300, "alternate": "j.gone-expired_DLQ"},
    "later": {"maximumDeliveryAttempts": 2, "alternate": "j.later_DLQ", "after": "j.later_DLQ"},
    "published": {"maximumDeliveryAttempts": 2, "alternate": "published.DLQ"},
    "consumed": {"maximumDeliveryAttempts": 2, "alternate": "consumed.DLQ"},
    "fanout": {"maximumDeliveryAttempts": 2, "alternate": "fanned", "after": "j.fanout_DLQ"},
    "direct": {"maximumDeliveryAttempts": 2, "alternate": "directed", "after": "j.direct_DLQ"},
    "unbound": {"maximumDeliveryAttempts": 2, "alternate": "amq.fanout"},
    "max-ttl-routed": {"expiryPolicy": "ROUTE_TO_ALTERNATE", "maximumMessageTtl": 300, "dead": True},
}
BROKER_J: Final = (
    _broker_j("three", "3 deliveries, then the alternate binding"),
    _broker_j("discarded", "3 deliveries, and no alternate binding"),
    _broker_j("of-host", "the virtual host's maximum of 5"),
    _broker_j("off", "0 at the queue wins over the virtual host's 5", most=9),
    _broker_j("released", "released does not count", "released", most=6),
    _broker_j(
        "undeliverable", "undeliverable-here: to the next link, uncounted", "undeliverable", most=4, delays=(600,)
    ),  # its patience
    _broker_j("rejected", "rejected is a counted redelivery", "rejected"),
    _broker_j("link", "a closed link counts", "close-link"),
    _broker_j("connection", "a closed connection counts", "close-connection"),
    _broker_j("drop", "a dropped connection counts, other than Qpid's document says", "drop"),
    _broker_j(
        "prefetched",
        "a dropped connection counts for prefetched messages too, which nobody looked at",
        "drop",
        sends=3,
        prefetch=3,
    ),
    _broker_j("gone", "an alternate binding to a queue that is not there"),
    _broker_j("gone-expired", "the same, of what expires", "leave", patience=1.5),
    _broker_j("later", "an alternate binding to a queue that stands behind it in the file"),
    _broker_j("published", "to a queue that is made when something is sent to it", dead=("published.DLQ",)),
    _broker_j("consumed", "to one that is made when something is consumed from it", dead=("consumed.DLQ",)),
    _broker_j("fanout", "to a fanout exchange"),
    _broker_j("direct", "to a direct exchange: a dead letter has no routing key", dead=("j.direct_DLQ",)),
    _broker_j("unbound", "to an exchange to which no queue is bound"),
    _broker_j("expired", "an expired message is deleted", "leave", ttl=100, patience=1.0),
    _broker_j(
        "expired-routed",
        "ROUTE_TO_ALTERNATE of what has a time to live: it is expired in the alternate queue too",
        "leave",
        ttl=100,
        patience=1.0,
    ),
    _broker_j("max-ttl-routed", "ROUTE_TO_ALTERNATE by maximumMessageTtl", "leave", patience=1.5),
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
