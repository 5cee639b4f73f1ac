"""Work that an interrupt must not tear.

Python raises KeyboardInterrupt, and whatever else a signal handler raises, in the main thread only, after nearly any
call. What may not stop halfway (a frame that is half written, a table that is half changed) is therefore done by
another thread while the main thread waits for it; the interrupt is raised when it is done. Other threads do it
themselves. The hand-over costs as much as a few thread switches: 10 to 100 microseconds.

An interrupt waits for the work, which either does not wait for long, or is notified (``on_interrupt``).
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Final, Generic, TypeVar

T = TypeVar("T")
_IDLE: Final = 2.0  # seconds without work after which the thread ends
_LOOK: Final = 1.0  # seconds; see `interruptible`
_main = threading.main_thread().ident


def interruptible(timeout: float | None) -> float | None:
    """How long the thread that calls may wait at once, of the ``timeout`` seconds it has: then it waits again.

    Python looks for signals before it waits, and a signal ends the wait; one that comes between the two is seen when
    the wait is over. So the main thread, where their handlers run, waits for a second at once.
    """
    if threading.get_ident() != _main or (timeout is not None and timeout <= _LOOK):
        return timeout
    return _LOOK


class _Job(Generic[T]):
    __slots__ = ("done", "error", "gate", "value", "work")

    def __init__(self, work: Callable[[], T]) -> None:
        self.work = work
        self.gate = threading.Lock()
        self.gate.acquire()
        self.done = False
        self.value: T
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.value = self.work()
        except BaseException as error:  # noqa: BLE001  # it is raised in the thread that asked
            self.error = error
        self.done = True
        self.gate.release()


class Shelter:
    """The thread, there while there is work, and its queue. Only the main thread gives it any: one thing at a time."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[_Job[object]] = SimpleQueue()
        self._serving = False
        self._job: _Job[object] | None = None

    @property
    def busy(self) -> bool:
        """Whether its work is not done: the caller is a signal handler, in the midst of the wait for that."""
        return self._job is not None and not self._job.done

    def run(self, work: Callable[[], T], on_interrupt: Callable[[], None] | None) -> T:
        """Do it on the other thread, whole, and wait; an interrupt that comes meanwhile is raised afterwards."""
        job = _Job(work)
        try:
            self._job = job  # type: ignore[assignment]  # of any kind
            self._jobs.put(job)  # type: ignore[arg-type]  # a queue of jobs of any kind
            self._wait(job)
        except BaseException:
            if on_interrupt is not None:
                on_interrupt()
            self._wait(job)  # the first interrupt; in that wait, which is short, another one would not be held up
            self._job = job.error = None
            raise
        self._job = None
        error, job.error = job.error, None
        if error is not None:
            try:
                raise error
            finally:
                del error  # its traceback holds this frame
        return job.value

    def _wait(self, job: _Job[T]) -> None:
        if not self._serving:
            threading.Thread(target=self._serve, name="redelivery-shelter", daemon=True).start()
        while not job.done:
            job.gate.acquire(timeout=_LOOK)  # see `interruptible`

    def _serve(self) -> None:
        self._serving = True
        while True:
            try:
                self._jobs.get(timeout=_IDLE).run()
            except Empty:
                self._serving = False
                if self._jobs.empty():  # read after: a thread that puts something reads `_serving` afterwards
                    return
                self._serving = True


_shelter = Shelter()


def sheltered(work: Callable[[], T], on_interrupt: Callable[[], None] | None = None) -> T:
    """Do it so that no interrupt can end it halfway; what it returns, or raises.

    ``on_interrupt``: called when one has come, for work that can wait for long: it must end soon then.
    """
    if threading.get_ident() != _main or sys.is_finalizing():  # `current_thread` would keep one it does not know
        return work()
    return (Shelter() if _shelter.busy else _shelter).run(work, on_interrupt)


def _after_fork() -> None:
    global _shelter, _main  # the thread is the parent's; the one that forked is the main thread here
    _shelter, _main = Shelter(), threading.get_ident()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
