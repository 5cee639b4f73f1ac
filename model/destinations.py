"""Queues and topics: immutable names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from redelivery.model.errors import InvalidDestinationError

WILDCARDS = frozenset(("*", ">", "#"))


@dataclass(frozen=True, slots=True)
class Destination:
    """A named place at the broker. ``str()`` gives ``queue://name`` or ``topic://name``."""

    name: str
    scheme: ClassVar[str] = ""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or self.name != self.name.strip():
            raise InvalidDestinationError(f"{self.name!r} is no name of a destination: it is empty or has outer spaces")
        if "\0" in self.name:
            raise InvalidDestinationError(f"{self.name!r} has a NUL, which no broker accepts in a name")

    def __str__(self) -> str:
        return f"{self.scheme}://{self.name}"

    @property
    def is_pattern(self) -> bool:
        """True where a word of the name is a wildcard: such a destination can be consumed, not sent to."""
        return not WILDCARDS.isdisjoint(self.name.split("."))


class Queue(Destination):
    """Each message goes to one consumer."""

    __slots__ = ()
    scheme: ClassVar[str] = "queue"


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


def _temporary_text(temporary: Destination) -> str:
    scheme = f"{temporary.scheme}://"
    return temporary.name if temporary.name.startswith(scheme) else scheme + temporary.name


def destination(value: Destination | str) -> Destination:
    """A destination from itself or from its text; a text without a scheme is a queue.

    Raises:
        InvalidDestinationError: the text is empty, or its scheme is neither ``queue`` nor ``topic``.
    """
    if isinstance(value, Destination):
        return value
    if not isinstance(value, str):
        raise InvalidDestinationError(
            f"{value!r} is no destination: give a Queue, a Topic or a text like 'queue://orders'"
        )
    scheme, separator, name = value.partition("://")
    if not separator:
        return Queue(value)
    if scheme == "queue":
        return Queue(name)
    if scheme == "topic":
        return Topic(name)
    raise InvalidDestinationError(
        f"{value!r}: a destination begins with 'queue://' or 'topic://', not {scheme + '://'!r}"
    )
