"""Asynchronous delivery: one thread per session with a listener, which waits as `receive` does and calls back."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, Final, TypeAlias, cast

from redelivery.client.ledger import ConsumerState, Received
from redelivery.client.lifecycle import SessionStage
from redelivery.client.operations.acknowledge import dispatched
from redelivery.client.operations.attach import attach_late
from redelivery.client.operations.listen import Comebacks, dispatch, returned
from redelivery.client.operations.orders import catch_up
from redelivery.client.operations.reattach import await_return
from redelivery.client.session.inbox import CloseAsked
from redelivery.client.session.state import ended
from redelivery.client.sync.core import SessionCore
from redelivery.model.callables import check_runs, check_takes_one, name_of, not_run, unrun
from redelivery.model.content.typed.variable import BodyT
from redelivery.model.errors import ConfigError, ConnectionLostError, JMSError, RequestTimeoutError
from redelivery.model.messages import Message, Receipt
from redelivery.transports.seam import T
from redelivery.transports.wire.clock import session_time
from redelivery.transports.wire.threads.guard import await_in_steps, uninterruptible
from redelivery.transports.wire.threads.waiter import ThreadWaiter

log = logging.getLogger(__name__)
MessageListener: TypeAlias = Callable[[Message[BodyT]], None]
_STEP: Final = 0.1  # seconds until our thread is woken once more


class ListenerExit(JMSError):
    """A listener has raised SystemExit or KeyboardInterrupt, which is its ``__cause__``."""


class ListenerLoop:
    """The listeners of one session, served in turn. The thread is there while a listener is."""

    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self._listeners: dict[ConsumerState, tuple[MessageListener[Any], Receipt]] = {}
        self._comebacks = Comebacks(core)
        self._turn = 0
        self._thread: threading.Thread | None = None
        self._idle = threading.Event()  # no callback is running
        self._idle.set()
        self.failures = 0  # callbacks that raised
        self.after_callback: list[Callable[[], None]] = []  # closes that a callback asked for

    @property
    def in_callback(self) -> bool:
        """True: the caller is one of our callbacks."""
        return self._core.listens

    def set_listener(self, consumer: ConsumerState, callback: MessageListener[Any] | None, receipt: Receipt) -> None:
        """Set, change or (None) remove the listener of one consumer."""
        core = self._core

        def change() -> None:
            core.check_open("listen")
            if callback is None:
                self._listeners.pop(consumer, None)
                core.handlers.pop(consumer, None)
            else:
                core.take_in()
                if consumer.error is not None and consumer not in self._listeners:
                    raise ended(consumer, "listen")
                if not consumer.attached and consumer.error is None:
                    core.do(attach_late(core, consumer))
                self._listeners[consumer] = (callback, receipt)
                core.handlers[consumer] = name_of(callback)
            consumer.listening = callback is not None
            self._serve()

        self.inside("listen", change)
        if callback is None and not self._listeners:
            self._end_thread()

    def inside(self, action: str, step: Callable[[], T]) -> T:
        """`SessionCore.inside`; while a listener is set, the caller takes his turn like its callbacks.

        Raises:
            IllegalStateError: as there.
            RequestTimeoutError: the turn did not come within `close_timeout`.
        """
        core = self._core
        if core.listener is None:
            return core.inside(action, step)

        def turn() -> T:
            core.make_way()
            core.check_open(action)
            return step()

        return core.inside_patiently(action, turn)

    def close_consumer(self, consumer: ConsumerState, *, in_callback: bool) -> None:
        """Close one consumer from any thread; deferred by the ledger where it holds something.

        ``in_callback``: for one of our callbacks, which this must not wait for.
        """
        core = self._core
        core.inbox.notify(CloseAsked(consumer))  # the holder of the session sees it at once, if it waits
        if core.life.stage in (SessionStage.CLOSED, SessionStage.LOST) or core.lost is not None:
            return

        def close() -> None:
            core.make_way()
            self._listeners.pop(consumer, None)
            core.handlers.pop(consumer, None)
            core.do(catch_up(core))

        core.inside_patiently("close", close)
        if not self._listeners and not in_callback:
            self._end_thread()

    @uninterruptible
    def wait_until_idle(self, timeout: float) -> bool:
        """Wait for a running callback; True where none is running any more. True at once inside a callback."""
        return self.in_callback or await_in_steps(self._idle.wait, timeout)

    def end(self, timeout: float) -> None:
        """End the thread, as soon as its callback returns; one that does not return in time is left to itself."""
        self._listeners.clear()
        self._core.waiter.wake()
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return
        thread.join(timeout)
        if thread.is_alive():
            log.warning("close: a listener did not return within close_timeout; it is left to itself")

    def _serve(self) -> None:
        core = self._core
        if self._listeners and self._thread is None:
            thread = threading.Thread(target=self._run, name="redelivery-listener", daemon=True)
            core.step("listen")
            thread.start()  # it waits for `use`, which the caller holds, so nobody sees it half published
            self._thread = thread
            core.listener = thread.ident
        core.waiter.wake()

    def _end_thread(self) -> None:
        thread = self._thread
        if thread is None or self.in_callback:
            return  # the loop sees for itself that no listener is left
        self._core.waiter.wake()
        thread.join(self._core.options.close_timeout)
        if thread.is_alive():
            raise RequestTimeoutError("listen(None): the running callback did not return within close_timeout")

    def _run(self) -> None:
        core = self._core
        lost = False
        try:
            while not core.life.ended and self._listeners and not lost:
                try:
                    delivery = self._next()
                    if delivery is not None:
                        self._call(delivery)
                except ConnectionLostError:
                    lost = not core.comes_back  # the connection has notified its exception listener
                except JMSError as error:  # of an order of the ledger: the session goes on
                    core.report(error)
        finally:
            with core.use:
                core.listener = None
                self._thread = None
                core.step("unlisten")
                if self._listeners and not core.life.ended and not lost:
                    self._serve()  # set again while this thread was on its way out
            self._idle.set()
            for action in self.after_callback:
                action()

    def _next(self) -> Received | None:
        """The next delivery for any listener, now held; None after a wait."""
        core = self._core
        with core.use:
            if core.lost is not None:
                core.ledger.transport_lost()
                raise ConnectionLostError(str(core.lost)) from core.lost
            core.take_in()
            if core.epoch.successor is not None:
                core.do(await_return(core))
            ended = self._comebacks.poll_once(self._listeners)
            if ended is not None:
                core.do(self._comebacks.attach_again(ended, self._listeners))
            if not self._listeners or ended is not None:
                return None
            self._idle.clear()  # before `running` is read: stop() reads in the other order
            delivery, remaining = self._dispatch()
            if delivery is not None:
                return delivery
            self._idle.set()
            core.waits.acquire()  # at once: who else takes it holds `use`
        try:
            if core.epoch.lost is None:
                core.epoch.transport.wait(core.waiter, remaining)
            else:
                cast(ThreadWaiter, core.waiter).wait(None)
        except ConnectionLostError:
            if not core.comes_back:
                raise
            cast(ThreadWaiter, core.waiter).wait(_STEP)  # for the news of it
        finally:
            core.waits.release()
        return None

    def _dispatch(self) -> tuple[Received | None, float | None]:
        """The next delivery for any listener, now held; or for how many seconds there will be none, None for ever."""
        core = self._core
        now, due = session_time(), self._comebacks.due
        if not core.running or core.epoch.lost is not None:
            return None, None if due == float("inf") else max(0.0, due - now)
        if core.ledger.delayed and core.ledger.delayed[0][0] <= now:
            core.epoch.transport.wait(core.waiter, 0)  # what the wire has brought goes first
            core.take_in()
        core.ledger.tick(now)
        delivery, self._turn = dispatch(core, list(self._listeners), self._turn, now)
        try:
            core.carry_out()
        except BaseException:  # of what stands before the delivery, which was not delivered
            if delivery is not None:
                core.ledger.put_back(delivery)
            raise
        if core.inbox:  # it came with an answer to one of those orders, and wakes nobody any more
            return delivery, 0.0
        until = min(core.ledger.next_deadline(), due)
        return delivery, None if until == float("inf") else max(0.0, until - now)

    def _call(self, delivery: Received) -> None:
        core = self._core
        consumer = delivery.link.consumer
        entry = self._listeners.get(consumer)
        if entry is None:  # removed between dispatch and here
            with core.use:
                core.ledger.put_back(delivery)
                core.carry_out()
            self._idle.set()
            return
        callback, receipt = entry
        try:
            dispatched(core, delivery)
        except BaseException as problem:
            core.ledger.put_back(delivery)
            self._idle.set()
            if isinstance(problem, ConnectionLostError) and core.comes_back:
                return
            raise
        message = Message.received(delivery, delivery.redeliveries, receipt)
        if core.tracer is None:
            error = _called(callback, message)
        else:
            with core.tracer.processing(delivery) as work:
                error = _called(callback, message)
                work.ended(error)
        try:
            with core.use:
                if isinstance(error, (SystemExit, KeyboardInterrupt)) and core.lost is None:
                    core.release((delivery,))  # the application ends, and the message is not the reason
                    core.take_in()
                    self._stop_for(consumer, error)
                else:
                    self.failures += error is not None and core.lost is None
                    returned(core, delivery, consumer, error)
                core.carry_out()
        except ConnectionLostError:
            pass  # seen at the next turn
        finally:
            self._idle.set()
        if self.after_callback:
            actions, self.after_callback = self.after_callback, []
            for action in actions:
                action()

    def _stop_for(self, consumer: ConsumerState, error: BaseException) -> None:
        """A callback has called sys.exit(): this session's listeners are called no more; the connection is notified."""
        for each in self._listeners:
            each.listening = False
        self._listeners.clear()
        problem = ListenerExit(
            f"the listener of {consumer.link.destination} raised {error!r}: the listeners of its session are called no "
            "more, and its message is redelivered, uncounted; connection.wait() raises it where it is called"
        )
        problem.__cause__ = error
        self._core.report(problem, deadly=True)


def check_callback(callback: object) -> None:
    """Raise ConfigError where it cannot be a listener."""
    if callback is None:
        return
    if not callable(callback):
        raise ConfigError(f"listen({callback!r}): give a callable that takes a message, or None")
    check_takes_one(callback, "listen", "the message")
    check_runs(callback, f"listen({name_of(callback)})")


def _called(callback: Callable[[Message], object], message: Message) -> BaseException | None:
    """Call it; what it raised."""
    try:
        result = callback(message)
        kind = None if result is None else unrun(result)
        return None if kind is None else TypeError(not_run(callback, kind))
    except BaseException as raised:  # noqa: BLE001  a listener's failure is a fact for the ledger, whatever its class
        return raised
