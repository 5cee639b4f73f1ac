"""One thread per process for what no application thread may be there to do: timers, and reading when nobody reads.

It starts with the first need, and ends when no connection is open. It never blocks but in its own poll: what it calls
must not wait.
"""

from __future__ import annotations

import heapq
import os
import select
import socket
import threading
from contextlib import suppress
from itertools import count
from typing import Final

from redelivery.transports.runtime import Owner, Task, Watch
from redelivery.transports.wire.clock import monotonic

_NEVER: Final = float("inf")


class Housekeeper:
    """The thread and its two lists: tasks by time, and descriptors to watch."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owners: set[Owner] = set()
        self._heap: list[tuple[float, int, Task]] = []
        self._due: dict[Task, float] = {}  # what counts: an entry of the heap that differs is stale
        self._watched: dict[Watch, int] = {}
        self._numbers = count()
        self._thread: threading.Thread | None = None
        self._asleep_until = -_NEVER
        self._wake: tuple[socket.socket, socket.socket] | None = None

    def enter(self, owner: Owner) -> None:
        """From now on the thread may be needed."""
        with self._lock:
            self._owners.add(owner)

    def leave(self, owner: Owner, *tasks: Task, watch: Watch) -> None:
        """It is not any more; its tasks and its watch are forgotten."""
        with self._lock:
            self._owners.discard(owner)
            self._watched.pop(watch, None)
            for task in tasks:
                self._due.pop(task, None)
            self._poke()

    def at(self, due: float, task: Task) -> None:
        """Call ``task`` at ``due`` (monotonic seconds), or earlier if it is to be called earlier already."""
        with self._lock:
            if due < self._due.get(task, _NEVER):
                self._due[task] = due
                heapq.heappush(self._heap, (due, next(self._numbers), task))
                self._need(due)

    def watch(self, descriptor: int, watch: Watch) -> None:
        """Call ``watch`` while the descriptor has input, until it says False."""
        with self._lock:
            if descriptor >= 0 and self._watched.get(watch) != descriptor:
                self._watched[watch] = descriptor
                self._need(-_NEVER)

    def orphan(self) -> None:
        """In a child after fork(): give up everything that is the parent's."""
        for owner in self._owners:
            owner.orphan()
        for end in self._wake or ():
            end.close()

    def _need(self, due: float) -> None:
        if self._thread is None:
            self._wake = socket.socketpair()
            for end in self._wake:
                end.setblocking(False)
            self._thread = threading.Thread(target=self._run, name="redelivery-housekeeping", daemon=True)
            self._thread.start()
        elif due < self._asleep_until:
            self._poke()

    def _poke(self) -> None:
        if self._wake is not None and self._asleep_until > -_NEVER:
            with suppress(OSError):  # full: it is awake soon anyway
                self._wake[1].send(b"!")

    def _run(self) -> None:
        assert self._wake is not None, "made before the thread"
        wake = self._wake[0]
        while True:
            with self._lock:
                if not self._owners:
                    self._end()
                    return
                now = monotonic()
                tasks = self._pop_due(now)
                watched = {} if tasks else {descriptor: watch for watch, descriptor in self._watched.items()}
                if not tasks:
                    self._asleep_until = self._heap[0][0] if self._heap else _NEVER
                    timeout = None if self._asleep_until == _NEVER else max(0.0, self._asleep_until - now)
            if tasks:
                self._call(tasks, now)
                continue
            ready = _readable([wake.fileno(), *watched], timeout)
            self._asleep_until = -_NEVER
            for descriptor in ready:
                if descriptor in watched:
                    self._call_watch(descriptor, watched[descriptor])
                else:
                    with suppress(OSError):
                        wake.recv(4096)

    def _call_watch(self, descriptor: int, watch: Watch) -> None:
        with self._lock:  # forgotten first: another request for it meanwhile counts
            if self._watched.pop(watch, None) is None:
                return
        if watch():
            self.watch(descriptor, watch)

    def _pop_due(self, now: float) -> list[Task]:
        tasks = []
        while self._heap and (self._heap[0][0] <= now or self._due.get(self._heap[0][2]) != self._heap[0][0]):
            due, _, task = heapq.heappop(self._heap)
            if self._due.get(task) == due:
                del self._due[task]
                tasks.append(task)
        return tasks

    def _call(self, tasks: list[Task], now: float) -> None:
        for task in tasks:
            again = task(now)
            if again is not None:
                self.at(again, task)

    def _end(self) -> None:
        self._thread = None
        self._heap.clear()
        self._due.clear()
        self._watched.clear()
        assert self._wake is not None, "made before the thread"
        for end in self._wake:
            end.close()
        self._wake = None


def _readable(descriptors: list[int], timeout: float | None) -> list[int]:
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return [descriptor for descriptor, _ in poll.poll(None if timeout is None else timeout * 1000)]


_housekeeper = Housekeeper()


def housekeeper() -> Housekeeper:
    """This process's."""
    return _housekeeper


def _after_fork() -> None:
    global _housekeeper
    parents, _housekeeper = _housekeeper, Housekeeper()  # the parent's has no thread here
    parents.orphan()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
