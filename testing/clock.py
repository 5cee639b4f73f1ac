"""A clock that a test puts ahead, so that a back-off of an hour takes milliseconds.

Nothing but the standard library is imported until it is used: pytest loads the plug-in that stands beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from redelivery.broker import EmbeddedBroker
    from redelivery.broker.core import Core

_LONGEST = 100 * 366 * 86_400.0  # seconds
_running: list[FastForward] = []  # none or one


class FastForward:
    """The clock within a ``with fast_forward(broker)``."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def advance(self, seconds: float | timedelta) -> None:
        """Put the clock ahead. When it returns the broker has done what became due; clients are awake, and do theirs.

        What the broker has to do at several times is done in its order. A client does everything at the end: of a
        message that is to be redelivered after one hour, fail, and be redelivered after two more, `advance` by the
        hours one after the other.

        Args:
            seconds: ≥ 0, or a timedelta.

        Raises:
            ConfigError: a bad argument.
            IllegalStateError: its ``with`` block was left, or the broker is closed.
        """
        from redelivery.model.errors import ConfigError, IllegalStateError
        from redelivery.policies.checks import check_seconds
        from redelivery.transports.wire.clock import epoch_ms, put_ahead

        left = check_seconds("seconds", seconds)
        if left > _LONGEST:
            raise ConfigError(f"seconds={seconds!r} is more than a hundred years")
        if self not in _running:
            raise IllegalStateError("advance: the with block of fast_forward() was left, and the clock is real again")
        end = epoch_ms() + round(left * 1000)
        while (due := self._core.next_deadline()) is not None and due < end:
            step = min(left, max(0.0, (due - epoch_ms()) / 1000))
            left -= step
            put_ahead(step)
            self._core.tick()
        put_ahead(left)
        self._core.tick()


@contextmanager
def fast_forward(broker: EmbeddedBroker) -> Iterator[FastForward]:
    """A clock that the test puts ahead, of this process: of the broker and of every connection and broker in it.

    By it go redelivery delays, the time-outs of `receive` and of a request, waits between attempts to connect, delivery
    delays and expiry; also over the broker's STOMP and AMQP ports. It runs on by itself, too. Heart-beats, and the
    time-outs of connecting, of requests to the broker and of closing, stay with the real time. At the end of the block
    the wall clock is right again; what waits already keeps what `advance` has taken off its wait.

    Args:
        broker: a running EmbeddedBroker; a broker of another process cannot be made believe that time has passed.

    Raises:
        UnsupportedError: it is another broker.
        IllegalStateError: it does not run, or another fast_forward is on: there is one clock.
    """
    from redelivery.broker import EmbeddedBroker
    from redelivery.model.errors import IllegalStateError, UnsupportedError
    from redelivery.transports.wire.clock import put_right

    if not isinstance(broker, EmbeddedBroker):
        raise UnsupportedError(
            f"fast_forward({broker!r}): only the time of an EmbeddedBroker of this process can be put ahead; pass one, "
            "as the fixture redelivery_broker gives it"
        )
    if not broker.running:
        raise IllegalStateError(f"fast_forward: the embedded broker {broker.name!r} does not run; start() it before")
    if _running:
        raise IllegalStateError(
            "fast_forward: another one is on in this process, which has one clock: leave that first"
        )
    clock = FastForward(broker.core)
    _running.append(clock)
    try:
        yield clock
    finally:
        _running.remove(clock)
        put_right()
