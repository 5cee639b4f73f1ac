"""Threads and tasks, as the workers of a container.

What a worker does is a generator of steps (`base`): each step is a call that waits, which a task awaits.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from typing import Any, Final, TypeAlias, TypeVar, cast

from redelivery.client.aio.listeners import check_awaitable, returned_by
from redelivery.client.aio.made import Made
from redelivery.client.containers.settings import Settings
from redelivery.model.callables import check_runs, not_run, unrun
from redelivery.transports.wire.clock import monotonic
from redelivery.transports.wire.threads.guard import uninterruptible

T = TypeVar("T")
Steps: TypeAlias = Generator[Callable[[], Any], Any, T]
Work: TypeAlias = Steps[None]
_CANCELLED: Final = 1.0  # seconds for tasks that were cancelled


class Threads:
    """The threads of a container; each drives the work of one worker.

    Attributes:
        stopping: set when the container takes nothing new.
        cancelled: the error that ends a worker because it was cancelled, as no thread is.
    """

    cancelled: Final[tuple[type[BaseException], ...]] = ()

    def __init__(self, settings: Settings) -> None:
        check_runs(settings.handler, f"listener_container({settings.name})")
        self.stopping = threading.Event()
        self._name = settings.name
        self._lock = threading.Lock()
        self._threads: set[threading.Thread] = set()
        self._ended = threading.Event()  # the last worker has

    def employ(self, work: Work) -> None:
        """Begin the work of one more worker."""
        name = f"redelivery-container-{self._name}"
        thread = threading.Thread(target=self._drive, args=(work,), name=name, daemon=True)
        with self._lock:  # so that who waits for the threads to end finds none that has not begun
            thread.start()
            self._threads.add(thread)

    def _drive(self, work: Work) -> None:
        try:
            step = next(work)
            while True:
                try:
                    result = step()
                except BaseException as error:  # noqa: BLE001  # it is the work's
                    step = work.throw(error)
                else:
                    step = work.send(result)
        except StopIteration:
            pass
        finally:
            with self._lock:
                self._threads.discard(threading.current_thread())
                if not self._threads:
                    self._ended.set()

    def watch(self, check: Callable[[], float]) -> None:
        """Check, and again after as many seconds as it returned, until the last worker has ended."""

        def watching() -> None:
            while not self._ended.wait(check()):
                pass

        threading.Thread(target=watching, name=f"redelivery-watch-{self._name}", daemon=True).start()

    def pause(self, seconds: float) -> None:
        """Wait, unless the container takes nothing new."""
        self.stopping.wait(seconds)

    def ended(self, until: float) -> bool:
        """Wait for all workers but the caller, until then (monotonic seconds). False: one has not ended."""
        threads = self._others()
        for thread in threads:
            thread.join(max(0.0, until - monotonic()))
        return not any(thread.is_alive() for thread in threads)

    @uninterruptible
    def _others(self) -> list[threading.Thread]:
        with self._lock:
            return [each for each in self._threads if each is not threading.current_thread()]

    def cancel(self) -> None:
        """Do nothing: threads go on."""

    def call(self, handler: Callable[..., Any], given: object, arguments: Mapping[str, Any]) -> object:
        """Call a handler. Raises TypeError: its result is yet to be run."""
        result = handler(given, **arguments)
        kind = None if result is None else unrun(result)
        if kind is not None:
            raise TypeError(not_run(handler, kind))
        return result

    def current(self) -> tuple[str, Callable[[], str]]:
        """The name of the worker that calls this, and what shows its stack."""
        thread = threading.current_thread()

        def stack() -> str:
            frame = sys._current_frames().get(thread.ident or 0)
            return "".join(traceback.format_stack(frame)) if frame is not None else "(it has ended)"

        return thread.name, stack


class Tasks:
    """The tasks of a container; see `Threads`."""

    cancelled: Final[tuple[type[BaseException], ...]] = (asyncio.CancelledError,)

    def __init__(self, settings: Settings) -> None:
        check_awaitable(settings.handler, "listener_container")
        self.stopping = asyncio.Event()
        self._name = settings.name
        self._tasks: set[asyncio.Task[None]] = set()
        self._watching: asyncio.Task[None] | None = None

    def employ(self, work: Work) -> None:
        """Begin the work of one more worker."""
        task = asyncio.get_running_loop().create_task(self._drive(work), name=f"redelivery-container-{self._name}")
        self._tasks.add(task)
        task.add_done_callback(self._left)

    def _left(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not self._tasks and self._watching is not None:
            self._watching.cancel()

    async def _drive(self, work: Work) -> None:
        with suppress(StopIteration):
            step = next(work)
            while True:
                try:
                    result = await step()
                except BaseException as error:  # noqa: BLE001  # it is the work's
                    step = work.throw(error)
                else:
                    step = work.send(result)

    def watch(self, check: Callable[[], float]) -> None:
        """Check, and again after as many seconds as it returned, until the last worker has ended."""

        async def watching() -> None:
            while True:
                await asyncio.sleep(check())

        self._watching = asyncio.create_task(watching())

    async def pause(self, seconds: float) -> None:
        """Wait, unless the container takes nothing new."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.stopping.wait()

    async def ended(self, until: float) -> bool:
        """Wait for all workers but the caller, until then (monotonic seconds). False: one has not ended."""
        tasks = self._others()
        if tasks:
            await asyncio.wait(tasks, timeout=max(0.0, until - monotonic()))
        return all(task.done() for task in tasks)

    async def cancel(self) -> None:
        """Cancel all workers but the caller."""
        tasks = self._others()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_CANCELLED)

    def _others(self) -> list[asyncio.Task[None]]:
        return [task for task in self._tasks if task is not asyncio.current_task()]

    async def call(self, handler: Callable[..., Any], given: object, arguments: Mapping[str, Any]) -> object:
        """Await a handler, and before it those of its arguments that are to be made."""
        made = {name: await value if isinstance(value, Made) else value for name, value in arguments.items()}
        return await returned_by(handler, handler(given, **made))

    def current(self) -> tuple[str, Callable[[], str]]:
        """The name of the worker that calls this, and what shows its stack."""
        task = cast("asyncio.Task[None]", asyncio.current_task())

        def stack() -> str:  # of all coroutines that await one another; `Task.get_stack` has the first only
            lines: list[str] = []
            coroutine: Any = task.get_coro()
            while (frame := getattr(coroutine, "cr_frame", None)) is not None:
                lines += traceback.format_stack(frame, limit=1)
                coroutine = coroutine.cr_await
            return "".join(lines)

        return task.get_name(), stack
