"""One thread per process for what no application thread may be there to do: timers, and reading when nobody reads.

It starts with the first need, and ends when no connection is open. It never blocks but in its own poll: what it calls
must not wait. Who asks it must not be interrupted (`guard`): each ``with`` here may be torn on Python 3.14.
"""

from __future__ import annotations

import heapq
import os
import socket
import threading
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from itertools import count
from typing import Final

from redelivery.transports.runtime import Owner, Task, Watch
from redelivery.transports.wire.clock import monotonic
from redelivery.transports.wire.polls import CLOSED_BY_PEER, READABLE, poller

_NEVER: Final = float("inf")
_NOTHING: Final = (_NEVER, -1)  # when a task is due that is not known, and its number


class Housekeeper:
    """The thread and its two lists: tasks by time, and descriptors to watch."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owners: set[Owner] = set()
        self._heap: list[tuple[float, int]] = []  # when, and the task's number: a stale entry must keep nothing alive
        self._tasks: dict[int, Task] = {}
        self._due: dict[Task, tuple[float, int]] = {}  # what counts: an entry of the heap that differs is stale
        self._watched: dict[Watch, int] = {}
        self._ends: dict[Watch, int] = {}
        self._numbers = count()
        self._thread: threading.Thread | None = None
        self._asleep_until = -_NEVER
        self._wake: tuple[socket.socket, socket.socket] | None = None

    @property
    def runs(self) -> bool:
        """True: the thread is there. An interrupt must not come while it is started."""
        return self._thread is not None

    def enter(self, owner: Owner) -> None:
        """Note that the thread may be needed from now on."""
        with self._lock:
            self._owners.add(owner)

    def leave(self, owner: Owner, *tasks: Task, watches: Sequence[Watch]) -> None:
        """Remove an owner; its tasks and watches are forgotten."""
        with self._lock:
            self._owners.discard(owner)
            for watch in watches:
                self._watched.pop(watch, None)
                self._ends.pop(watch, None)
            for task in tasks:
                _, number = self._due.pop(task, _NOTHING)
                self._tasks.pop(number, None)
            self._poke()

    def at(self, due: float, task: Task) -> None:
        """Call ``task`` at ``due`` (monotonic seconds), or earlier if it is to be called earlier already."""
        with self._lock:
            known = self._due.get(task, _NOTHING)
            if due < known[0]:
                entry = due, next(self._numbers)
                heapq.heappush(self._heap, entry)
                self._tasks[entry[1]] = task
                self._due[task] = entry
                self._tasks.pop(known[1], None)
            self._need(self._due[task][0])

    def watch(self, descriptor: int, watch: Watch) -> None:
        """Call ``watch`` while the descriptor has input, until it says False."""
        with self._lock:
            if descriptor >= 0 and self._watched.get(watch) != descriptor:
                self._watched[watch] = descriptor
                self._need(-_NEVER)

    def watch_end(self, descriptor: int, watch: Watch) -> None:
        """Call ``watch`` when the peer has closed, until it says False. Where the system does not say, never."""
        with self._lock:
            if descriptor >= 0 and CLOSED_BY_PEER:
                self._ends[watch] = descriptor
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
                ends = {} if tasks else {descriptor: watch for watch, descriptor in self._ends.items()}
                if not tasks:
                    self._asleep_until = self._heap[0][0] if self._heap else _NEVER
                    timeout = None if self._asleep_until == _NEVER else max(0.0, self._asleep_until - now)
            if tasks:
                self._call(tasks, now)
                continue
            ready = _ready((wake.fileno(), *watched), ends, timeout)
            self._asleep_until = -_NEVER
            for descriptor, events in ready:
                if descriptor in watched and events & ~CLOSED_BY_PEER:
                    self._call_watch(descriptor, watched[descriptor], self._watched, self.watch)
                elif descriptor in ends:
                    self._call_watch(descriptor, ends[descriptor], self._ends, self.watch_end)
                elif descriptor == wake.fileno():
                    with suppress(OSError):
                        wake.recv(4096)

    def _call_watch(
        self, descriptor: int, watch: Watch, watches: dict[Watch, int], again: Callable[[int, Watch], None]
    ) -> None:
        with self._lock:  # forgotten first: another request for it meanwhile counts
            if watches.pop(watch, None) is None:
                return
        if watch():
            again(descriptor, watch)

    def _pop_due(self, now: float) -> list[Task]:
        tasks = []
        while self._heap and (self._heap[0][0] <= now or self._heap[0][1] not in self._tasks):
            entry = heapq.heappop(self._heap)
            task = self._tasks.pop(entry[1], None)
            if task is not None and self._due.get(task) == entry:
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
        self._tasks.clear()
        self._due.clear()
        self._watched.clear()
        assert self._wake is not None, "made before the thread"
        for end in self._wake:
            end.close()
        self._wake = None


def _ready(inputs: Collection[int], ends: Collection[int], timeout: float | None) -> list[tuple[int, int]]:
    """The descriptors that have input, or were closed by their peer, and what of it."""
    poll = poller()
    for descriptor in ends:
        poll.register(descriptor, CLOSED_BY_PEER)
    for descriptor in inputs:
        poll.register(descriptor, READABLE | (CLOSED_BY_PEER if descriptor in ends else 0))
    return poll.poll(None if timeout is None else timeout * 1000)


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
