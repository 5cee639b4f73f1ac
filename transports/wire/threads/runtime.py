"""The threads as a connection needs them: the housekeeping thread's lists, and waiters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from redelivery.transports.runtime import Owner, Task, Watch
from redelivery.transports.wire.threads.housekeeping import housekeeper
from redelivery.transports.wire.threads.waiter import ThreadWaiter


class ThreadRuntime:
    """`redelivery.transports.runtime.Runtime` of this process's threads."""

    blocks = True

    def __init__(self, *, notices_ends: bool = False) -> None:
        self._notices_ends = notices_ends  # of connections that nobody reads

    def new_waiter(self) -> ThreadWaiter:
        """See `Runtime.new_waiter`."""
        return ThreadWaiter()

    def enter(self, owner: Owner) -> None:
        """See `Runtime.enter`."""
        housekeeper().enter(owner)

    def leave(self, owner: Owner, *tasks: Task, watches: Sequence[Watch]) -> None:
        """See `Runtime.leave`."""
        housekeeper().leave(owner, *tasks, watches=watches)

    def at(self, due: float, task: Task) -> None:
        """See `Runtime.at`."""
        housekeeper().at(due, task)

    def soon(self, work: Callable[[], None]) -> None:
        """See `Runtime.soon`."""
        work()

    def watch(self, descriptor: int, watch: Watch) -> None:
        """See `Runtime.watch`."""
        housekeeper().watch(descriptor, watch)

    def when_ended(self, descriptor: int, watch: Watch) -> None:
        """See `Runtime.when_ended`."""
        if self._notices_ends:
            housekeeper().watch_end(descriptor, watch)

    def when_writable(self, descriptor: int, watch: Watch) -> None:
        """See `Runtime.when_writable`: a thread waits for that itself."""
        raise AssertionError(f"a thread waits until {descriptor} takes output, and calls {watch} then")

    def unwatch(self, descriptor: int) -> None:
        """See `Runtime.unwatch`: a poll of a closed descriptor says so."""


THREADS: Final = ThreadRuntime()
NOTICING: Final = ThreadRuntime(notices_ends=True)
