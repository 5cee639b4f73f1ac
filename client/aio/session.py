"""Sessions: the unit of acknowledgement and of transactions."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Self, Unpack, cast

from redelivery.client.aio.browser import QueueBrowser
from redelivery.client.aio.consuming import MakesConsumers
from redelivery.client.aio.core import SessionCore
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
from redelivery.client.operations.send import await_room
from redelivery.model.destinations import Destination, TemporaryQueue, TemporaryTopic
from redelivery.model.errors import (
    IllegalStateError,
    JMSError,
)
from redelivery.model.messages import Message
from redelivery.model.modes import AckMode
from redelivery.model.suggestions import suggesting
from redelivery.transports.wire.clock import monotonic

# threads: from redelivery.transports.wire.threads.guard import uninterruptible

log = logging.getLogger(__name__)
# A look-up in the class is slow, on the path of every message.
CLIENT, INDIVIDUAL = AckMode.CLIENT, AckMode.INDIVIDUAL


class Session(MakesConsumers):
    """One task's context to send and receive in; made by `Connection.session`.

    A call while another task is inside the session raises IllegalStateError (``close`` aside).
    Leaving its ``async with`` block closes it; a transacted session rolls back what is not committed.
    """

    def __init__(self, core: SessionCore, on_closed: Callable[[Session], None]) -> None:
        self._core = core
        self._loop = ListenerLoop(core)
        self._on_closed = on_closed

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

        Args:
            destination: a Queue or a str.
            type: the broker's word for a kind of queue: ``"quorum"``, ``"classic"``, ``"stream"`` (RabbitMQ),
                ``"anycast"``, ``"multicast"`` (Artemis), ``"standard"``, ``"priority"``, … (Broker-J). None:
                its default.
            arguments: the broker's own names and values: ``{"x-max-length": 1000}`` (RabbitMQ),
                ``{"max-consumers": 1}`` (Artemis), ``{"maximumMessageTtl": 60000}`` (Broker-J).
            dead_letters: the queue to which the broker brings what it gives up; made where it is not there.
            maximum_redeliveries: how often the broker delivers a message again that came back to it, before it gives
                it up, as of a RedeliveryPolicy: 5 is 6 deliveries. -1: no limit. None: the broker's own.

        Raises:
            UnsupportedError: the broker does not over this protocol; the text says what to do instead.
            InvalidDestinationError: it is no queue; or the broker refuses it, such as one that is there otherwise. The
                text has its words, and what was there is not changed.
            ConfigError: the arguments say nothing to this broker, or contradict each other.
            SecurityError: this user may not.
            RequestTimeoutError, ConnectionLostError: the broker did not answer; it may be made or not.
        """
        wanted = declaration(destination, type, arguments, dead_letters, maximum_redeliveries)
        core = self._core
        await self._loop.inside("declare", lambda: core.do(declare(core, wanted)))

    async def delete(self, destination: Destination | str) -> int | None:
        """Delete a queue at the broker with what it holds, also while it has consumers, which end.

        Returns:
            How many messages went with it (on RabbitMQ without those that consumers have); None where the broker does
            not say so.

        Raises:
            InvalidDestinationError: there is none of that name, or it is no queue.
            IllegalStateError: the broker needs it, as the queue of another one's dead letters.
            UnsupportedError, SecurityError, RequestTimeoutError, ConnectionLostError: as `declare`.
        """
        queue = one_queue("delete", destination)
        core = self._core
        return await self._loop.inside("delete", lambda: core.do(delete(core, queue)))

    @suggesting(PRODUCER_SYNONYMS, PRODUCER_DEFAULTS)
    def producer(
        self, destination: Destination | str | None = None, **options: Unpack[ProducerKeywords]
    ) -> Made[Producer]:
        """A producer for one destination, or (None) for whatever each send names: ``await`` it, or ``async with``.

        Args:
            destination: where its messages go.
            options: persistent, priority, ttl, delivery_delay (both in seconds): what counts where a send says nothing,
                see `redelivery.client.arguments.ProducerKeywords`.
        """
        core = self._core

        async def make() -> Producer:
            return Producer(core, SendOptions.checked(destination, **options))

        return Made(core.inside("producer", make))

    def browser(self, queue: Destination | str, *, selector: str | None = None) -> Made[QueueBrowser]:
        """A browser, which shows what a queue holds and takes nothing: ``await`` it, or ``async with``.

        Args:
            queue: a Queue or a str; no wildcards.
            selector: JMS's condition on headers and properties, judged by the broker.

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

        Raises:
            IllegalStateError: the session is not transacted.
            TransactionRolledBackError: the broker refused; nothing was sent, and the policy redelivers the deliveries.
            InDoubtError: the answer did not come; ``sent`` and ``received`` say what it is about.
            CancelledError: its ``__cause__`` says whether it is in doubt, or rolled back as it had not left; logged.
        """
        self._check_transacted("commit")
        core = self._core
        await core.inside("commit", lambda: core.perform(commit(core)))

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

        See JMS 3.1, `Session.recover`; how often and after which delay is ActiveMQ's RedeliveryPolicy. ``cause``: the
        exception that the dead letter names, if it becomes one.

        Raises:
            IllegalStateError: the session is transacted; use rollback.
        """
        self._check_not_transacted("recover")
        check_cause("recover", cause)
        await self._core.inside("recover", lambda: self._core.perform(rollback(self._core, cause)))

    async def acknowledge(self, message: Message | None = None) -> None:
        """In CLIENT mode everything that the session has delivered; ``message.acknowledge()`` is the same.

        In INDIVIDUAL mode only ``message``. Ignored in the other modes (JMS 3.1, §6.2.10). An object from before a
        recover, or acknowledged before, acknowledges nothing in INDIVIDUAL mode.

        Raises:
            IllegalStateError: the session is closed (JMS 3.1, `Message.acknowledge`), or INDIVIDUAL mode and no
                message.
        """
        await self._core.inside("acknowledge", partial(self._acknowledge, message))

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Self]:
        """Commit on success; on an Exception roll back with it as the cause and raise it.

        What is no Exception, such as KeyboardInterrupt, rolls back without a cause. Does not nest.

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
        core = self._core
        if not core.closes_elsewhere(self.close):
            await self._close_until(monotonic() + core.options.close_timeout)

    # threads: @uninterruptible
    async def _close_until(self, until: float) -> None:
        """`close`, ended by ``until`` (monotonic seconds). For the connection, whose sessions share its time-out."""
        core = self._core
        core.step("close", "closed by close()")
        core.waiter.wake()
        if not self._close_after_callback(self.close):
            await core.close_once(lambda: self._close(until), until)

    async def _wait_until_idle(self, timeout: float) -> bool:
        """Wait until no listener is running; False where one still is after ``timeout`` seconds. For the connection."""
        return await self._loop.wait_until_idle(timeout)

    def _close_after_callback(self, close: Callable[[], Awaitable[None]]) -> bool:
        """True, and ``close`` is called later, where the caller is one of our listeners. For the connection."""
        if not self._core.listens:
            return False
        self._core.step("close", "closed by close()")
        self._loop.after_callback.append(close)
        return True

    async def _acknowledge(self, message: Message | None) -> None:
        core = self._core
        if core.mode is INDIVIDUAL:
            if message is None:
                raise IllegalStateError("acknowledge: in INDIVIDUAL mode acknowledge the message itself")
            acknowledge_one(core, message)
            if core.ledger.orders:
                await core.carry_out()
            if core.epoch.channel.congested:  # asyncio
                await core.do(await_room(core))  # asyncio
        elif core.mode is CLIENT:
            await core.perform(commit(core, "acknowledge"))

    async def _temporary(self, action: str, kind: type[Destination]) -> Destination:
        core = self._core
        return await core.inside(action, lambda: core.do(temporary(core, kind)))

    async def _close(self, until: float) -> None:
        await self._shut(until)
        self._core.step("end", "closed by close()")
        self._on_closed(self)

    async def _shut(self, until: float) -> None:
        """End the listener's task, the ledger, the channel; what hangs is left after a bounded wait, and logged."""
        core = self._core
        core.until = until
        # JMS: a running listener keeps its session until it returns
        await self._loop.end(max(0.0, until - monotonic()))
        entered = False
        try:
            entered = await core.enter_patiently(until - monotonic())
            if not entered:
                log.warning("close: a task did not leave the session within close_timeout")
                return
            core.take_in()
            if core.lost is None and core.epoch.lost is None:
                await core.end_work()
            core.ledger.transport_lost()
        except JMSError as error:
            log.warning("close: %s", error)
            core.ledger.transport_lost()
        finally:
            if entered:
                core.leave()
            core.unanswered.end("the session was closed before the broker's answer came")
