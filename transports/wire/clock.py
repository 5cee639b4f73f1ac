"""The only place that asks what time it is; decisions get it as an argument.

1. `monotonic` is the machine's. By it one judges whether a peer is alive: heart-beats, connect and request time-outs,
   how long a close may take.
2. `session_time` is what applications wait by: time-outs of `receive`, redelivery delays, waits between attempts to
   connect. It is `monotonic`, but for what a test has put it ahead (`put_ahead`), and never goes back.
3. The wall clock (`epoch_ms`, `utc_now`) stamps messages and says what has expired or is to be delivered. It is put
   ahead with it, and can be put right again.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol
from weakref import ref

monotonic = time.monotonic

_ahead = 0.0  # seconds, of `session_time`
_wall_ahead = timedelta(0)
_wall_ahead_ns = 0


class Wakes(Protocol):
    """The place where somebody waits by one of these clocks."""

    def wake(self) -> None:
        """Let the one who waits check again; harmless when nobody waits. From any thread."""


# A reference goes by a C function: Python drops what a signal's handler raises in a callback of Python's.
_followers: dict[ref[Wakes], None] = {}


def session_time() -> float:
    """Monotonic seconds, as applications wait."""
    return monotonic() + _ahead


def epoch_ms() -> int:
    """Milliseconds since 1970, of the wall clock."""
    return (time.time_ns() + _wall_ahead_ns) // 1_000_000


def utc_now() -> datetime:
    """The wall clock's time, aware."""
    return datetime.now(UTC) + _wall_ahead


def follow(waiter: Wakes) -> None:
    """Wake it, as long as it exists, whenever a clock is put ahead or right again."""
    _followers[ref(waiter, _followers.pop)] = None


def put_ahead(seconds: float) -> None:
    """Put `session_time` and the wall clock ahead by so many more seconds. For tests, one thread at a time."""
    global _ahead
    _ahead += seconds
    _set_wall(_wall_ahead + timedelta(seconds=seconds))


def put_right() -> None:
    """The wall clock shows the real time again; `session_time` goes on from where it is."""
    _set_wall(timedelta(0))


def _set_wall(ahead: timedelta) -> None:
    global _wall_ahead, _wall_ahead_ns
    _wall_ahead, _wall_ahead_ns = ahead, ahead // timedelta(microseconds=1) * 1000
    for reference in list(_followers):
        follower = reference()
        if follower is not None:
            follower.wake()
