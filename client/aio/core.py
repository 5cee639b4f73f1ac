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
from typing import Any, Final, cast

from redelivery.client.aio.driver import check_loop, run
from redelivery.client.ledger import ConsumerState, Poison, Received
from redelivery.client.operations.close import await_answers, close_channels, close_ledger
from redelivery.client.operations.orders import GRACE, carry_out_first
from redelivery.client.operations.reattach import await_return
from redelivery.client.operations.receive import fetch, next_ready, not_now, receive
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
    """The turn in a session: taken at once or not at all, or after a while; those who wait get it in their order.

    ``heir``: a task that goes on with what the one whose turn it was has begun.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.taken = False
        self.heir: asyncio.Task[None] | None = None
        self._left = False  # to it
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

    def leave_to(self, heir: asyncio.Task[None]) -> None:
        """Keep it taken until that task has ended, too."""
        self.heir = heir
        heir.add_done_callback(self._ended)

    def _ended(self, _: asyncio.Task[None]) -> None:
        self.heir = None
        if self._left:
            self._left = False
            self.release()

    def release(self) -> None:
        """Give it to the next who waits."""
        if self.heir is not None:
            self._left = True
            return
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
        self._finishing: set[asyncio.Task[Any]] = set()

    @property
    def listens(self) -> bool:
        """True: the caller is one of its listeners."""
        return self.listener is not None and self.listener is asyncio.current_task()

    @property
    def in_use(self) -> bool:
        """See SessionState."""
        return self.turn.taken

    # who may come in

    async def enter(self, action: str, patience: float | None = None) -> bool:
        """Take the turn for a public call; the caller releases it in a ``finally``.

        False, and it is not taken: a call that has ended goes on with its dead letter (`carry_out`) for longer than
        ``patience`` seconds; None: as long as that takes.

        Raises:
            IllegalStateError: another task is inside, a listener has the session, or the session is closed; or the
                caller runs in another event loop.
            ConnectionLostError: the connection is gone.
        """
        check_loop(self.runtime, action)
        self._calls += 1
        if self._calls % _OTHERS_TURN == 0:
            await asyncio.sleep(0)
        heir = self.turn.heir is not None
        if not self.turn.take() and not (
            (heir or self.visitors or self.listens)
            and await self.turn.take_within(patience if heir else self.options.close_timeout)
        ):
            if heir and patience is not None:
                return False
            raise self._busy(action)
        if self.needs_check:
            problem = self.ended(action) or self.listened(action)
            if problem is not None:
                self.turn.release()
                raise problem
        return True

    async def inside(self, action: str, step: Callable[[], Awaitable[T]]) -> T:
        """`enter`, ``step``, and out again."""
        await self.enter(action)
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

    async def to_the_end(self, work: Coroutine[Any, Any, T]) -> T:
        """Await it; when the caller is cancelled it goes on without him."""
        return await asyncio.shield(self._begin(work))

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

    def raise_ended(self, action: str) -> None:
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
        try:
            waiter = cast(LoopWaiter, self.waiter)
            result = await run(flow, self.epoch, waiter, self.options.request_timeout, self.until)  # as `do`
        except JMSError:
            if self.lost is None:
                await self.carry_out()
            raise
        except asyncio.CancelledError:
            self._let_come_back()
            raise
        if self.ledger.orders:
            await self.carry_out()
        return result

    async def carry_out(self, deadline: float | None = None) -> bool:
        """Carry out the ledger's orders; False: one goes on by itself, as the caller's time is over.

        A dead letter that has begun is made to its end, also where the caller is cancelled: nobody could know whether
        the broker has it, and another one would be made. The session's turn stays taken meanwhile.
        """
        while self.ledger.orders:
            if not isinstance(self.ledger.orders[0], Poison):
                await self.do(carry_out_first(self))
            elif not await self._dead_letter(deadline):
                return False
        return True

    async def _dead_letter(self, deadline: float | None) -> bool:
        task = self._begin(self.do(carry_out_first(self)), "redelivery-dead-letter")
        try:
            await asyncio.wait((task,), timeout=None if deadline is None else max(deadline - self.now(), GRACE))
        except BaseException:
            self._go_on_alone(task)
            raise
        if not task.done():
            self._go_on_alone(task)
            return False
        task.result()
        return True

    def _go_on_alone(self, task: asyncio.Task[None]) -> None:
        if not task.done():
            self.turn.leave_to(task)
        task.add_done_callback(self._say_left)

    def _say_left(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if isinstance(error, JMSError) and not isinstance(error, ConnectionLostError):
            self.report(error)

    async def come_back(self) -> None:
        """On the connection that has come, unless the one whose turn it is does so himself."""
        if not self.turn.take():
            return
        self.visitors += 1
        try:
            self.take_in()
            if self.epoch.successor is not None and not self.life.ended:
                await self.do(await_return(self, self.now()))  # if it is lost again, another task comes with the next
        except JMSError as error:
            self.report(error)
        finally:
            self.visitors -= 1
            self.turn.release()

    def _let_come_back(self) -> None:
        """One who was cancelled may have been about to bring the session back; his turn ends in this step."""
        if (self.epoch.lost is not None or self.inbox.news) and not self.life.ended:
            self._begin(self.come_back(), "redelivery-come-back")

    async def receive(
        self,
        consumer: ConsumerState,
        timeout: float | None,
        hand: list[Received],
        delivery: Received | None,
        *,
        hold: bool,
    ) -> Received | None:
        """The next delivery for a consumer; None after ``timeout`` seconds or once it is being closed.

        ``hand``: what the caller has taken; it is put there, and released (`release`) if the caller fails.
        ``delivery``: what it has found already, and orders are to carry out.

        Raises:
            ConnectionLostError: the connection is gone.
            JMSError: the broker has ended the consumer.
        """
        deadline = None if timeout is None else self.now() + timeout
        delivery = delivery or next_ready(self, consumer, hand, hold)
        before, self.hand = self.hand, hand
        try:
            if delivery is None:
                if timeout == 0:
                    await self.do(fetch(self, consumer))
                delivery = await self.do(receive(self, consumer, deadline, hand, hold=hold))
            while self.ledger.orders:
                if not await self.carry_out(deadline):
                    not_now(self, delivery, hand)
                    return None
                if delivery not in hand:  # or no more: the connection was lost meanwhile
                    delivery = await self.do(receive(self, consumer, deadline, hand, hold=hold))
        finally:
            self.hand = before
        return delivery

    async def relieve(self) -> None:
        """Wait until the peer has taken what is written, where too much of it waits."""
        if self.epoch.channel.congested:
            await self.do(await_room(self))

    async def end_work(self, until: float) -> None:
        """For the close: roll back, wait for what is still unanswered, end the channels."""
        try:
            await self.do(close_ledger(self))
            await self.carry_out()
            await run(await_answers(self), self.epoch, cast(LoopWaiter, self.waiter), NEVER, until)
        finally:
            await self.do(close_channels(self))
