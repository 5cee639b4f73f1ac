"""The threads as a connection needs them: the housekeeping thread's lists, and waiters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from redelivery.transports.runtime import Owner, Task, Watch
from redelivery.transports.wire.threads.housekeeping import housekeeper
from redelivery.transports.wire.threads.waiter import ThreadWaiter


class ThreadRuntime:
    """`redelivery.transports.runtime.BlockingRuntime` of this process's threads."""

    blocks: Literal[True] = True

    def __init__(self, *, notices_ends: bool = False) -> None:
        self._notices_ends = notices_ends  # of connections that nobody reads

    def new_waiter(self) -> ThreadWaiter:
        """See `BlockingRuntime.new_waiter`."""
        return ThreadWaiter()

    def enter(self, owner: Owner) -> None:
        """See `BlockingRuntime.enter`."""
        housekeeper().enter(owner)

    def leave(self, owner: Owner, *tasks: Task, watches: Sequence[Watch]) -> None:
        """See `BlockingRuntime.leave`."""
        housekeeper().leave(owner, *tasks, watches=watches)

    def at(self, due: float, task: Task) -> None:
        """See `BlockingRuntime.at`."""
        housekeeper().at(due, task)

    def watch(self, descriptor: int, watch: Watch) -> None:
        """See `BlockingRuntime.watch`."""
        housekeeper().watch(descriptor, watch)

    def when_ended(self, descriptor: int, watch: Watch) -> None:
        """See `BlockingRuntime.when_ended`."""
        if self._notices_ends:
            housekeeper().watch_end(descriptor, watch)


THREADS: Final = ThreadRuntime()
NOTICING: Final = ThreadRuntime(notices_ends=True)
