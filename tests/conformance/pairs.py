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
CLASSIC = ("activemq", "activemq6")  # the fixtures

# RabbitMQ 4 is this one, unless the environment says otherwise (testing/brokers/specs/rabbitmq4.py).
USUAL_VERSION = "4.0"
_VERSION = os.environ.get("REDELIVERY_RABBITMQ4") or USUAL_VERSION
ON = " on "  # before a version that is not the usual one, in the titles of pairs
_NO_IDS: Mapping[str, str] = {"duplicate ids": "the broker does not drop what is sent twice"}
_STOMP: Mapping[str, str] = {
    "stream": "STOMP has no frame for a StreamMessage",
    "exact counts": "STOMP carries a redelivered flag, no delivery count",
    "typed properties": "STOMP headers are strings",
    "NUL in a text body": "a STOMP text body has no length, it ends at the first NUL",
}
_NO_SHARING: Mapping[str, str] = {
    "shared subscriptions": "consumers share by a virtual topic there, not by a subscription",
    "shared durable subscriptions": "consumers share by a virtual topic there, not by a subscription",
}
_NO_SUBSCRIPTIONS: Mapping[str, str] = dict.fromkeys(
    ("durable subscriptions", "shared subscriptions", "shared durable subscriptions"),
    "RabbitMQ knows queues that are bound to an exchange, and no subscriptions of JMS's",
)
_FIRST_USE: Mapping[str, str] = {"declaring queues": "ActiveMQ makes a queue at its first use"}
_OVER_HTTP: Mapping[str, str] = {"declaring queues": "RabbitMQ does it over HTTP: connect(…, management=…)"}
_CLASSIC_STOMP: Mapping[str, str] = {
    **_STOMP,
    **_NO_IDS,
    **_FIRST_USE,
    "the count of an unseen message": "with the consumer all that was prefetched counts as delivered",
    "group id": "ActiveMQ does not write JMSXGroupID on a STOMP message, nor does the embedded broker",
}
_EMBEDDED: Mapping[str, str] = {
    **_NO_IDS,
    **_FIRST_USE,
    "refusals": "the embedded broker refuses nothing by itself; tests/faults makes it",
}
_VM: Mapping[str, str] = {**_EMBEDDED, "a lost connection": "within one process there is none to lose"}
_CLASSIC_COMPOSITES: Mapping[str, str] = {
    "composites of queues and topics": "where Classic has an authorizationPlugin, no entry of its map fits both"
}
_REAL_CLASSIC_STOMP: Mapping[str, str] = {**_CLASSIC_STOMP, **_CLASSIC_COMPOSITES, **_NO_SHARING}
_CLASSIC_AMQP: Mapping[str, str] = {
    **_CLASSIC_COMPOSITES,
    **_FIRST_USE,
    **_NO_IDS,
    **_NO_SHARING,
    "the count of an unseen message": "a delivery counts only with the end of its session, and then all prefetched do: "
    "it comes as redelivered, with a count of 2, which its redelivery limit ignores",
    "exact counts": "the broker's count is too high: 2 for what was delivered before, or what this process saw",
}
_SHORT_LISTS: Mapping[str, str] = {
    "lists beyond the window": "`receive_many` returns what the window holds: more would need an acknowledgement"
}
_ONE_QUEUE: Mapping[str, str] = {"queue patterns": "a consumer takes from one queue there"}
_NO_INDIVIDUAL: Mapping[str, str] = {
    "individual dead letters": "only ActiveMQ has a strategy per destination",
    "composite destinations": "only ActiveMQ Classic has them; elsewhere it would be one name",
    "exclusive consumers": "only ActiveMQ Classic has them by a wish of the consumer's",
}
_PRIORITIES: Mapping[str, str] = {"arrival order whatever the priority": "the broker delivers what is urgent first"}
_NO_BROWSING: Mapping[str, str] = {"browsing": "asked to browse, the broker hands the messages out to be consumed"}
_HANGS_UP: Mapping[str, str] = {"a connection that survives a refusal": "the broker ends it with an ERROR"}
_OTHER_STOMP: Mapping[str, str] = {
    **_STOMP,
    **_ONE_QUEUE,
    **_NO_INDIVIDUAL,
    **_SHORT_LISTS,
    "map": "only ActiveMQ has a form of a MapMessage for STOMP",
}


def _no_groups(reason: str) -> Mapping[str, str]:
    return {"message groups": reason, "closing a group": reason}


def _temporaries(reason: str) -> Mapping[str, str]:
    return {"temporary destinations": reason, "temporary topics": reason}


_ARTEMIS_STOMP: Mapping[str, str] = {
    **_OTHER_STOMP,
    "declaring queues": "Artemis is asked to over AMQP",
    "closing a group": "over STOMP a JMSXGroupSeq of -1 is ignored",
    "shared subscriptions": "the queue of one may stay, and be filled, when its last consumer has left",
    "shared durable subscriptions of no client id": "its queue may be removed when it is empty and nobody is there",
    "changed subscriptions": "Artemis keeps the old topic and selector, but for what the same connection had",
    "unsubscribing what is not there": "Artemis confirms it over STOMP",
    "one connection of a client id": "Artemis takes a client id as often as it comes over STOMP",
    **_temporaries("over STOMP Artemis makes an ordinary queue, which anyone can consume and which stays"),
    **_PRIORITIES,
    **_HANGS_UP,
    **_NO_BROWSING,
    "counts after a lost connection": "Artemis says randomly whether a message was delivered before",
    "redelivered after a close": "UNSUBSCRIBE releases what was delivered without a flag",
}
_ARTEMIS_AMQP: Mapping[str, str] = {
    **_ONE_QUEUE,
    **_NO_INDIVIDUAL,
    **_PRIORITIES,
    "counts after a lost connection": "Artemis counts only where the socket was reset, not where it was closed",
}
_HORNETQ_STOMP: Mapping[str, str] = {
    **_OTHER_STOMP,
    "declaring queues": "HornetQ makes no queue that is not configured",
    "closing a group": "over STOMP a JMSXGroupSeq of -1 is ignored",
    "durable subscriptions": "over STOMP nothing removes one from HornetQ",
    "shared subscriptions": "HornetQ has none over STOMP",
    "shared durable subscriptions": "HornetQ has none over STOMP",
    **_temporaries("HornetQ makes no queue that is not configured"),
    **_PRIORITIES,
    **_NO_BROWSING,
    "counts after a lost connection": "HornetQ says randomly whether a message was delivered before",
    "redelivered after a close": "UNSUBSCRIBE releases what was delivered without a flag",
    "batches beyond the window": "HornetQ's window is 10 KiB; further subscriptions may change the order, or hold "
    "messages back until they end",
    "numbers in selectors": "a property is a string over STOMP, and HornetQ compares it with no number",
    "large bodies": "HornetQ confirms and then loses a STOMP body of more than about 100 KB",
}
_RABBITMQ: Mapping[str, str] = {
    **_NO_IDS,
    **_no_groups("RabbitMQ has none: the group id is a property"),
    **_ONE_QUEUE,
    **_NO_INDIVIDUAL,
    **_HANGS_UP,
    **_NO_BROWSING,
    **_NO_SUBSCRIPTIONS,
    "the count of an unseen message": "whatever comes back to a queue counts as delivered",
    "no_local of a topic": _NO_SUBSCRIPTIONS["durable subscriptions"],
    "selectors": "RabbitMQ ignores them",
    "delayed delivery": "RabbitMQ has none without a further plug-in",
}
_RABBITMQ_STOMP: Mapping[str, str] = {
    **_OTHER_STOMP,
    **_RABBITMQ,
    **_OVER_HTTP,
    "temporary topics": "a topic of RabbitMQ is a routing key, which every connection can bind to",
}
_RABBITMQ_AMQP: Mapping[str, str] = {
    **_RABBITMQ,
    **_OVER_HTTP,
    **_temporaries("RabbitMQ's plug-in for AMQP 1.0 makes no dynamic nodes"),
    "transactions": "RabbitMQ's plug-in for AMQP 1.0 refuses a coordinator",
    "exact counts": "RabbitMQ's classic queues tell whether a message was delivered before, not how often",
}
_RABBITMQ4_AMQP: Mapping[str, str] = {
    **_RABBITMQ,
    "temporary topics": "a topic of RabbitMQ is a routing key, which every connection can bind to",
    "transactions": "RabbitMQ refuses a coordinator",
    "exact counts": "a classic queue of RabbitMQ 4.0 tells whether a message was delivered before, not how often",
}
_QPID: Mapping[str, str] = {
    **_no_groups("Broker-J has them only on queues that are made with a group attribute"),
    **_NO_IDS,
    "temporary topics": "Broker-J makes a queue of a dynamic topic",
    "no_local of a durable subscription": "Broker-J makes a new one whenever its consumer comes back",
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
    ``stored``: the embedded broker keeps its messages in a file. ``brief``: the short form has a few files of it.
    ``largest``: bytes of the largest message that the broker takes, where it says so. ``links``: how many consumers one
    connection may have, where the broker has a limit. ``twin``: the pair of an older version of its dialect: this one
    runs this suite in the long form, and has no column of its own.
    """

    name: str
    protocol: str
    broker: str | None = None
    cannot: Mapping[str, str] = field(default_factory=dict)
    emulates: Mapping[str, str] = field(default_factory=dict)
    own_dead_letters: str | None = DEAD_LETTERS
    stored: bool = False
    brief: bool = False
    twin: str | None = None
    largest: int | None = None
    links: int | None = None

    @property
    def remote(self) -> bool:
        return self.protocol != "vm"

    @property
    def title(self) -> str:
        """Its name, as tables of runs say it; with the version of its broker where that is not the usual one."""
        usual = self.broker != "rabbitmq4" or _VERSION == USUAL_VERSION
        return self.name if usual else f"{self.name}{ON}{_VERSION}"

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
    "dead letters": "a copy with origin and cause, in one transaction with the ACK where there are transactions"
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
        Kind("vm-stored", "vm", cannot=_VM, stored=True),
        Kind("stomp-stored", "stomp", cannot={**_CLASSIC_STOMP, **_EMBEDDED}, stored=True),
        Kind("amqp-stored", "amqp", cannot=_EMBEDDED, stored=True),
        Kind("stomp-activemq", "stomp", "activemq", _REAL_CLASSIC_STOMP),
        Kind("stomp-artemis", "stomp", "artemis", _ARTEMIS_STOMP, _ARTEMIS_LIKE, own_dead_letters="DLQ"),
        Kind("stomp-hornetq", "stomp", "hornetq", _HORNETQ_STOMP, _ARTEMIS_LIKE, own_dead_letters="DLQ"),
        Kind("stomp-rabbitmq", "stomp", "rabbitmq", _RABBITMQ_STOMP, _COPIES, own_dead_letters=None),
        Kind("amqp-activemq", "amqp", "activemq", _CLASSIC_AMQP),
        Kind("amqp-artemis", "amqp", "artemis", _ARTEMIS_AMQP, _COPIES, own_dead_letters="DLQ"),
        Kind("amqp-qpid", "amqp", "qpid", _QPID, _COPIES, own_dead_letters=None),
        Kind("amqp-rabbitmq", "amqp", "rabbitmq", _RABBITMQ_AMQP, _COPIES, own_dead_letters=None),
        Kind("stomp-rabbitmq4", "stomp", "rabbitmq4", _RABBITMQ_STOMP, _COPIES, None, brief=True, largest=4 << 20),
        Kind(
            "amqp-rabbitmq4",
            "amqp",
            "rabbitmq4",
            _RABBITMQ4_AMQP,
            _COPIES,
            None,
            brief=True,
            largest=16 << 20,
            links=64,
        ),
        Kind("stomp-activemq6", "stomp", "activemq6", _REAL_CLASSIC_STOMP, twin="stomp-activemq"),
        Kind("amqp-activemq6", "amqp", "activemq6", _CLASSIC_AMQP, twin="amqp-activemq"),
    )
}
# Those of the page that a run writes: with its messages in a file, the embedded broker can do the same.
TABLED: Mapping[str, Kind] = {name: kind for name, kind in KINDS.items() if not (kind.stored or kind.twin)}
# Those of the environment, or all.
_CHOSEN = os.environ.get("REDELIVERY_PAIRS", ",".join(KINDS)).split(",")
assert KINDS.keys() >= set(_CHOSEN), f"REDELIVERY_PAIRS names a pair that is none of {', '.join(KINDS)}"
SUITE: Mapping[str, Kind] = {name: kind for name, kind in KINDS.items() if name in _CHOSEN}
# Without those that this suite alone has.
PAIRS: Mapping[str, Kind] = {name: kind for name, kind in SUITE.items() if not kind.twin}
FEATURES = {feature for kind in KINDS.values() for feature in (*kind.cannot, *kind.emulates)}
