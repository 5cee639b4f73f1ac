"""The questions that a broker's management answers, whichever broker it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from redelivery.model.messages import Message

MOST: Final = 10_000
"""Messages of one look, at most: the broker holds them all while it shows them."""


@dataclass(frozen=True, slots=True)
class ManagedQueue:
    """A queue, as the broker's management shows it; None where it does not say.

    ``kind``: in the broker's word, such as ``classic``, ``quorum`` or ``stream``, and on Artemis ``anycast`` or
    ``multicast``. ``arguments``: those that it was declared with. ``policy``: the name of the one that applies to it.
    ``settings``: what holds for it of all policies, by their names. ``ready``: messages that wait; ``unacknowledged``:
    those that consumers have; ``held_back``: of those that wait, the ones whose time is yet to come. ``enqueued`` and
    ``dequeued``: counts since the queue was made or the broker started. Policies and numbers may lag by some seconds.
    ``address``: on Artemis.
    """

    name: str
    kind: str | None = None
    durable: bool | None = None
    auto_delete: bool | None = None
    exclusive: bool | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    policy: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    ready: int | None = None
    unacknowledged: int | None = None
    consumers: int | None = None
    address: str | None = None
    held_back: int | None = None
    enqueued: int | None = None
    dequeued: int | None = None

    @property
    def messages(self) -> int | None:
        """All that it holds."""
        return None if self.ready is None else self.ready + (self.unacknowledged or 0)


class PartlyReceived:
    """A source that a management shows, where a consumer over the connection's protocol gets less.

    No `Protocol`: to ask whether a source is one takes longer than all else that a letter is checked for.
    """

    __slots__ = ()

    def unreceived(self) -> frozenset[str]:
        """The names of headers that a consumer does not get."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Cost:
    """The price of one look into a queue.

    ``counts``: repeated looks can dead-letter or delete a message, as each counts as a delivery towards a limit.
    ``says``: what it costs, in a sentence without its full stop; empty: nothing.
    """

    counts: bool = False
    says: str = ""

    def __str__(self) -> str:
        return self.says


class Management(Protocol):
    """The management of one broker. All calls raise SecurityError, ConnectError, RequestTimeoutError, ProtocolError."""

    @property
    def name(self) -> str:
        """The broker and its version, such as ``RabbitMQ 4.0.5``."""

    def queues(self) -> Iterable[ManagedQueue]:
        """All queues that are neither temporary nor the broker's own; their depths may lag by some seconds."""

    def queue(self, name: str) -> ManagedQueue | None:
        """One queue; None: it is not there."""

    def cost(self, queue: ManagedQueue) -> Cost:
        """The price of a look into it. Raises UnsupportedError: it cannot be looked into; the text says why."""

    def browse(self, queue: str, limit: int | None = None) -> Iterator[Message]:
        """The messages that wait, from the head of the queue, so many (and `MOST`) at most.

        None is taken, and their order is kept. Each is as it would have been received. What consumers have is not seen.

        Raises:
            InvalidDestinationError: there is no such queue.
            UnsupportedError: it cannot be looked into.
        """
