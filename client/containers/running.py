"""A program that only runs containers, and what SIGTERM and Ctrl-C mean for it: one drains, a second one ends it."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager, suppress
from datetime import timedelta
from time import monotonic
from types import FrameType
from typing import Any, Final, Protocol, TypeVar, cast

from redelivery.client.arguments import seconds
from redelivery.client.observing.log_lines import WORKERS
from redelivery.model.errors import IllegalStateError

log = logging.getLogger(WORKERS)
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_POLL: Final = 0.2  # seconds after which one checks whether it was asked to end: a signal's handler must wake nobody


class AskedToEnd(BaseException):
    """A signal has come before the program had begun."""


class StopRequests:
    """Counts how often the program was asked to end, and knows by which signal the last time."""

    def __init__(self, drain_timeout: float) -> None:
        self.drain_timeout = drain_timeout
        self.times = 0
        self.number = 0
        self.interrupts = False  # whether the first one ends what the main thread waits for

    def begins(self, step: Callable[[], object]) -> bool:
        """Take a step of the beginning, which a signal ends; False: one has come, and there is nothing to begin."""
        try:
            self.interrupts = True
            try:
                if not self.times:
                    step()
            finally:
                self.interrupts = False
        except AskedToEnd:
            return False
        return not self.times

    def check_interrupted(self) -> None:
        """Raise KeyboardInterrupt, where it was Ctrl-C that came before anything had begun."""
        if self.number == signal.SIGINT:
            raise KeyboardInterrupt

    @property
    def exit_code(self) -> int:
        """Of a program that a signal has ended."""
        return 128 + self.number

    def again(self, number: int) -> bool:
        """One more signal; True: it is to end at once."""
        self.times, self.number = self.times + 1, number
        if self.times == 1:
            log.info(
                "%s: the messages being handled are finished, within %g s; a second one ends it at once",
                signal.Signals(number).name,
                self.drain_timeout,
            )
        return self.times > 1


@contextmanager
def handling(asked: StopRequests) -> Iterator[None]:
    """Handle the signals meanwhile; the second one raises SystemExit.

    Raises:
        IllegalStateError: this is not the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        raise IllegalStateError("run() handles signals, which only the main thread can: elsewhere start() and drain()")

    def handle(number: int, _frame: object) -> None:
        if asked.again(number):
            raise SystemExit(asked.exit_code)
        if asked.interrupts:
            raise AskedToEnd

    with handled_by(handle):
        yield


@contextmanager
def handled_by(handle: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    """Call this for the signals meanwhile, and their handlers of before afterwards. In the main thread."""
    before = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)  # None: it is not Python's


class Runs(Protocol):
    """A container; one of tasks returns what is to be awaited."""

    def start(self) -> Any:
        """Consume."""

    def drain(self, timeout: float | timedelta = ...) -> Any:
        """Take nothing new, and finish the messages being handled."""

    def stop(self) -> Any:
        """Take nothing new; of tasks: and cancel what runs."""

    def _check_ended(self) -> bool:
        """Check whether it has ended by itself. Raises what ended it."""


class Closes(Protocol):
    """A connection; one of tasks returns what is to be awaited."""

    def close(self) -> Any:
        """End it."""


C = TypeVar("C", bound=Closes)


def run_all(containers: Sequence[Runs], *, drain_timeout: float | timedelta) -> None:
    """See `ListenerContainer.run`."""
    asked = StopRequests(seconds("drain_timeout", drain_timeout))
    with handling(asked):
        _run(containers, asked)


def run_connected(
    connect: Callable[[], C], listening: Callable[[C], Sequence[Runs]], *, drain_timeout: float | timedelta
) -> None:
    """The same, on a connection of its own: a signal ends the wait for it, too. See `App.run`."""
    asked = StopRequests(seconds("drain_timeout", drain_timeout))
    with handling(asked), ExitStack() as opened:
        made: list[C] = []
        opened.callback(lambda: [each.close() for each in made])
        if asked.begins(lambda: made.append(connect())):
            _run(listening(made[0]), asked)
        else:
            asked.check_interrupted()


def _run(containers: Sequence[Runs], asked: StopRequests) -> None:
    never = threading.Event()

    def start() -> None:
        for each in containers:
            each.start()

    try:
        if asked.begins(start):
            while not asked.times and not any([each._check_ended() for each in containers]):
                never.wait(_POLL)
        until = monotonic() + asked.drain_timeout
        for each in containers:
            each.stop()
        drained = [each.drain(max(0.0, until - monotonic())) for each in containers]
    finally:
        for each in containers:
            each.stop()
    for each in containers:
        each._check_ended()
    _check_drained(asked, drained)


def _check_drained(asked: StopRequests, drained: Iterable[bool]) -> None:
    if not all(drained):
        log.error("a handler did not return within %g s", asked.drain_timeout)
        raise SystemExit(1)


async def run_all_awaited(containers: Sequence[Runs], *, drain_timeout: float | timedelta) -> None:
    """See `ListenerContainer.run`."""
    asked = StopRequests(seconds("drain_timeout", drain_timeout))
    async with _handling_awaited(asked) as ends:
        await _run_awaited(containers, asked, ends)


async def run_connected_awaited(
    connect: Callable[[], Awaitable[C]],
    listening: Callable[[C], Sequence[Runs]],
    *,
    drain_timeout: float | timedelta,
) -> None:
    """See `run_connected`."""
    asked = StopRequests(seconds("drain_timeout", drain_timeout))
    async with _handling_awaited(asked) as ends, AsyncExitStack() as opened:
        made: list[C] = []

        async def begin() -> None:
            connection = await connect()
            opened.push_async_callback(connection.close)
            made.append(connection)

        await _begun(begin(), ends)
        if made and not ends.is_set():
            await _run_awaited(listening(made[0]), asked, ends)
        else:
            asked.check_interrupted()


@asynccontextmanager
async def _handling_awaited(asked: StopRequests) -> AsyncIterator[asyncio.Event]:
    """Handle the signals: the first one sets the event, the second one cancels this task, which is SystemExit then.

    Raises:
        IllegalStateError: the loop that runs is not the main thread's.
    """
    loop, ends = asyncio.get_running_loop(), asyncio.Event()
    main = cast("asyncio.Task[None]", asyncio.current_task())

    def handle(number: int) -> None:
        if asked.again(number):
            main.cancel()
        else:
            ends.set()

    try:
        for number in _SIGNALS:
            loop.add_signal_handler(number, handle, number)
    except NotImplementedError as error:
        raise IllegalStateError(
            "run() needs a loop that handles signals, which Windows' loops do not; use start()"
        ) from error
    except (ValueError, RuntimeError) as error:
        raise IllegalStateError("run() handles signals, which only the main thread's loop can") from error
    try:
        yield ends
    except asyncio.CancelledError:
        if asked.times < 2:
            raise
        raise SystemExit(asked.exit_code) from None
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)


async def _begun(step: Coroutine[Any, Any, None], ends: asyncio.Event) -> None:
    """A step of the beginning, which a signal ends."""
    task, asked = asyncio.ensure_future(step), asyncio.ensure_future(ends.wait())
    try:
        await asyncio.wait((task, asked), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
    finally:
        for each in (task, asked):
            each.cancel()
        await asyncio.gather(task, asked, return_exceptions=True)


async def _run_awaited(containers: Sequence[Runs], asked: StopRequests, ends: asyncio.Event) -> None:
    async def start() -> None:
        for each in containers:
            await each.start()

    try:
        await _begun(start(), ends)
        while not ends.is_set() and not any([each._check_ended() for each in containers]):
            with suppress(TimeoutError):
                async with asyncio.timeout(_POLL):
                    await ends.wait()
        drained = await asyncio.gather(*(each.drain(asked.drain_timeout) for each in containers))
    finally:
        for each in containers:
            await each.stop()
    for each in containers:
        each._check_ended()
    _check_drained(asked, drained)
