"""Asynchronous sends, and their futures."""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, Unpack, cast

from redelivery.client.operations.prepare import SendOptions
from redelivery.client.operations.resend import Deferrable, Repeatable, away
from redelivery.client.operations.send import in_doubt_send, not_sent, refused_send
from redelivery.client.session.state import SessionState
from redelivery.client.shells.producer import BaseProducer
from redelivery.client.sync.core import SessionCore
from redelivery.model.content.headers import SYNONYMS, SendKeywords
from redelivery.model.destinations import Destination
from redelivery.model.errors import ConnectionLostError, InDoubtError, JMSError
from redelivery.model.messages import Message
from redelivery.model.suggestions import suggesting
from redelivery.policies.reconnect import ReconnectPolicy
from redelivery.transports.flows import NotSent
from redelivery.transports.seam import NO_ANSWER, Pending
from redelivery.transports.wire.clock import monotonic, session_time
from redelivery.transports.wire.threads.guard import uninterruptible
from redelivery.transports.wire.threads.waiter import ThreadWaiter

_NEWS: Final = 0.05  # seconds after which one whose connection is lost looks for the next one


class SendFuture(Future[Message]):
    """A future whose waiting thread reads the wire itself, so that confirmations need no other thread.

    Fails with what the broker answered, or with InDoubtError where the connection went before the answer. It cannot
    be cancelled: the message is on its way.

    A `Future` costs more than the send that it stands for, so its own part is made when somebody needs it: a
    callback, `concurrent.futures.wait`, `asyncio.wrap_future`. Most are only asked for their result.
    """

    _making = threading.RLock()  # guards the making of that part against the answer, which comes on any thread

    _refused: JMSError | None = None
    _made = False

    def __init__(self, message: Message, pending: Pending, session: SessionState) -> None:
        self._message = message
        self._session = session
        self.pending = pending  # with nothing to call back, the usual answer is quicker taken in

    def __getattr__(self, name: str) -> Any:
        """Asked for what `Future.__init__` makes, and only until it has."""
        if self._made:
            raise AttributeError(name)
        self._make()
        return getattr(self, name)

    def result(self, timeout: float | None = None) -> Message:
        """The message as sent, when the broker has confirmed it. Raises TimeoutError after ``timeout`` seconds."""
        pending = self.pending
        if not pending.done:
            self._wait(timeout)
        if (self._refused or pending.error) is not None:
            raise cast(JMSError, self._error())
        return self._message if pending.value is None else self._sent()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """The error, or None when the broker has confirmed. Raises TimeoutError after ``timeout`` seconds."""
        self._wait(timeout)
        return self._error()

    def done(self) -> bool:
        """True: the broker has answered."""
        return self.pending.done

    def running(self) -> bool:
        """True: the answer is still to come."""
        return not self.pending.done

    def cancel(self) -> bool:
        """False: the message is on its way."""
        return False

    def cancelled(self) -> bool:
        """False: see `cancel`."""
        return False

    def add_done_callback(self, fn: Callable[[Future[Message]], object]) -> None:
        """Call ``fn(future)`` when the broker has answered, on the thread that reads; it must not wait."""
        self._make()
        super().add_done_callback(fn)

    def _error(self) -> JMSError | None:
        error = self._refused or self.pending.error
        if error is None or error is self._refused or isinstance(error, InDoubtError):
            return error
        if isinstance(self.pending, Deferrable) and not self.pending.left and isinstance(error, NO_ANSWER):
            return error if isinstance(error, ConnectionLostError) else not_sent(str(error), error)
        if isinstance(error, NotSent):
            return not_sent(str(error), error)
        unanswered = isinstance(error, NO_ANSWER)
        return in_doubt_send(self._message, error) if unanswered else refused_send(self._message, error)

    def refuse(self, error: JMSError) -> None:
        """Note that it was not sent."""
        self._refused = error
        self.pending.fail(error)

    def _sent(self) -> Message:
        identifier = self.pending.value
        if identifier is not None:
            self._message.stamp(message_id=identifier)
        return self._message

    @uninterruptible
    def _make(self) -> None:
        with self._making:
            if self._made:
                return
            super().__init__()
            self.set_running_or_notify_cancel()
            self._made = True
        before = self.pending.on_done

        def answered(pending: Pending) -> None:
            try:
                if before is not None:
                    before(pending)
            finally:
                self._pass_on()

        self.pending.on_done = answered  # before the look: an answer that comes now calls it, or is seen
        if self.pending.done:
            self._pass_on()

    def _pass_on(self) -> None:
        with self._making:
            if super().done():
                return
            error = self._error()
            if error is None:
                self.set_result(self._sent())
            else:
                self.set_exception(error)

    def _wait(self, timeout: float | None) -> None:
        pending = self.pending
        if pending.done:
            return
        deadline = None if timeout is None else monotonic() + timeout
        before, waiter = None, ThreadWaiter()
        while not pending.done:
            remaining = None if deadline is None else deadline - monotonic()
            if remaining is not None and remaining <= 0:
                raise TimeoutError(f"the broker did not confirm the send within {timeout:g} s")
            transport = self._session.epoch.transport  # the one that it has now
            if transport is not before:
                before, waiter = transport, cast(ThreadWaiter, transport.new_waiter(self._session.waiter))
                pending.waiter = waiter
                continue  # the answer may have come before
            try:
                transport.wait(waiter, remaining)
            except ConnectionLostError as error:
                if not (isinstance(pending, Deferrable) and pending.deferred):  # this connection never had that
                    pending.fail(error)  # by rule it has failed before; harmless then
                if not pending.done:  # it is sent by the next connection: see `Deferrable` and `Repeatable`
                    waiter.wait(_NEWS if remaining is None else min(_NEWS, remaining))


class Expiry:
    """Ends the sends of a producer that wait for a connection, when their time is over.

    One thread looks after them, as long as there are some.
    """

    def __init__(self, policy: ReconnectPolicy | None) -> None:
        self._timeout = None if policy is None else policy.timeout
        self._lock = threading.Lock()
        self._waiting: deque[tuple[float, Deferrable]] = deque()
        self._thread: threading.Thread | None = None

    def add(self, pending: Deferrable, lost: JMSError | None) -> None:
        """``lost``: why there is no connection."""
        if self._timeout is None:
            return
        with self._lock:
            self._waiting.append((session_time() + self._timeout, pending))
            self._why = away(self._timeout, lost), lost
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="redelivery-send-timeout", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            with self._lock:
                while self._waiting and not self._waiting[0][1].waits:
                    self._waiting.popleft()
                if not self._waiting:
                    self._thread = None
                    return
                due, pending = self._waiting[0]
            if session_time() < due:
                time.sleep(_NEWS)
            else:
                pending.expire(not_sent(*self._why))


class SendsAsync(BaseProducer):
    """A producer that need not wait: an asynchronous send is for threads, as tasks await it."""

    _core: SessionCore

    def __init__(self, core: SessionCore, options: SendOptions) -> None:
        super().__init__(core, options)
        self._expiry = Expiry(core.options.reconnect)

    @abstractmethod
    def _send(self, message: Message, pending: Pending | None) -> Pending | None:
        """Send it; ``pending``: whose answer nobody waits for."""

    @suggesting(SYNONYMS)
    def send_async(
        self, body_or_message: object, destination: Destination | str | None = None, **options: Unpack[SendKeywords]
    ) -> Future[Message]:
        """`send` without waiting: the future is done when the broker has confirmed or refused.

        Where the connection is away and comes back, the message leaves with the next one, before what is sent later;
        the future fails with ConnectionLostError when the `timeout` of the ReconnectPolicy is over. While 1,000 of a
        session wait for that, this call waits as well, for as long.

        Bad arguments raise here; whatever the broker says is in the future.
        """
        return self._core.inside("send_async", lambda: self._send_async(body_or_message, destination, options))

    def _send_async(
        self, body_or_message: object, destination: Destination | str | None, options: SendKeywords
    ) -> Future[Message]:
        core = self._core
        message = self._prepare(body_or_message, destination, options)
        pending = self._answer()
        future = SendFuture(message, pending, core)
        try:
            core.unanswered.watch(pending)
            if core.tracer is None:
                sent = self._send(message, pending)
            else:
                with core.tracer.sending(message):
                    sent = self._send(message, pending)
            future.pending = pending = sent or pending
        except JMSError as error:
            future.refuse(error)
            if not isinstance(error, ConnectionLostError) or not core.comes_back:
                raise
        except BaseException:  # an interrupt
            core.unanswered.unwatch(pending)
            raise
        if isinstance(pending, Deferrable) and pending.waits:
            self._expiry.add(pending, core.epoch.lost)
        return future

    def _answer(self) -> Pending:
        """Of an asynchronous send."""
        core = self._core
        if not self._identifies and (self._transacted or not self._comes_back):
            return Pending()
        kind = Repeatable if self._identifies else Deferrable
        return kind(core)
