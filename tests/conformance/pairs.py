"""The pairs of transport and broker that the suite runs over, what each cannot do, and what we emulate there.

Where a pair cannot do a thing, the test asserts that a clear error says so, or skips; the reason stands here, once.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from redelivery.broker import EmbeddedBroker

# Where our copies go, unless the application names another queue; on Classic the broker's own dead letters as well.
DEAD_LETTERS = "ActiveMQ.DLQ"

_NO_IDS: Mapping[str, str] = {"duplicate ids": "the broker does not drop what is sent twice"}
_STOMP: Mapping[str, str] = {
    "stream": "STOMP has no frame for a StreamMessage",
    "exact counts": "STOMP carries a redelivered flag, no delivery count",
    "typed properties": "STOMP headers are strings",
    "temporary destinations": "made over AMQP and vm only: over STOMP each broker has rules of its own",
    "NUL in a text body": "a STOMP text body has no length, it ends at the first NUL",
}
_CLASSIC_STOMP: Mapping[str, str] = {
    **_STOMP,
    **_NO_IDS,
    "the count of an unseen message": "with the consumer all that was prefetched counts as delivered",
    "group id": "ActiveMQ does not write JMSXGroupID on a STOMP message, nor does the embedded broker",
}
_EMBEDDED: Mapping[str, str] = {
    **_NO_IDS,
    "selectors": "the embedded broker has none yet",
    "refusals": "the embedded broker refuses nothing by itself; tests/faults makes it",
}
_VM: Mapping[str, str] = {**_EMBEDDED, "a lost connection": "within one process there is none to lose"}
_CLASSIC_AMQP: Mapping[str, str] = {
    **_NO_IDS,
    "the count of an unseen message": "a delivery counts only with the end of its session, and then all prefetched do: "
    "it comes as redelivered, with a count of 2, which its redelivery limit ignores",
    "exact counts": "the broker's count is too high: 2 for what was delivered before, or what this process saw",
}
_ONE_QUEUE: Mapping[str, str] = {"queue patterns": "a consumer takes from one queue there"}
_NO_INDIVIDUAL: Mapping[str, str] = {"individual dead letters": "only ActiveMQ has a strategy per destination"}
_PRIORITIES: Mapping[str, str] = {"arrival order whatever the priority": "the broker delivers what is urgent first"}
_NO_BROWSING: Mapping[str, str] = {"browsing": "asked to browse, the broker hands the messages out to be consumed"}
_HANGS_UP: Mapping[str, str] = {"a connection that survives a refusal": "the broker ends it with an ERROR"}
_OTHER_STOMP: Mapping[str, str] = {
    **_STOMP,
    **_ONE_QUEUE,
    **_NO_INDIVIDUAL,
    "map": "only ActiveMQ has a form of a MapMessage for STOMP",
}
_ARTEMIS_STOMP: Mapping[str, str] = {
    **_OTHER_STOMP,
    **_PRIORITIES,
    **_HANGS_UP,
    **_NO_BROWSING,
    "counts after a lost connection": "Artemis tells by chance whether a message was delivered before",
    "redelivered after a close": "UNSUBSCRIBE releases what was delivered without a flag",
}
_ARTEMIS_AMQP: Mapping[str, str] = {
    **_ONE_QUEUE,
    **_NO_INDIVIDUAL,
    **_PRIORITIES,
    "counts after a lost connection": "Artemis counts only where the socket was reset, not where it was closed",
    "a topic and a queue of one name": "an address is one or the other, unless it is set up as both",
}
_HORNETQ_STOMP: Mapping[str, str] = {
    **_OTHER_STOMP,
    **_PRIORITIES,
    **_NO_BROWSING,
    "counts after a lost connection": "HornetQ tells by chance whether a message was delivered before",
    "redelivered after a close": "UNSUBSCRIBE releases what was delivered without a flag",
    "batches beyond the window": "HornetQ's window is 10 KiB; further subscriptions may change the order, or hold "
    "messages back until they end",
    "large bodies": "HornetQ confirms and then loses a STOMP body of more than about 100 KB",
}
_RABBITMQ: Mapping[str, str] = {
    **_NO_IDS,
    **_ONE_QUEUE,
    **_NO_INDIVIDUAL,
    **_HANGS_UP,
    **_NO_BROWSING,
    "the count of an unseen message": "whatever comes back to a queue counts as delivered",
    "selectors": "RabbitMQ ignores them",
    "delayed delivery": "RabbitMQ has none without a further plug-in",
}
_RABBITMQ_AMQP: Mapping[str, str] = {
    **_RABBITMQ,
    "temporary destinations": "RabbitMQ's plug-in for AMQP 1.0 makes no dynamic nodes",
    "transactions": "RabbitMQ's plug-in for AMQP 1.0 refuses a coordinator",
    "exact counts": "RabbitMQ's classic queues tell whether a message was delivered before, not how often",
}
_QPID: Mapping[str, str] = {
    **_NO_IDS,
    "temporary topics": "Broker-J makes a queue of a dynamic topic",
    **_ONE_QUEUE,
    **_NO_INDIVIDUAL,
    "delayed delivery": "Broker-J has it only for queues with holdOnPublish, and refuses the message elsewhere",
}


@dataclass(frozen=True, slots=True)
class Kind:
    """One row of the table.

    ``protocol``: vm, stomp or amqp. ``broker``: the fixture of a real one, shared by all tests and slower; None: the
    embedded one, new for each test. ``cannot``: features by name, with the reason. ``emulates``: features that the
    broker lacks and we make up for, with how. ``own_dead_letters``: where the broker itself puts what it gives up.
    """

    name: str
    protocol: str
    broker: str | None = None
    cannot: Mapping[str, str] = field(default_factory=dict)
    emulates: Mapping[str, str] = field(default_factory=dict)
    own_dead_letters: str | None = DEAD_LETTERS

    @property
    def remote(self) -> bool:
        return self.protocol != "vm"

    @property
    def real(self) -> bool:
        return self.broker is not None


@dataclass(frozen=True, slots=True)
class Pair:
    """A kind that runs now, at ``url``; ``embedded``: its broker, where that is ours to ask."""

    kind: Kind
    url: str
    embedded: EmbeddedBroker | None = None

    @property
    def real(self) -> bool:
        return self.kind.real

    def can(self, feature: str) -> bool:
        assert feature in FEATURES, f"{feature!r} is in no row of the table"
        return feature not in self.kind.cannot


_COPIES: Mapping[str, str] = {
    "dead letters": "a copy with origin and cause, in one transaction with the ACK where there are transactions",
}
_ARTEMIS_LIKE: Mapping[str, str] = {
    "transactions": "an ACK counts at once there: the SENDs are committed first, then the ACKs leave",
    "dead letters": "NACK deletes there: a copy that the broker deduplicates, its receipt, then the ACK",
}
KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("vm", "vm", cannot=_VM),
        Kind("stomp-embedded", "stomp", cannot={**_CLASSIC_STOMP, **_EMBEDDED}),
        Kind("amqp-embedded", "amqp", cannot=_EMBEDDED),
        Kind("stomp-activemq", "stomp", "activemq", _CLASSIC_STOMP),
        Kind("stomp-artemis", "stomp", "artemis", _ARTEMIS_STOMP, _ARTEMIS_LIKE, own_dead_letters="DLQ"),
        Kind("stomp-hornetq", "stomp", "hornetq", _HORNETQ_STOMP, _ARTEMIS_LIKE, own_dead_letters="DLQ"),
        Kind("stomp-rabbitmq", "stomp", "rabbitmq", {**_OTHER_STOMP, **_RABBITMQ}, _COPIES, own_dead_letters=None),
        Kind("amqp-activemq", "amqp", "activemq", _CLASSIC_AMQP),
        Kind("amqp-artemis", "amqp", "artemis", _ARTEMIS_AMQP, _COPIES, own_dead_letters="DLQ"),
        Kind("amqp-qpid", "amqp", "qpid", _QPID, _COPIES, own_dead_letters=None),
        Kind("amqp-rabbitmq", "amqp", "rabbitmq", _RABBITMQ_AMQP, _COPIES, own_dead_letters=None),
    )
}
# Those of the environment, or all.
_CHOSEN = os.environ.get("REDELIVERY_PAIRS", ",".join(KINDS)).split(",")
assert KINDS.keys() >= set(_CHOSEN), f"REDELIVERY_PAIRS names a pair that is none of {', '.join(KINDS)}"
PAIRS: Mapping[str, Kind] = {name: kind for name, kind in KINDS.items() if name in _CHOSEN}
FEATURES = {feature for kind in KINDS.values() for feature in (*kind.cannot, *kind.emulates)}
