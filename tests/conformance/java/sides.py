"""Which Java client is the other side of which pair, and what does not get across between the two, and why.

What is not named arrives as it was sent. `Lack.instead` is what happens then, and what the test holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from redelivery import ConnectionLostError, Long, MessageFormatError


@dataclass(frozen=True, slots=True)
class Lack:
    """``why``: the reason, for a person; the rest is what happens instead.

    ``arrives``: the value that comes, or a function that makes it of what was sent, or ``...``
    for what is of no use; ``kind``: of a body, where that
    differs. ``raises`` and ``text``: the error when we send it, or read it. ``java_fails``: that of Java, in part.
    ``never``: it does not come; the messages after it do.
    """

    why: str
    arrives: Any = None
    kind: str = ""
    raises: type[Exception] | None = None
    text: str = ""
    java_fails: str = ""
    never: bool = False

    def of(self, sent: object) -> object:
        """What comes where ``sent`` was sent."""
        return self.arrives(sent) if callable(self.arrives) else self.arrives


Lacks = Mapping[str, Lack]  # by "sent …" (ours to Java) or "got …" (Java's to us), a case or a whole group of them


@dataclass(frozen=True, slots=True)
class Side:
    """A pair of `tests.conformance.pairs`, and the Java client at the other end of it.

    ``broker``: the fixture; empty for the embedded broker. ``ours``, ``java``: the protocol of each end.
    ``queue_prefix``, ``topic_prefix``: what Qpid JMS has to put before a name. ``made_by_us``: what it puts before that
    of a queue of ours instead, to attach to it, which then has to be there; empty: nothing else.
    """

    pair: str
    broker: str
    java: str
    lacks: Lacks = field(default_factory=dict)
    queue_prefix: str = ""
    topic_prefix: str = ""
    made_by_us: str = ""

    @property
    def name(self) -> str:
        return f"{self.pair}-{self.java}"

    @property
    def ours(self) -> str:
        return self.pair.partition("-")[0]

    def lack(self, direction: str, group: str, case: str = "") -> Lack | None:
        """What is lacking for a case, named by itself or with its group."""
        return self.lacks.get(f"{direction} {group} {case}") or self.lacks.get(f"{direction} {group}")

    def attached(self, queue: str) -> str:
        """What Java calls a queue of ours to attach to it."""
        return f"queue://{self.made_by_us or self.queue_prefix}{queue}"

    def javas(self, destination: str) -> str:
        """Java's name of a destination of ours."""
        scheme, _, name = destination.partition("://")
        return f"{scheme}://{self.queue_prefix if scheme == 'queue' else self.topic_prefix}{name}"


def _as_text(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _plain_longs(value: Mapping[str, object]) -> object:
    return {name: int(each) if isinstance(each, Long) else each for name, each in value.items()}


def _replaced(value: bytes) -> str:
    return value.decode(errors="replace")


def _without_id(value: object) -> str:
    return str(value).removeprefix("ID:")


def _all_of(*parts: Lacks) -> Lacks:
    return {name: lack for part in parts for name, lack in part.items()}


def _each(names: str, lack: Lack) -> Lacks:
    return {name.strip(): lack for name in names.split(",")}


_STRINGS: Final = "STOMP headers are strings"
_STOMP: Final = _all_of(
    _each("sent property, got property", Lack(_STRINGS, _as_text)),
    _each(
        "sent body stream, sent body stream of every type",
        Lack("STOMP has no frame for it", raises=MessageFormatError, text="stream"),
    ),
    _each("sent header correlation bytes", Lack(_STRINGS, raises=MessageFormatError, text="correlation_id")),
)
_OPENWIRE_STOMP: Final = _all_of(
    _STOMP,
    _each(
        "sent body emoji", Lack("Classic hands UTF-8 on as it is, Java has its own form", java_fails="UTFDataFormat")
    ),
    _each("sent body map of every type", Lack("a map is JSON", raises=MessageFormatError, text="bytes in a map")),
    _each("sent body none", Lack("a STOMP frame without a body is a str", "", "text")),
    _each("got body stream, got body stream of every type", Lack("Classic has no STOMP form for it", "")),
    _each("got body none", Lack("a STOMP frame without a body is a str", "")),
    _each(
        "got body object",
        Lack(
            "Classic cannot make a map's JSON of it, and then ends the connection; the message stays",
            raises=ConnectionLostError,
            text="closed the connection",
        ),
    ),
    _each("got body map of every type", Lack("JSON has one kind of whole number", _plain_longs)),
    _each("got header correlation bytes", Lack(_STRINGS, _replaced)),
    _each("got header group, got header group sequence", Lack("Classic writes neither on a STOMP message", None)),
)
_OPAQUE: Final = "Artemis hands the bytes of its own form on to STOMP"
_ARTEMIS_STOMP: Final = _all_of(
    _STOMP,
    _each(
        "sent body map, sent body map of every type",
        Lack("Artemis has no STOMP form for it", raises=MessageFormatError, text="map"),
    ),
    _each("sent body none", Lack("a STOMP frame without a body is a str", "", "text")),
    _each("sent body long text", Lack("an Artemis without a journal would lose it as a str", str.encode, "bytes")),
    _each("got body map, got body map of every type, got body stream, got body object", Lack(_OPAQUE, ...)),
    _each(
        "got body stream of every type",
        Lack("Artemis cannot convert it, and ends the connection", raises=ConnectionLostError, text="the broker says"),
    ),
    _each("got header correlation bytes", Lack("Artemis writes the name of the Java object", ...)),
    _each("sent id", Lack("Artemis gives a message of STOMP no id over AMQP", None)),
    _each("sent redelivered", Lack("what a closed STOMP consumer releases comes as a new message", False)),
)
_NATIVE: Final = "Classic gives OpenWire the AMQP message as it is, unless its connector says transport.transformer=jms"
_OPENWIRE_AMQP: Final = _all_of(
    _each("sent body", Lack(_NATIVE, ..., "bytes")),
    _each("got body stream of every type", Lack("Classic cannot convert bytes in a stream, and keeps it", never=True)),
    _each("got body none", Lack("Classic gives it no body and no type: bytes, to any AMQP client", b"")),
    _each(
        "sent header correlation uuid, sent header correlation ulong, sent header correlation bytes",
        Lack("Classic writes the AMQP type of an id without JMS's ID: before it", _without_id),
    ),
    _each(
        "got header correlation uuid, got header correlation ulong",
        Lack("an OpenWire text that looks like an AMQP id stays a str", "ID:AMQP_STRING:{}".format),
    ),
    _each("got header correlation bytes", Lack("OpenWire has texts only", _replaced)),
)
_EMBEDDED_STOMP: Final = _all_of(
    _STOMP,
    _each("sent body map of every type", Lack("a map is JSON", raises=MessageFormatError, text="bytes in a map")),
    _each(
        "got body map of every type, got body stream, got body stream of every type",
        Lack("the embedded broker has no STOMP form for it", ""),
    ),
    _each("got header correlation bytes", Lack(_STRINGS, None)),
    _each("got header group, got header group sequence", Lack("as Classic, it writes neither over STOMP", None)),
)
_UNANSWERED: Final = "TimedOut"  # RabbitMQ ends the session, and Qpid JMS waits for the link
_RABBITMQ: Final = _all_of(
    _each("got rolled back", Lack("RabbitMQ's AMQP has no transactions", java_fails=_UNANSWERED)),
    _each("got temporary", Lack("RabbitMQ's AMQP makes no dynamic nodes", java_fails=_UNANSWERED)),
    _each("sent redelivered", Lack("RabbitMQ says it by first-acquirer, Qpid JMS reads delivery-count", False)),
)
SIDES: Final[Mapping[str, Side]] = {
    side.name: side
    for side in (
        Side("stomp-activemq", "activemq", "openwire", _OPENWIRE_STOMP),
        Side("amqp-activemq", "activemq", "openwire", _OPENWIRE_AMQP),
        Side("amqp-activemq", "activemq", "qpid"),
        Side("amqp-artemis", "artemis", "qpid"),
        Side("stomp-artemis", "artemis", "qpid", _ARTEMIS_STOMP),
        Side("amqp-qpid", "qpid", "qpid", topic_prefix="amq.topic/"),
        # By its plain name Qpid JMS asks for a queue that does not last, which RabbitMQ refuses where it does.
        Side(
            "amqp-rabbitmq",
            "rabbitmq",
            "qpid",
            _RABBITMQ,
            queue_prefix="/queue/",
            topic_prefix="/topic/",
            made_by_us="/amq/queue/",
        ),
        Side("amqp-embedded", "", "qpid", topic_prefix="topic://"),
        Side("stomp-embedded", "", "qpid", _EMBEDDED_STOMP, topic_prefix="topic://"),
    )
}
