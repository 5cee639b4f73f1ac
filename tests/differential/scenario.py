"""A scenario, and what a client saw of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Manner: TypeAlias = Literal[
    "modified-failed",
    "modified",
    "undeliverable",  # modified, undeliverable-here; then the link is closed, and there is another one
    "released",
    "rejected",
    "close-link",
    "close-connection",
    "drop",  # the connection, without a close
    "stomp-drop",
    "stomp-disconnect",
    "stomp-unsubscribe",
    "stomp-nack",
    "stomp-ack-abort",
    "stomp-durable-nack",  # of a durable subscription; Classic's
    "stomp-durable-pair-nack",  # of two
    "leave",  # nobody takes it
    "stomp-leave",
]


@dataclass(frozen=True, slots=True)
class Scenario:
    """``file``: a name in `files`. ``queue``: its own, which that file knows. ``most``: deliveries, then it is enough.

    ``then``: queues from which its dead letter is taken afterwards, and treated likewise. ``delays``: milliseconds that
    the file promises before each delivery but the first; the last one counts for all after it, None is not compared.
    ``ttl``: milliseconds. ``dead``: where its dead letters are read. ``sends``: how many messages; over AMQP
    ``prefetch`` of them are with the client before it does anything, of which it looks at the first. ``tolerance``:
    milliseconds that the real broker may deliver later than its rules say, the step of its timers. ``patience``:
    seconds without a message until there is none. ``differs``: why the embedded broker does otherwise.
    """

    name: str
    file: str
    queue: str
    manner: Manner = "modified-failed"
    most: int = 12
    then: tuple[str, ...] = ()
    delays: tuple[int | None, ...] = (0,)
    ttl: int = 0
    durable: bool = True
    dead: tuple[str, ...] = ()
    sends: int = 1
    prefetch: int = 1
    tolerance: int = 150
    patience: float = 0.6
    says: str = ""
    differs: str = ""


@dataclass(slots=True)
class Played:
    """What a client saw. ``deliveries``: body and count of each; ``waits``: milliseconds before each but the first.

    ``dead``: where a dead letter was, its body, and what it says of itself (`describe`). ``left``: what is still there.
    """

    deliveries: list[tuple[str, int]] = field(default_factory=list)
    waits: list[int] = field(default_factory=list)
    dead: list[tuple[str, str, str]] = field(default_factory=list)
    left: int = 0
