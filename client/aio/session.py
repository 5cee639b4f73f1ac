"""Sessions: units of work, and what is made from them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Self, Unpack, cast

from redelivery.client.aio.browser import QueueBrowser
from redelivery.client.aio.consuming import MakesConsumers
from redelivery.client.aio.core import SessionCore
from redelivery.client.aio.driver import check_loop
from redelivery.client.aio.listeners import ListenerLoop
from redelivery.client.aio.made import Made
from redelivery.client.aio.producer import Producer
from redelivery.client.arguments import (
    PRODUCER_DEFAULTS,
    PRODUCER_SYNONYMS,
    ProducerKeywords,
    check_cause,
)
from redelivery.client.operations.acknowledge import acknowledge_one
from redelivery.client.operations.browse import browse_state
from redelivery.client.operations.commit import commit, rollback
from redelivery.client.operations.destinations import declaration, declare, delete, one_queue, temporary
from redelivery.client.operations.prepare import SendOptions
from redelivery.model.destinations import Destination, TemporaryQueue, TemporaryTopic
from redelivery.model.errors import IllegalStateError, JMSError
from redelivery.model.messages import Message
from redelivery.model.modes import AckMode
from redelivery.model.suggestions import suggesting
from redelivery.transports.wire.clock import monotonic

log = logging.getLogger(__name__)
# A look-up in the class is slow, on the path of every message.
CLIENT, INDIVIDUAL = AckMode.CLIENT, AckMode.INDIVIDUAL


class Session(MakesConsumers):
    """One task's context to send and receive in; made by `Connection.session`. The same as `redelivery.Session`.

    A call while another task is inside the session raises IllegalStateError (``close`` aside).
    Leaving its ``async with`` block closes it; a transacted session rolls back what is not committed.
    """

    def __init__(self, core: SessionCore, on_closed: Callable[[Session], None]) -> None:
        self._core = core
        self._loop = ListenerLoop(core)
        self._on_closed = on_closed
        self._closing: asyncio.Task[None] | None = None

    async def temporary_queue(self) -> TemporaryQueue:
        """A queue that the broker makes and removes with this connection; it may be a ``reply_to``.

        Raises:
            UnsupportedError: the broker makes none over this protocol.
        """
        return cast(TemporaryQueue, await self._temporary("temporary_queue", TemporaryQueue))

    async def temporary_topic(self) -> TemporaryTopic:
        """The same as a topic. Raises UnsupportedError likewise."""
        return cast(TemporaryTopic, await self._temporary("temporary_topic", TemporaryTopic))

    async def declare(
        self,
        destination: Destination | str,
        *,
        type: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        dead_letters: Destination | str | None = None,
        maximum_redeliveries: int | None = None,
    ) -> None:
        """Make a queue at the broker, where it is not there yet; harmless where it is there so. Not of a transaction.

        The same as `redelivery.Session.declare`, with its arguments and errors.
        """
        wanted = declaration(destination, type, arguments, dead_letters, maximum_redeliveries)
        core = self._core
        await self._loop.inside("declare", lambda: core.do(declare(core, wanted)))

    async def delete(self, destination: Destination | str) -> int | None:
        """Delete a queue at the broker with what it holds, also while it has consumers, which end.

        The same as `redelivery.Session.delete`, with its result and errors.
        """
        queue = one_queue("delete", destination)
        core = self._core
        return await self._loop.inside("delete", lambda: core.do(delete(core, queue)))

    @suggesting(PRODUCER_SYNONYMS, PRODUCER_DEFAULTS)
    def producer(
        self, destination: Destination | str | None = None, **options: Unpack[ProducerKeywords]
    ) -> Made[Producer]:
        """A producer for one destination, or (None) for whatever each send names: ``await`` it, or ``async with``."""
        core = self._core

        async def make() -> Producer:
            return Producer(core, SendOptions.checked(destination, **options))

        return Made(core.inside("producer", make))

    def browser(self, queue: Destination | str, *, selector: str | None = None) -> Made[QueueBrowser]:
        """A browser of what a queue holds: ``await`` it, or ``async with``; see `redelivery.Session.browser`.

        Raises, when awaited:
            InvalidDestinationError: it is a topic.
            InvalidSelectorError: the selector is not valid; the error shows where.
            UnsupportedError: it is a pattern, or the broker cannot browse; the text says why.
        """
        core = self._core

        async def make() -> QueueBrowser:
            return QueueBrowser(core, browse_state(core, queue, selector))

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
        self._check_transacted("commit")
        core = self._core
        await core.enter("commit")
        try:
            await core.perform(commit(core))
        finally:
            core.turn.release()

    async def rollback(self, cause: BaseException | None = None) -> None:
        """Nothing of the transaction was sent; everything received is redelivered, or dead-lettered, by the policy.

        Args:
            cause: why; it stands on the dead letter.
        """
        self._check_transacted("rollback")
        check_cause("rollback", cause)
        await self._core.inside("rollback", lambda: self._core.perform(rollback(self._core, cause)))

    async def recover(self, cause: BaseException | None = None) -> None:
        """Everything delivered and not acknowledged is redelivered, or dead-lettered, by the policy.

        See JMS 3.1, `Session.recover`; how often and after which delay is ActiveMQ's RedeliveryPolicy.

        Raises:
            IllegalStateError: the session is transacted; use rollback.
        """
        self._check_not_transacted("recover")
        check_cause("recover", cause)
        await self._core.inside("recover", lambda: self._core.perform(rollback(self._core, cause)))

    async def acknowledge(self, message: Message | None = None) -> None:
        """As `redelivery.Session.acknowledge`; ``await message.acknowledge()`` is the same.

        Raises:
            IllegalStateError: the session is closed (JMS 3.1, `Message.acknowledge`), or INDIVIDUAL mode and no
                message.
        """
        core = self._core
        await core.enter("acknowledge")
        try:
            if core.mode is INDIVIDUAL:
                if message is None:
                    raise IllegalStateError("acknowledge: in INDIVIDUAL mode acknowledge the message itself")
                acknowledge_one(core, message)
                if core.ledger.orders:
                    await core.carry_out()
                if core.epoch.channel.congested:
                    await core.relieve()
            elif core.mode is CLIENT:
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
        self._enter_block()
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
        """Close it, within close_timeout. A transacted session rolls back; CLIENT acknowledges nothing.

        So says JMS 3.1, `Session.close`. Called from a listener of this session it takes effect when the callback has
        returned. Twice is harmless. A close that is cancelled goes on.
        """
        await self._close_until(monotonic() + self._core.options.close_timeout)

    async def _close_until(self, until: float) -> None:
        """`close`, ended by ``until`` (monotonic seconds). For the connection, whose sessions share its time-out."""
        core = self._core
        check_loop(core.runtime, "close")
        core.step("close", "closed by close()")
        core.waiter.wake()
        if self._close_after_callback(self.close):
            return
        if self._closing is None:
            self._closing = core.runtime.loop.create_task(self._close(until), name="redelivery-close")
        await asyncio.shield(self._closing)

    async def _wait_until_idle(self, timeout: float) -> bool:
        """Wait until no listener is running; False where one still is after ``timeout`` seconds. For the connection."""
        return await self._loop.wait_until_idle(timeout)

    def _close_after_callback(self, close: Callable[[], Awaitable[None]]) -> bool:
        """True, and ``close`` is awaited later, where the caller is one of our listeners. For the connection."""
        if not self._core.listens:
            return False
        self._core.step("close", "closed by close()")
        self._loop.after_callback.append(close)
        return True

    async def _temporary(self, action: str, kind: type[Destination]) -> Destination:
        core = self._core
        return await core.inside(action, lambda: core.do(temporary(core, kind)))

    async def _close(self, until: float) -> None:
        core = self._core
        try:
            await self._shut(until)
        finally:
            core.step("end", "closed by close()")
            self._on_closed(self)

    async def _shut(self, until: float) -> None:
        """End the listener's task, the ledger, the channel; what hangs is left after a bounded wait, and logged."""
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
            if core.lost is None and core.epoch.lost is None:
                await core.end_work(until)
        except JMSError as error:
            log.warning("close: %s", error)
        finally:
            core.ledger.transport_lost()
            core.turn.release()
            core.unanswered.end("the session was closed before the broker's answer came")
