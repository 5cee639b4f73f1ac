"""A session that tasks use: who may come in, and how the holder waits.

1. It is one task's `turn` at a time. Every public call takes it without waiting, so that a second task gets an error
   that says so instead of a race; only `close`, `listen` and the listener's task wait for it.
2. It is never held while application code runs.
3. Cancellation ends a wait and nothing else; what a call has taken by then is put back by `release`.
4. A call whose answer is there does not wait; now and then it does, or a backlog would keep the loop from other tasks.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, cast

from redelivery.client.aio.driver import check_loop, run
from redelivery.client.operations.close import close_channels, end_work
from redelivery.client.operations.orders import carry_out, finish, performed
from redelivery.client.operations.reattach import come_back
from redelivery.client.operations.send import await_room
from redelivery.client.session.inbox import ReportError
from redelivery.client.session.shared import Shared
from redelivery.client.session.state import NEVER, SessionState
from redelivery.model.errors import ConnectionLostError, IllegalStateError, JMSError, RequestTimeoutError
from redelivery.model.modes import AckMode
from redelivery.transports.seam import Flow, T, Transport
from redelivery.transports.wire.aio.runtime import LoopRuntime
from redelivery.transports.wire.aio.waiter import LoopWaiter

_OTHERS_TURN: Final = 100  # calls after which one lets the other tasks run


class Turn:
    """The turn in a session: taken at once or not at all, or after a while; those who wait get it in their order."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.taken = False
        self._waiting: deque[asyncio.Future[bool]] = deque()

    def take(self) -> bool:
        """At once; False where another task has it."""
        if self.taken:
            return False
        self.taken = True
        return True

    async def take_within(self, timeout: float | None) -> bool:
        """Within ``timeout`` seconds; None waits as long as it takes."""
        if self.take():
            return True
        future: asyncio.Future[bool] = self._loop.create_future()
        self._waiting.append(future)
        timer = None if timeout is None else self._loop.call_later(max(0.0, timeout), _expire, future)
        try:
            return await future
        except asyncio.CancelledError:
            if not future.cancelled() and future.result():
                self.release()  # it came in the same moment
            raise
        finally:
            if timer is not None:
                timer.cancel()

    def release(self) -> None:
        """Give it to the next who waits."""
        while self._waiting:
            future = self._waiting.popleft()
            if not future.done():
                future.set_result(True)
                return
        self.taken = False


def _expire(future: asyncio.Future[bool]) -> None:
    if not future.done():
        future.set_result(False)


class SessionCore(SessionState):
    """The part that Session, Consumer, Producer and the listener's task of one session share."""

    def __init__(
        self, transport: Transport, shared: Shared, mode: AckMode, report: ReportError, *, runtime: LoopRuntime
    ) -> None:
        super().__init__(transport, shared, mode, report)
        self.runtime = runtime
        self.until = NEVER  # while it is being closed: when that must have ended (monotonic seconds)
        self.listener: asyncio.Task[None] | None = None  # of a session that listens
        self.turn = Turn(runtime.loop)
        self.visitors = 0  # tasks that are in, or wait to come in, for a moment only: see `inside_patiently`
        self._calls = 0
        self._closing: asyncio.Task[None] | None = None
        self._finishing: set[asyncio.Task[Any]] = set()
        self.finisher: asyncio.Task[None] | None = None  # who goes on with what is unfinished where nobody else comes

    @property
    def listens(self) -> bool:
        """True: the caller is one of its listeners."""
        return self.listener is not None and self.listener is asyncio.current_task()

    @property
    def in_use(self) -> bool:
        """See SessionState."""
        return self.turn.taken

    # who may come in

    async def _enter(self, action: str, patience: float | None) -> bool:
        """Take the turn for a public call; the caller releases it in a ``finally``.

        False, and it is not taken: a call that has ended goes on with its dead letter (`carry_out`) for longer than
        ``patience`` seconds; None: as long as that takes.

        Raises:
            IllegalStateError: another task is inside, a listener has the session, or the session is closed; or the
                caller runs in another event loop.
            ConnectionLostError: the connection is gone.
        """
        if self._calls % _OTHERS_TURN == 0:
            await asyncio.sleep(0)
        if not self.turn.take() and not await self._take_turn(action, patience):
            return False
        entered = False
        try:
            if self.unfinished:
                late = None if patience is None else self.now() + patience
                if not await self.do(finish(self, late)):
                    return False
            if self.needs_check:
                problem = self.ended(action) or self.listened(action)
                if problem is not None:
                    raise problem
            entered = True
        finally:
            if not entered:
                self.turn.release()
        return True

    def _enter_at_once(self, action: str) -> bool:
        """`enter`, as most calls can, which are spared a coroutine."""
        check_loop(self.runtime, action)
        self._calls += 1
        if self.needs_check or self.unfinished or self.turn.taken or self._calls % _OTHERS_TURN == 0:
            return False
        self.turn.taken = True
        return True

    async def _take_turn(self, action: str, patience: float | None) -> bool:
        """From one who has it only for a moment: he closes a consumer, or sets a listener, or makes a dead letter."""
        if not self.visitors and not self.listens:
            raise self._busy(action)
        waits = patience is not None and self.finisher is not None
        if await self.turn.take_within(patience if waits else self.options.close_timeout):
            return True
        if waits:
            return False
        raise self._busy(action)

    async def enter_patiently(self, timeout: float) -> bool:
        """Take the turn within ``timeout`` seconds."""
        return await self.turn.take_within(timeout)

    def leave(self) -> None:
        """Give the turn to the next who waits."""
        self.turn.release()

    async def inside(
        self, action: str, step: Callable[[], Awaitable[T]], patience: float | None = None, late: T | None = None
    ) -> T:
        """`enter`, ``step``, and out again; ``late``: what it returns where it came in too late."""
        if not self._enter_at_once(action) and not await self._enter(action, patience):
            return late  # type: ignore[return-value]  # given with ``patience``
        try:
            return await step()
        finally:
            self.turn.release()

    async def inside_patiently(self, action: str, step: Callable[[], Awaitable[T]]) -> T:
        """The same whatever the state of the session: waits, bounded, for the one whose turn it is."""
        check_loop(self.runtime, action)
        self.visitors += 1
        self.waiter.wake()
        try:
            if not await self.turn.take_within(self.options.close_timeout):
                raise RequestTimeoutError(
                    f"{action}: a task did not leave the session within close_timeout={self.options.close_timeout:g} s"
                )
            try:
                return await step()
            finally:
                self.turn.release()
        finally:
            self.visitors -= 1

    def closes_elsewhere(self, close: Callable[[], Awaitable[None]]) -> bool:  # noqa: ARG002 - as of threads
        """No: one who closes is in the connection's loop, or gets an IllegalStateError that says so."""
        check_loop(self.runtime, "close")
        return False

    async def to_the_end(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Await it; when the caller is cancelled it goes on without him."""
        return await asyncio.shield(self._begin(work()))

    async def close_once(self, work: Callable[[], Coroutine[Any, Any, None]], until: float) -> None:  # noqa: ARG002
        """Do it, unless another task does, or has: then wait for that. When the caller is cancelled it goes on."""
        if self._closing is None:
            self._closing = self.runtime.loop.create_task(work(), name="redelivery-close")
        await asyncio.shield(self._closing)

    def _begin(self, work: Coroutine[Any, Any, T], name: str | None = None) -> asyncio.Task[T]:
        """A task that the loop alone would not keep."""
        task = self.runtime.loop.create_task(work, name=name)
        self._finishing.add(task)
        task.add_done_callback(self._finishing.discard)
        return task

    def _busy(self, action: str) -> JMSError:
        if self.life.ended:
            return self.life.problem(action)  # it is being closed
        return self.listened(action) or IllegalStateError(
            f"{action}: another task is using this session; a JMS session serves one task at a time, "
            "so give each task a session of its own; to send from any task there is connection.publisher()"
        )

    def check_open(self, action: str) -> None:
        """Raise where the session is closed or lost; a listener may be set. For the one whose turn it is."""
        problem = self.ended(action)
        if problem is not None:
            raise problem

    # how its holder waits

    async def do(self, flow: Flow[T]) -> T:
        """Drive a flow, each answer within `request_timeout`."""
        waiter = cast(LoopWaiter, self.waiter)
        try:
            return await run(flow, self.epoch, waiter, self.options.request_timeout, self.until)
        except asyncio.CancelledError:
            self._let_come_back()
            raise

    async def perform(self, flow: Flow[T]) -> T:
        """Drive an operation, and carry out what the ledger has ordered because of it."""
        return await self.do(performed(self, flow))

    async def carry_out(self) -> None:
        """Carry out the ledger's orders, where there are any."""
        if self.ledger.orders or self.unfinished:
            await self.do(carry_out(self))

    def finish_later(self) -> None:
        """See SessionState."""
        if self.finisher is None and not self.runtime.loop.is_closed():
            self.finisher = self._begin(self._finish_alone(), "redelivery-dead-letter")

    async def _finish_alone(self) -> None:
        """As soon as it is its turn; one whose turn it is before goes on with it himself."""
        self.visitors += 1
        entered = False
        try:
            entered = await self.turn.take_within(self.options.request_timeout)
            if entered and self.unfinished:
                await self.do(finish(self))
        except ConnectionLostError:
            pass  # the session's next call meets it
        except JMSError as error:
            self.report(error)
        finally:
            self.finisher = None
            self.visitors -= 1
            if entered:
                self.turn.release()

    async def come_back(self) -> None:
        """On the connection that has come, unless the one whose turn it is does so himself."""
        if not self.turn.take():
            return
        self.visitors += 1
        try:
            await self.do(come_back(self, self.now()))  # if it is lost again, another task comes with the next
        except JMSError as error:
            self.report(error)
        finally:
            self.visitors -= 1
            self.turn.release()

    def _let_come_back(self) -> None:
        """One who was cancelled may have been about to bring the session back; his turn ends in this step."""
        if (self.epoch.lost is not None or self.inbox.news) and not self.life.ended:
            self._begin(self.come_back(), "redelivery-come-back")

    async def relieve(self) -> None:
        """Wait until the peer has taken what is written, where too much of it waits; the next call meets a loss."""
        if self.epoch.channel.congested:
            with suppress(ConnectionLostError):
                await self.do(await_room(self))

    async def end_work(self) -> None:
        """For the close: roll back, wait for what is still unanswered, end the channels."""
        try:
            await self.do(end_work(self))
        finally:
            await self.do(close_channels(self))
