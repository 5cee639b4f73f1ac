"""The notifications of the engine to a store, and the store's contents at its start. Pure: no wait, no I/O."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from redelivery.broker.engine.entries import Entry
from redelivery.broker.engine.queues import Binding
from redelivery.broker.engine.stored import StoredMessage
from redelivery.model.errors import ConfigError


class UnreadableStoreError(ConfigError):
    """The store cannot be read. It is not written any more: the step that needed it was not done as a whole."""


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a store when it was opened.

    ``queues``: how many messages each has. ``expiring``: those of the queues in which some may expire. ``delayed``:
    messages by their numbers, with their delivery times. ``bindings``: the durable subscriptions, by their queues'
    names. ``last``: no number or order in it is higher.
    """

    bindings: Mapping[str, Binding] = field(default_factory=dict)
    queues: Mapping[str, int] = field(default_factory=dict)
    expiring: Collection[str] = ()
    delayed: Sequence[tuple[int, int]] = ()
    last: int = 0


class Journal(Protocol):
    """Is notified of each change, in the step that makes it, under the broker's lock: it only notes it.

    Steps of one call belong together: they survive together or not at all. ``window``: so many messages of a queue wait
    in memory, and ``memory``: so many bytes of all; the others are read when it is their turn.
    """

    window: int
    memory: int

    @property
    def sequence(self) -> int:
        """The number of steps that it was notified of."""

    def bound(self, name: str, binding: Binding) -> None:
        """A durable subscription to a topic was made: a queue of that name."""

    def unbound(self, name: str) -> None:
        """The binding was removed."""

    def check_room(self, size: int) -> None:
        """Raise ResourceAllocationError where messages of so many bytes would not fit."""

    def put(self, entry: Entry) -> None:
        """A new message waits in a queue; one that is not persistent is kept until the broker ends."""

    def page(self, queue: str, after: int, limit: int) -> Sequence[Entry]:
        """The next messages of a queue behind that order. Raises UnreadableStoreError."""

    def read(self, queue: str, orders: Sequence[int]) -> Sequence[Entry]:
        """The queue's messages at these places, ascending, or the first of them. Raises UnreadableStoreError."""

    def cleared(self, queue: str, after: int) -> None:
        """All of a queue behind that order is gone."""

    def removed(self, entry: Entry) -> None:
        """The message is consumed, dead-lettered, expired or dropped."""

    def counted(self, entry: Entry, redeliveries: int, until: int = 0) -> None:
        """Note that so many of its deliveries count after a restart of the broker; ``until`` then it waits."""

    def delayed(self, number: int, message: StoredMessage) -> None:
        """A message waits for its delivery time, here alone."""

    def undelayed(self, number: int) -> StoredMessage:
        """That time has come; the message. Raises UnreadableStoreError."""
