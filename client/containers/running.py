"""Running containers until the program is asked to end."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from datetime import timedelta
from time import monotonic
from typing import Any, Final, Protocol, TypeVar, cast

from redelivery.client.arguments import seconds
from redelivery.client.containers.signals import Asked, handling, handling_in_loop
from redelivery.client.observing.log_lines import WORKERS

log = logging.getLogger(WORKERS)
_LOOK: Final = 0.2  # seconds after which one looks whether it was asked to end: a signal's handler must wake nobody


class Runs(Protocol):
    """A container of threads."""

    def start(self) -> None:
        """Consume."""

    def drain(self, timeout: float | timedelta = ...) -> bool:
        """Take nothing new, and finish what is in hand."""

    def stop(self) -> None:
        """Take nothing new."""

    def check_ended(self) -> bool:
        """Whether it has ended by itself. Raises what ended it."""


class Awaited(Protocol):
    """A container of tasks."""

    async def start(self) -> None:
        """Consume."""

    async def drain(self, timeout: float | timedelta = ...) -> bool:
        """Take nothing new, and finish what is in hand."""

    async def stop(self) -> None:
        """Take nothing new, and cancel what runs."""

    def check_ended(self) -> bool:
        """Whether it has ended by itself. Raises what ended it."""


class Closes(Protocol):
    """A connection of threads."""

    def close(self) -> None:
        """End it."""


class ClosesAwaited(Protocol):
    """A connection of tasks."""

    async def close(self) -> None:
        """End it."""


Opened = TypeVar("Opened", bound=Closes)
Made = TypeVar("Made", bound=ClosesAwaited)


def run_all(containers: Sequence[Runs], *, drain_timeout: float | timedelta) -> None:
    """See `ListenerContainer.run`."""
    asked = Asked(seconds("drain_timeout", drain_timeout))
    with handling(asked):
        _run(containers, asked)


def run_connected(
    connect: Callable[[], Opened], listening: Callable[[Opened], Sequence[Runs]], *, drain_timeout: float | timedelta
) -> None:
    """The same, on a connection of its own: a signal ends the wait for it, too. See `App.run`."""
    asked = Asked(seconds("drain_timeout", drain_timeout))
    with handling(asked), ExitStack() as opened:
        made: list[Opened] = []
        opened.callback(lambda: [each.close() for each in made])
        if asked.begins(lambda: made.append(connect())):
            _run(listening(made[0]), asked)
        else:
            asked.check_interrupted()


def _run(containers: Sequence[Runs], asked: Asked) -> None:
    never = threading.Event()

    def start() -> None:
        for each in containers:
            each.start()

    try:
        if asked.begins(start):
            while not asked.times and not any([each.check_ended() for each in containers]):
                never.wait(_LOOK)
        until = monotonic() + asked.drain_timeout
        drained = [each.drain(max(0.0, until - monotonic())) for each in _stopped(containers)]
    finally:
        for each in containers:
            each.stop()
    for each in containers:
        each.check_ended()
    _check_drained(asked, drained)


def _check_drained(asked: Asked, drained: Iterable[bool]) -> None:
    if not all(drained):
        log.error("a handler did not return within %g s", asked.drain_timeout)
        raise SystemExit(1)


def _stopped(containers: Sequence[Runs]) -> Sequence[Runs]:
    """The same, once each of them takes nothing new."""
    for each in containers:
        each.stop()
    return containers


async def run_all_awaited(containers: Sequence[Awaited], *, drain_timeout: float | timedelta) -> None:
    """See `ListenerContainer.run`."""
    asked = Asked(seconds("drain_timeout", drain_timeout))
    async with _asked_in_loop(asked) as ends:
        await _run_awaited(containers, asked, ends)


async def run_connected_awaited(
    connect: Callable[[], Awaitable[Made]],
    listening: Callable[[Made], Sequence[Awaited]],
    *,
    drain_timeout: float | timedelta,
) -> None:
    """See `run_connected`."""
    asked = Asked(seconds("drain_timeout", drain_timeout))
    async with _asked_in_loop(asked) as ends, AsyncExitStack() as opened:
        made: list[Made] = []

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
async def _asked_in_loop(asked: Asked) -> AsyncIterator[asyncio.Event]:
    """The event is set by the first signal; the second one cancels this task, which is SystemExit then."""
    ends = asyncio.Event()
    main = cast("asyncio.Task[None]", asyncio.current_task())
    with handling_in_loop(asked, ends.set, main.cancel):
        try:
            yield ends
        except asyncio.CancelledError:
            if asked.times < 2:
                raise
            raise SystemExit(asked.exit_code) from None


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


async def _run_awaited(containers: Sequence[Awaited], asked: Asked, ends: asyncio.Event) -> None:
    async def start() -> None:
        for each in containers:
            await each.start()

    try:
        await _begun(start(), ends)
        while not ends.is_set() and not any([each.check_ended() for each in containers]):
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK):
                    await ends.wait()
        drained = await asyncio.gather(*(each.drain(asked.drain_timeout) for each in containers))
    finally:
        for each in containers:
            await each.stop()
    for each in containers:
        each.check_ended()
    _check_drained(asked, drained)
