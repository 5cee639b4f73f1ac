"""Running containers until the program is asked to end."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from time import monotonic
from typing import Final, Protocol, cast

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


def run_all(containers: Sequence[Runs], *, drain_timeout: float | timedelta) -> None:
    """See `ListenerContainer.run`."""
    patience = seconds("drain_timeout", drain_timeout)
    asked = Asked(patience)
    never = threading.Event()
    with handling(asked):
        try:
            for each in containers:
                each.start()
            while not asked.times and not any([each.check_ended() for each in containers]):
                never.wait(_LOOK)
            until = monotonic() + patience
            drained = [each.drain(max(0.0, until - monotonic())) for each in _stopped(containers)]
        finally:
            for each in containers:
                each.stop()
    for each in containers:
        each.check_ended()
    if not all(drained):
        log.error("a handler did not return within %g s", patience)
        raise SystemExit(1)


def _stopped(containers: Sequence[Runs]) -> Sequence[Runs]:
    """The same, once each of them takes nothing new."""
    for each in containers:
        each.stop()
    return containers


async def run_all_awaited(containers: Sequence[Awaited], *, drain_timeout: float | timedelta) -> None:
    """See `ListenerContainer.run`."""
    patience = seconds("drain_timeout", drain_timeout)
    asked, ends = Asked(patience), asyncio.Event()
    main = cast("asyncio.Task[None]", asyncio.current_task())
    with handling_in_loop(asked, ends.set, main.cancel):
        try:
            drained = await _serve(containers, ends, patience)
        except asyncio.CancelledError:
            if asked.times < 2:
                raise
            raise SystemExit(asked.exit_code) from None
        finally:
            for each in containers:
                await each.stop()
    for each in containers:
        each.check_ended()
    if not drained:
        log.error("a handler did not return within %g s", patience)
        raise SystemExit(1)


async def _serve(containers: Sequence[Awaited], ends: asyncio.Event, patience: float) -> bool:
    """Until one ends by itself, or all are to end; whether all handlers have returned in time."""
    for each in containers:
        await each.start()
    while not ends.is_set() and not any([each.check_ended() for each in containers]):
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK):
                await ends.wait()
    return all(await asyncio.gather(*(each.drain(patience) for each in containers)))
