"""Sessions: units of work, and what is made from them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Self, cast

from redelivery.client.aio.browser import QueueBrowser
from redelivery.client.aio.consumer import Consumer
from redelivery.client.aio.core import SessionCore
from redelivery.client.aio.listeners import ListenerLoop
from redelivery.client.aio.made import Closing, Made
from redelivery.client.aio.producer import Producer
from redelivery.client.arguments import check_cause, check_selector, plain_name
from redelivery.client.ledger import ConsumerState
from redelivery.client.news import CloseAsked
from redelivery.client.operations.acknowledge import acknowledge_one
from redelivery.client.operations.attach import ConsumerSpec, attach, temporary
from redelivery.client.operations.browse import BrowseState, check_browsable
from redelivery.client.operations.commit import commit, rollback
from redelivery.client.operations.prepare import SendOptions
from redelivery.model.destinations import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
from redelivery.model.destinations import destination as parse_destination
from redelivery.model.errors import ConnectionLostError, IllegalStateError, JMSError
from redelivery.model.messages import Message, Receipt
from redelivery.model.modes import AckMode
from redelivery.policies.redelivery import RedeliveryPolicy
from redelivery.transports.wire.clock import monotonic

log = logging.getLogger(__name__)


class Session(Closing):
    """One task's conversation with the broker; made by `Connection.session`. The same as `redelivery.Session`.

    A call while another task is inside the session raises IllegalStateError (``close`` aside).
    Leaving its ``async with`` block closes it; a transacted session rolls back what is not committed.
    """

    def __init__(self, core: SessionCore, on_closed: Callable[[Session], None]) -> None:
        self._core = core
        self._loop = ListenerLoop(core)
        self._on_closed = on_closed
        self._consumers = 0
        self._in_block = False
        self._closing: asyncio.Task[None] | None = None

    @property
    def ack_mode(self) -> AckMode:
        """When a message of this session counts as consumed."""
        return self._core.mode

    @property
    def transacted(self) -> bool:
        """Whether commit and rollback decide."""
        return self._core.mode == AckMode.TRANSACTED

    @property
    def closed(self) -> bool:
        """Whether it was closed, or its connection lost."""
        return self._core.life.ended or self._core.lost is not None

    def queue(self, name: str) -> Queue:
        """A queue by its name, which is not created by this; ``queue://name`` is the same."""
        return Queue(plain_name("queue", name))

    def topic(self, name: str) -> Topic:
        """A topic by its name, which is not created by this."""
        return Topic(plain_name("topic", name))

    async def temporary_queue(self) -> TemporaryQueue:
        """A queue that the broker makes and removes with this connection; it may be a ``reply_to``.

        Raises:
            UnsupportedError: the broker makes none over this protocol.
        """
        return cast(TemporaryQueue, await self._temporary("temporary_queue", TemporaryQueue))

    async def temporary_topic(self) -> TemporaryTopic:
        """The same as a topic. Raises UnsupportedError likewise."""
        return cast(TemporaryTopic, await self._temporary("temporary_topic", TemporaryTopic))

    def consumer(
        self,
        destination: Destination | str,
        *,
        selector: str | None = None,
        no_local: bool = False,
        prefetch: int | None = None,
        redelivery_policy: RedeliveryPolicy | None = None,
    ) -> Made[Consumer]:
        """A consumer of a queue or topic: ``await`` it, or ``async with``; see `redelivery.Session.consumer`.

        Raises, when awaited:
            InvalidDestinationError, InvalidSelectorError, SecurityError: the broker refuses it.
            UnsupportedError: the broker cannot do it.
        """
        return Made(self._consumer(destination, selector, no_local, prefetch, redelivery_policy))

    def producer(
        self,
        destination: Destination | str | None = None,
        *,
        persistent: bool = True,
        priority: int = 4,
        ttl: float | timedelta | None = None,
        delivery_delay: float | timedelta | None = None,
    ) -> Made[Producer]:
        """A producer for one destination, or (None) for whatever each send names: ``await`` it, or ``async with``."""

        async def make() -> Producer:
            options = SendOptions.checked(
                destination, persistent=persistent, priority=priority, ttl=ttl, delivery_delay=delivery_delay
            )
            return Producer(self._core, options)

        return Made(self._core.inside("producer", make))

    def browser(self, queue: Destination | str, *, selector: str | None = None) -> Made[QueueBrowser]:
        """A browser of what a queue holds: ``await`` it, or ``async with``; see `redelivery.Session.browser`.

        Raises, when awaited:
            InvalidDestinationError: it is a topic.
            UnsupportedError: it is a pattern, or the broker cannot browse; the text says why.
        """
        core = self._core

        async def make() -> QueueBrowser:
            target = parse_destination(queue)
            check_selector(selector)
            found = check_browsable(core.transport.peer, target, selector)
            window = core.options.prefetch.for_destination(found, browser=True)
            return QueueBrowser(core, BrowseState(found, selector or None, window, core.waiter))

        return Made(core.inside("browser", make))

    async def commit(self) -> None:
        """Everything sent becomes visible, everything received is acknowledged, as one; the next transaction begins.

        One that is cancelled is in doubt, or rolled back where it had not left yet: the error that says so is the
        ``__cause__`` of the CancelledError, and is logged.

        Raises:
            IllegalStateError: the session is not transacted.
            TransactionRolledBackError: the broker refused; nothing was sent, and the policy redelivers the deliveries.
            InDoubtError: the answer did not come; ``sent`` and ``received`` say what it is about.
        """
        self._transacted("commit")
        await self._core.inside("commit", lambda: self._core.perform(commit(self._core)))

    async def rollback(self, cause: BaseException | None = None) -> None:
        """Nothing of the transaction was sent; everything received is redelivered, or dead-lettered, by the policy.

        Args:
            cause: why; it stands on the dead letter.
        """
        self._transacted("rollback")
        check_cause("rollback", cause)
        await self._core.inside("rollback", lambda: self._core.perform(rollback(self._core, cause)))

    async def recover(self, cause: BaseException | None = None) -> None:
        """Everything delivered and not acknowledged is redelivered, or dead-lettered, by the policy (features R6).

        Raises:
            IllegalStateError: the session is transacted; use rollback.
        """
        if self.transacted:
            raise IllegalStateError("recover: the session is transacted; use rollback()")
        check_cause("recover", cause)
        await self._core.inside("recover", lambda: self._core.perform(rollback(self._core, cause)))

    async def acknowledge(self, message: Message | None = None) -> None:
        """As `redelivery.Session.acknowledge`; ``await message.acknowledge()`` is the same.

        Raises:
            IllegalStateError: the session is closed (features R11), or INDIVIDUAL mode and no message.
        """
        core = self._core
        await core.enter("acknowledge")
        try:
            if core.mode == AckMode.INDIVIDUAL:
                if message is None:
                    raise IllegalStateError("acknowledge: in INDIVIDUAL mode acknowledge the message itself")
                acknowledge_one(core, message)
                await core.carry_out()
                await core.relieve()
            elif core.mode == AckMode.CLIENT:
                await core.perform(commit(core, "acknowledge"))
        finally:
            core.turn.release()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Self]:
        """Commit on success; on an Exception roll back with it as the cause and raise it.

        A cancellation and other BaseExceptions roll back without a cause. Does not nest.

        Raises:
            IllegalStateError: the session is not transacted, or already inside such a block.
        """
        self._transacted("transaction")
        if self._in_block:
            raise IllegalStateError(
                "transaction: this session is inside a transaction() block already; it does not nest"
            )
        self._in_block = True
        try:
            yield self
        except BaseException as error:
            self._in_block = False
            try:
                await self.rollback(error if isinstance(error, Exception) else None)
            except JMSError as second:
                error.add_note(f"the rollback failed too: {second}")
            raise
        self._in_block = False
        await self.commit()

    async def close(self) -> None:
        """Close it, within close_timeout. A transacted session rolls back; CLIENT acknowledges nothing (features R10).

        Called from a listener of this session it takes effect when the callback has returned. Twice is harmless. A
        close that is cancelled goes on.
        """
        await self.close_until(monotonic() + self._core.options.close_timeout)

    def check_open(self, action: str) -> None:
        """Raise where it is closed, or its connection lost; the text says when and why."""
        core = self._core
        if core.life.ended:
            raise core.life.problem(action)
        if core.lost is not None:
            raise ConnectionLostError(f"{action}: the connection was lost: {core.lost}") from core.lost

    async def close_until(self, until: float) -> None:
        """`close`, ended by ``until`` (monotonic seconds). For the connection, whose sessions share its time-out."""
        core = self._core
        core.check_loop("close")
        core.step("close", "closed by close()")
        core.waiter.wake()
        if self.close_after_callback(self.close):
            return
        if self._closing is None:
            self._closing = core.runtime.loop.create_task(self._close(until), name="redelivery-close")
        await asyncio.shield(self._closing)

    async def wait_until_idle(self, timeout: float) -> bool:
        """Wait until no listener is running; False where one still is after ``timeout`` seconds. For the connection."""
        return await self._loop.wait_until_idle(timeout)

    def close_after_callback(self, close: Callable[[], Awaitable[None]]) -> bool:
        """True, and ``close`` is awaited later, where the caller is one of our listeners. For the connection."""
        if not self._core.listens:
            return False
        self._core.step("close", "closed by close()")
        self._loop.after_callback.append(close)
        return True

    def __repr__(self) -> str:
        return f"<Session {self.ack_mode.name}{' closed' if self.closed else ''}>"

    async def _consumer(
        self,
        destination: Destination | str,
        selector: str | None,
        no_local: bool,
        prefetch: int | None,
        redelivery_policy: RedeliveryPolicy | None,
    ) -> Consumer:
        core = self._core
        spec = ConsumerSpec.checked(
            core.options,
            destination,
            selector=selector,
            no_local=no_local,
            prefetch=prefetch,
            redelivery_policy=redelivery_policy,
        )
        made: list[ConsumerState] = []

        async def make() -> Consumer:
            self._consumers += 1
            core.take_in()  # what ended, or was closed, meanwhile
            await core.carry_out()
            policy = await core.do(attach(core, spec, f"consumer {self._consumers} of {spec.destination}", made))
            return Consumer(core, made[0], self._loop, cast(Receipt, self), policy)

        try:
            return await self._loop.inside("consumer", make)
        except BaseException:
            for each in made:
                core.notify(CloseAsked(each))  # cancelled: it may be attached, and nobody has it
            raise

    async def _temporary(self, action: str, kind: type[Destination]) -> Destination:
        core = self._core
        return await core.inside(action, lambda: core.do(temporary(core, kind)))

    def _transacted(self, action: str) -> None:
        if not self.transacted:
            raise IllegalStateError(f"{action}: the session's mode is {self.ack_mode.name}, not TRANSACTED")

    async def _close(self, until: float) -> None:
        core = self._core
        try:
            await self._shut(until)
        finally:
            core.step("end", "closed by close()")
            self._on_closed(self)

    async def _shut(self, until: float) -> None:
        """End the listener's task, the books, the channel; what hangs is left after a bounded wait, and said."""
        core = self._core
        core.until = until
        # JMS: a running listener keeps its session until it returns
        if not await self._loop.end(max(0.0, until - monotonic())):
            log.warning("close: a listener did not return within close_timeout; it was cancelled")
        if not await core.turn.take_within(until - monotonic()):
            log.warning("close: a task did not leave the session within close_timeout")
            return
        try:
            core.take_in()
            if core.lost is None and core.away is None:
                await core.end_work(until)
        except JMSError as error:
            log.warning("close: %s", error)
        finally:
            core.ledger.transport_lost()
            core.turn.release()
            core.end_unanswered("the session was closed before the broker's answer came")
