"""Sessions: the unit of acknowledgement and of transactions."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Self, cast

from redelivery.client.browser import QueueBrowser, check_browsable
from redelivery.client.closing import Closing
from redelivery.client.consumer import Consumer
from redelivery.client.core import SessionCore
from redelivery.client.lifecycle import Stage
from redelivery.client.listeners import ListenerLoop
from redelivery.client.producer import Producer
from redelivery.client.subscriptions import begin
from redelivery.client.transactions import acknowledge_one, close_books, commit, rollback
from redelivery.model.destinations import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
from redelivery.model.destinations import destination as parse_destination
from redelivery.model.errors import ConfigError, IllegalStateError, JMSError
from redelivery.model.messages import Message
from redelivery.model.modes import AckMode
from redelivery.policies.prefetch import PrefetchPolicy
from redelivery.policies.redelivery import RedeliveryPolicy
from redelivery.transports.wire.clock import monotonic

log = logging.getLogger(__name__)
CLIENT, INDIVIDUAL = AckMode.CLIENT, AckMode.INDIVIDUAL  # a look-up in the class is slow, on the path of every message


class Session(Closing):
    """One thread's conversation with the broker; made by `Connection.session`.

    A call while another thread is inside the session raises IllegalStateError (``close`` aside).
    Leaving its ``with`` block closes it; a transacted session rolls back what is not committed.
    """

    def __init__(self, core: SessionCore, on_closed: Callable[[Session], None]) -> None:
        self._core = core
        self._loop = ListenerLoop(core)
        self._on_closed = on_closed
        self._consumers = 0
        self._in_block = False
        self._closer = threading.Lock()  # one thread closes

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
        return self._core.life.over or self._core.lost is not None

    def queue(self, name: str) -> Queue:
        """A queue by its name, which is not created by this."""
        return Queue(name)

    def topic(self, name: str) -> Topic:
        """A topic by its name, which is not created by this."""
        return Topic(name)

    def temporary_queue(self) -> TemporaryQueue:
        """A queue that the broker makes and removes with this connection; it may be a ``reply_to``.

        Raises:
            UnsupportedError: the broker makes none over this protocol.
        """
        return cast(TemporaryQueue, self._temporary("temporary_queue", TemporaryQueue))

    def temporary_topic(self) -> TemporaryTopic:
        """The same as a topic. Raises UnsupportedError likewise."""
        return cast(TemporaryTopic, self._temporary("temporary_topic", TemporaryTopic))

    def consumer(
        self,
        destination: Destination | str,
        *,
        selector: str | None = None,
        no_local: bool = False,
        prefetch: int | None = None,
        redelivery_policy: RedeliveryPolicy | None = None,
    ) -> Consumer:
        """A consumer of a queue or topic.

        Args:
            destination: a Queue, a Topic, or a text; ``"orders"`` is a queue. Wildcards are allowed.
            selector: JMS's condition on headers and properties, judged by the broker.
            no_local: a topic's messages of this connection are not wanted.
            prefetch: how many unacknowledged messages the broker may push; None is the connection's policy.
            redelivery_policy: instead of the connection's for this destination.

        Raises:
            InvalidDestinationError, InvalidSelectorError, SecurityError: the broker refuses it.
            UnsupportedError: the broker cannot do it.
        """
        core = self._core
        target = parse_destination(destination)
        if redelivery_policy is not None and not isinstance(redelivery_policy, RedeliveryPolicy):
            raise ConfigError(f"redelivery_policy must be a RedeliveryPolicy, not a {type(redelivery_policy).__name__}")
        _check_selector(selector)
        window = (core.options.prefetch if prefetch is None else PrefetchPolicy.of(prefetch)).for_destination(target)
        core.enter("consumer")
        try:
            self._consumers += 1
            station, policy, attached = begin(
                core,
                target,
                f"consumer {self._consumers} of {target}",
                selector=selector,
                no_local=no_local,
                window=window,
                own_policy=redelivery_policy,
            )
            return Consumer(core, station, self._loop, self, policy, attached=attached)
        finally:
            core.use.release()

    def producer(
        self,
        destination: Destination | str | None = None,
        *,
        persistent: bool = True,
        priority: int = 4,
        ttl: float | timedelta | None = None,
        delivery_delay: float | timedelta | None = None,
    ) -> Producer:
        """A producer for one destination, or (None) for whatever each send names. Times are in seconds."""
        core = self._core
        core.enter("producer")
        try:
            return Producer(
                core,
                None if destination is None else parse_destination(destination),
                persistent=persistent,
                priority=priority,
                ttl=ttl,
                delivery_delay=delivery_delay,
            )
        finally:
            core.use.release()

    def browser(self, queue: Destination | str, *, selector: str | None = None) -> QueueBrowser:
        """A browser: an iterable of what a queue holds, which takes nothing.

        Args:
            queue: a Queue or a text; no wildcards.
            selector: JMS's condition on headers and properties, judged by the broker.

        Raises:
            InvalidDestinationError: it is a topic.
            UnsupportedError: it is a pattern, or the broker cannot browse; the text says why.
        """
        core = self._core
        target = parse_destination(queue)
        _check_selector(selector)
        core.enter("browser")
        try:
            found = check_browsable(core.transport.peer, target, selector)
            window = core.options.prefetch.for_destination(found, browser=True)
            return QueueBrowser(core, self._loop, found, selector=selector or None, window=window)
        finally:
            core.use.release()

    def commit(self) -> None:
        """Everything sent becomes visible, everything received is acknowledged, as one; the next transaction begins.

        Raises:
            IllegalStateError: the session is not transacted.
            TransactionRolledBackError: the broker refused; nothing was sent, the deliveries come again by the policy.
            InDoubtError: the answer did not come; ``sent`` and ``received`` say what it is about.
        """
        self._transacted("commit")
        self._core.enter("commit")
        try:
            commit(self._core)
        finally:
            self._core.use.release()

    def rollback(self, cause: BaseException | None = None) -> None:
        """Nothing of the transaction was sent; everything received comes again, or is dead-lettered, by the policy.

        Args:
            cause: why; it stands on the dead letter.
        """
        self._transacted("rollback")
        self._core.enter("rollback")
        try:
            rollback(self._core, cause)
        finally:
            self._core.use.release()

    def recover(self, cause: BaseException | None = None) -> None:
        """Everything delivered and not acknowledged comes again, or is dead-lettered, by the policy (features R6).

        Raises:
            IllegalStateError: the session is transacted; use rollback.
        """
        if self.transacted:
            raise IllegalStateError("recover: the session is transacted; use rollback()")
        self._core.enter("recover")
        try:
            rollback(self._core, cause)
        finally:
            self._core.use.release()

    def acknowledge(self, message: Message | None = None) -> None:
        """In CLIENT mode everything that the session has delivered; ``message.acknowledge()`` is the same.

        In INDIVIDUAL mode only ``message``. Ignored in the other modes (features R5). An object from before a
        recover, or acknowledged before, acknowledges nothing in INDIVIDUAL mode.

        Raises:
            IllegalStateError: the session is closed (features R11), or INDIVIDUAL mode and no message.
        """
        core = self._core
        core.enter("acknowledge")
        try:
            if core.mode is INDIVIDUAL:
                if message is None:
                    raise IllegalStateError("acknowledge: in INDIVIDUAL mode acknowledge the message itself")
                acknowledge_one(core, message)
            elif core.mode is CLIENT:
                commit(core)
        finally:
            core.use.release()

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        """Commit on success; on an Exception roll back with it as the cause and raise it.

        KeyboardInterrupt, SystemExit and other BaseExceptions roll back without a cause. Does not nest.

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
                self.rollback(error if isinstance(error, Exception) else None)
            except JMSError as second:
                error.add_note(f"the rollback failed too: {second}")
            raise
        self._in_block = False
        self.commit()

    def close(self) -> None:
        """Close it, within close_timeout. A transacted session rolls back; CLIENT acknowledges nothing (features R10).

        Called from a listener of this session it takes effect when the callback has returned. Twice is harmless.
        """
        self.close_until(monotonic() + self._core.options.close_timeout)

    def close_until(self, until: float) -> None:
        """`close`, ended by ``until`` (monotonic seconds). For the connection, whose sessions share its time-out."""
        core = self._core
        core.closing = core.irregular = True
        core.waiter.wake()
        if self.close_after_callback(self.close):
            return
        if not self._closer.acquire(timeout=max(0.0, until - monotonic())):
            return  # another thread is at it, and will not end in time
        try:
            if core.life.stage is not Stage.CLOSED:
                self._shut(until)
        finally:
            self._closer.release()
            self._on_closed(self)

    def wait_until_idle(self, timeout: float) -> bool:
        """Wait until no listener is running; False where one still is after ``timeout`` seconds. For the connection."""
        return self._loop.wait_until_idle(timeout)

    def close_after_callback(self, close: Callable[[], None]) -> bool:
        """True, and ``close`` is called later, where the caller is one of our listeners. For the connection."""
        if not self._loop.in_callback:
            return False
        self._core.closing = True
        self._loop.after_callback.append(close)
        return True

    def __repr__(self) -> str:
        return f"<Session {self.ack_mode.name}{' closed' if self.closed else ''}>"

    def _temporary(self, action: str, kind: type[Destination]) -> Destination:
        core = self._core
        core.enter(action)
        try:
            return core.do(core.channel.temporary(kind))
        finally:
            core.use.release()

    def _transacted(self, action: str) -> None:
        if not self.transacted:
            raise IllegalStateError(f"{action}: the session's mode is {self.ack_mode.name}, not TRANSACTED")

    def _shut(self, until: float) -> None:
        """End the listener thread, the books, the channel; what hangs is left behind after a bounded wait, and said."""
        core = self._core
        core.until = until
        # JMS: a running listener keeps its session until it returns
        if not self._loop.end(max(0.0, until - monotonic())):
            log.warning("close: a listener did not return within close_timeout; it is left to itself")
        core.life.step("close", "closed by close()")
        if not core.use.acquire(timeout=max(0.0, until - monotonic())):
            log.warning("close: a thread did not leave the session within close_timeout")
            return
        try:
            if core.lost is None:
                close_books(core)
        except JMSError as error:
            log.warning("close: %s", error)
        finally:
            core.ledger.transport_lost()
            core.use.release()


def _check_selector(selector: object) -> None:
    if selector is not None and not isinstance(selector, str):
        raise ConfigError(f"selector must be a text, not a {type(selector).__name__}")
