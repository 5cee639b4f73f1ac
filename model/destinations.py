"""Queues and topics: immutable names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

from redelivery.model.content.errors import InvalidDestinationError

WILDCARDS = frozenset(("*", ">", "#"))
# How other clients write a destination into a STOMP header -> the scheme here.
_STOMP_PREFIXES: Final = {"/queue/": "queue", "/topic/": "topic", "/dsub/": "topic"}
# Of HornetQ and Artemis 1; a name may begin so, but rarely does.
_JMS_PREFIXES: Final = {"jms.queue.": "queue", "jms.topic.": "topic"}
# Of other clients and brokers, which this one takes for the beginning of a name all the same: what begins so is hardly
# ever meant.
_OTHER_PREFIXES: Final = {
    "queue:": "queue",
    "topic:": "topic",
    "amq/queue/": "queue",
    "/amq/queue/": "queue",
    "/queues/": "queue",
    "dynamicQueues/": "queue",
    "dynamicTopics/": "topic",
    "/exchange/amq.topic/": "topic",
}
_TEMPORARY: Final = ("/temp-queue/", "/temp-topic/", "temp-queue:", "temp-topic:", "/reply-queue/")
_EXCHANGE: Final = ("/exchange/", "/exchanges/")
_UNLESS: Final = "; if it is RabbitMQ's own spelling, or the name really begins so, pass {kind}({name!r})"
_DECLARE: Final = "?declare="
_SHOWN: Final = 40  # characters of what is refused: it may be a whole body


@dataclass(frozen=True, slots=True)
class Destination:
    """A named place at the broker. ``str()`` gives ``queue://name`` or ``topic://name``."""

    name: str
    scheme: ClassVar[str] = ""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise InvalidDestinationError(f"the name of a destination must be a str, not {repr(self.name)[:_SHOWN]}")
        if not self.name or self.name != self.name.strip():
            raise InvalidDestinationError(
                f"{self.name!r} is not a name of a destination: it is empty or has outer spaces"
            )
        if "\0" in self.name:
            raise InvalidDestinationError(f"{self.name!r} has a NUL, which no broker accepts in a name")
        if self.name.startswith("/"):
            _refuse_prefix(self.name, _STOMP_PREFIXES, "")

    def __hash__(self) -> int:
        return hash(self.name)  # which a str keeps: destinations are looked up at every send

    def __str__(self) -> str:
        return f"{self.scheme}://{self.name}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @property
    def is_pattern(self) -> bool:
        """True where a word of the name is a wildcard: such a destination can be consumed, not sent to."""
        return not WILDCARDS.isdisjoint(self.name.split("."))

    @property
    def parts(self) -> tuple[Destination, ...]:
        """The destinations that a composite one (ActiveMQ's ``a,topic://b``) sends to; any other is its own only part.

        A part without a scheme is of the same kind as the whole.

        Raises:
            InvalidDestinationError: a part is empty, a pattern, or of another scheme.
        """
        if "," not in self.name or isinstance(self, (TemporaryQueue, TemporaryTopic)):
            return (self,)
        found = []
        for text in self.name.split(","):
            text = text.strip()
            part = read_destination(text) if "://" in text else type(self)(text)
            if part.is_pattern:
                raise InvalidDestinationError(
                    f"{part}, a part of {self}, is a pattern: it can be consumed, not sent to"
                )
            found.append(part)
        return tuple(found)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Queue(Destination):
    """Each message goes to one consumer.

    ``declare``: False: it is never made, where this library makes the queues that are not there (RabbitMQ); to use one
    that is not there is an error then. It is no part of the name. ``queue://orders?declare=false`` is the same.
    """

    declare: bool = field(default=True, kw_only=True)
    scheme: ClassVar[str] = "queue"

    def __repr__(self) -> str:
        more = "" if self.declare else ", declare=False"
        return f"{type(self).__name__}({self.name!r}{more})"


class Topic(Destination):
    """Each message goes to every subscriber."""

    __slots__ = ()
    scheme: ClassVar[str] = "topic"


class TemporaryQueue(Queue):
    """A queue that the broker made and named, and removes with the connection. ``str()`` gives ``temp-queue://name``.

    Its name is the broker's own, to be used as it is; some brokers begin it with ``temp-queue://``.
    """

    __slots__ = ()
    scheme: ClassVar[str] = "temp-queue"

    def __str__(self) -> str:
        return _temporary_text(self)


class TemporaryTopic(Topic):
    """A topic that the broker made and named, and removes with the connection. ``str()`` gives ``temp-topic://name``.

    Its name is the broker's own, as with `TemporaryQueue`.
    """

    __slots__ = ()
    scheme: ClassVar[str] = "temp-topic"

    def __str__(self) -> str:
        return _temporary_text(self)


@dataclass(frozen=True, slots=True)
class SubscriptionName:
    """A subscription to a topic that has a name (JMS 3.1 §8.3); each connection with a client id has names of its own.

    ``durable``: it keeps what is sent while it has no consumer. ``shared``: it may have several consumers, each message
    goes to one of them. One that is durable and one that is not may have the same name.
    """

    name: str
    durable: bool
    shared: bool

    @property
    def kind(self) -> str:
        """``durable``, ``shared`` or ``shared durable``."""
        return " ".join(word for word, has in (("shared", self.shared), ("durable", self.durable)) if has)

    def __str__(self) -> str:
        return f"the {self.kind} subscription {self.name!r}"


def _temporary_text(temporary: Destination) -> str:
    scheme = f"{temporary.scheme}://"
    return temporary.name if temporary.name.startswith(scheme) else scheme + temporary.name


def destination(value: Destination | str) -> Destination:
    """A destination from itself or from an application's str; one without a scheme is a queue.

    Stricter than ``Queue(name)`` and ``Topic(name)``, which take any name that a broker could have. Raises
    InvalidDestinationError: the str is empty, has a space or a line end, begins as other clients write it
    (``/queue/x``, ``jms.queue.x``, ``topic:x``, ``/exchange/…``), or its scheme is neither ``queue`` nor ``topic``.
    """
    if isinstance(value, Destination):
        return value
    if not isinstance(value, str):
        raise InvalidDestinationError(
            f"{value!r} is not a destination: give a Queue, a Topic or a str like 'queue://orders'"
        )
    value, declare = _declared(value)
    parsed = read_destination(value)
    if declare is not None:
        parsed = Queue(parsed.name, declare=declare)
    if " " in parsed.name or not parsed.name.isprintable():
        shown = value if len(value) <= _SHOWN else value[:_SHOWN] + "…"
        kind = type(parsed).__name__
        raise InvalidDestinationError(
            f"{shown!r} has a space or a control character, so it is hardly a destination: "
            f"is it a body, in the wrong place? If it is the name, pass {kind}(…)"
        )
    _refuse_prefix(parsed.name, _JMS_PREFIXES, _UNLESS)
    check_spelling(parsed.name)
    return parsed


def queue_named(text: str) -> Queue:
    """A queue by its name, with or without an option behind it. Raises InvalidDestinationError."""
    name, declare = _declared(text)
    return Queue(name, declare=declare is not False)


def _declared(text: str) -> tuple[str, bool | None]:
    """A str without the option ``?declare=…`` behind it, and what that says; None: there is none."""
    name, found, value = text.partition(_DECLARE)
    if not found:
        return text, None
    if value not in ("true", "false") or name.startswith("topic://"):
        raise InvalidDestinationError(f"{text[:_SHOWN]!r}: write ?declare=true or ?declare=false, behind a queue")
    return name, value == "true"


def read_destination(text: str) -> Destination:
    """A destination from what `str` made of one, as it travels in a header; a str without a scheme is a queue.

    Raises:
        InvalidDestinationError: the str is empty, or its scheme is neither ``queue`` nor ``topic``.
    """
    scheme, separator, name = text.partition("://")
    if not separator or "," in scheme:  # of a composite one, whose first part has no scheme
        return Queue(text)
    if scheme == "queue":
        return Queue(name)
    if scheme == "topic":
        return Topic(name)
    raise InvalidDestinationError(
        f"{text!r}: a destination begins with 'queue://' or 'topic://', not {scheme + '://'!r}"
    )


def _refuse_prefix(name: str, prefixes: Mapping[str, str], unless: str) -> None:
    for prefix, scheme in prefixes.items():
        if name.startswith(prefix) and len(name) > len(prefix):
            rest = name.removeprefix(prefix)
            spellings = [f"{rest!r} or "] if scheme == "queue" else []
            spelling = "".join([*spellings, repr(f"{scheme}://{rest}")])
            kind = "Queue" if scheme == "queue" else "Topic"
            raise InvalidDestinationError(f"{name!r}: write {spelling}{unless.format(kind=kind, name=name)}")


def check_spelling(name: str) -> None:
    """Raise InvalidDestinationError where a name begins as other clients and brokers write destinations."""
    if "/" not in name and ":" not in name:
        return
    _refuse_prefix(name, _OTHER_PREFIXES, _UNLESS)
    unless = _UNLESS.format(kind="Queue", name=name)
    for prefix in _TEMPORARY:
        if name.startswith(prefix):
            kind = "topic" if "topic" in prefix else "queue"
            raise InvalidDestinationError(f"{name!r}: a temporary {kind} is made by session.temporary_{kind}(){unless}")
    if name.startswith(_EXCHANGE):
        raise InvalidDestinationError(
            f"{name!r} names an exchange, not a destination: write 'topic://KEY' for a key of amq.topic, or "
            f"bind a queue to the exchange and write 'queue://NAME'{unless}"
        )
