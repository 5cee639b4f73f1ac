"""Under what a connection runs, threads or an event loop: who waits, who keeps the time, and who reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal, Protocol, TypeAlias

from redelivery.transports.flows import Waiter

OF_THE_PARENT: Final = "the connection was made before fork() and is the parent's: make one in the child"
BROKER_OF_THE_PARENT: Final = "it was started before fork() and is the parent's: start one in the child"
Task: TypeAlias = Callable[[float], float | None]  # is given the time; says when it wants to be called again
Watch: TypeAlias = Callable[[], bool]  # is called when there is input, or room; says whether to go on watching


class Owner(Protocol):
    """An open connection."""

    def orphan(self) -> None:
        """This process is a child after fork(): the connection is the parent's."""


class _Common(Protocol):
    """The part that both have. What it calls must not wait."""

    def new_waiter(self) -> Waiter:
        """Make a place to wait; see `redelivery.transports.seam.Transport.new_waiter`."""

    def leave(self, owner: Owner, *tasks: Task, watches: Sequence[Watch]) -> None:
        """The owner's connection has ended; its tasks and watches are forgotten."""

    def at(self, due: float, task: Task) -> None:
        """Call ``task`` at ``due`` (monotonic seconds), or earlier if it is to be called earlier already."""

    def watch(self, descriptor: int, watch: Watch) -> None:
        """Call ``watch`` while the descriptor has input, until it says False."""


class BlockingRuntime(_Common, Protocol):
    """Threads, of which each waits itself for what the system takes and what comes."""

    @property
    def blocks(self) -> Literal[True]:
        """A call may hold the thread that makes it."""

    def enter(self, owner: Owner) -> None:
        """The owner's connection may need the housekeeping thread from now on."""

    def when_ended(self, descriptor: int, watch: Watch) -> None:
        """Call ``watch`` when the peer has closed it, until it says False; where nobody reads, that is not noticed."""


class NonBlockingRuntime(_Common, Protocol):
    """An event loop, which reads whatever comes and notices an end by that."""

    @property
    def blocks(self) -> Literal[False]:
        """No call holds the loop: what the system does not take leaves when it does."""

    def soon(self, work: Callable[[], None]) -> None:
        """Do it behind the tasks that were woken before."""

    def when_writable(self, descriptor: int, watch: Watch) -> None:
        """Call ``watch`` when the descriptor takes output, until it says False."""

    def unwatch(self, descriptor: int) -> None:
        """The descriptor will be closed."""


Runtime: TypeAlias = BlockingRuntime | NonBlockingRuntime
