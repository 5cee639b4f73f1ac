"""Asynchronous delivery: one thread per session with a listener, which waits as `receive` does and calls back."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from redelivery.client.core import SessionCore
from redelivery.client.ledger import Station
from redelivery.model.errors import ConnectionLostError, JMSError, RequestTimeoutError
from redelivery.model.messages import Message, Receipt
from redelivery.model.modes import AckMode
from redelivery.transports.base import Delivery
from redelivery.transports.wire.clock import monotonic

log = logging.getLogger(__name__)


class ListenerLoop:
    """The listeners of one session, served in turn. The thread is there while a listener is."""

    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self._listeners: dict[Station, tuple[Callable[[Message], object], Receipt]] = {}
        self._turn = 0
        self._thread: threading.Thread | None = None
        self._idle = threading.Event()  # no callback is running
        self._idle.set()
        self.failures = 0  # callbacks that raised
        self.after_callback: list[Callable[[], None]] = []  # closes that a callback asked for

    @property
    def in_callback(self) -> bool:
        """Whether the caller is one of our callbacks."""
        return self._core.listener_thread == threading.get_ident()

    def set_listener(self, station: Station, callback: Callable[[Message], object] | None, receipt: Receipt) -> None:
        """Set, change or (None) remove the listener of one consumer."""
        with self.inside("listen", patient=self._core.listener_thread is not None):
            self._core.check_open("listen")
            if callback is None:
                self._listeners.pop(station, None)
            else:
                self._listeners[station] = (callback, receipt)
            station.listening = callback is not None
            self._serve()
        if callback is None and not self._listeners:
            self._end_thread()

    def close_station(self, station: Station, *, attached: bool) -> None:
        """Close one consumer from any thread; deferred by the ledger where it holds something."""
        core = self._core
        station.closing = True
        core.waiter.wake()
        if core.life.over or core.lost is not None:
            return
        with self.inside("close"):
            self._listeners.pop(station, None)
            if attached:
                core.ledger.close_station(station)
            elif station in core.ledger.stations:
                core.ledger.stations.remove(station)
            core.carry_out()
        if not self._listeners:
            self._end_thread()

    def wait_until_idle(self, timeout: float) -> bool:
        """Wait for a running callback; True where none is running any more. True at once inside a callback."""
        return self.in_callback or self._idle.wait(timeout)

    def end(self, timeout: float) -> bool:
        """End the thread; True where it ended in time."""
        self._listeners.clear()
        self._core.waiter.wake()
        thread = self._thread
        if thread is None or thread is threading.current_thread():
            return True
        thread.join(timeout)
        return not thread.is_alive()

    @contextmanager
    def inside(self, action: str, *, patient: bool = True) -> Iterator[None]:
        """Take the session from any thread; ``patient``: wait, bounded, for the one who has it."""
        core = self._core
        if not patient:
            core.enter(action)
        elif not self._taken():
            raise RequestTimeoutError(
                f"{action}: a thread did not leave the session within close_timeout={core.options.close_timeout:g} s"
            )
        try:
            yield
        finally:
            core.use.release()

    def _taken(self) -> bool:
        self._core.waiter.wake()
        return self._core.use.acquire(timeout=self._core.options.close_timeout)

    def _serve(self) -> None:
        core = self._core
        if self._listeners and self._thread is None:
            thread = threading.Thread(target=self._run, name="redelivery-listener", daemon=True)
            core.irregular = True
            thread.start()  # it waits for `use`, which the caller holds, so nobody sees it half published
            self._thread = thread
            core.listener_thread = thread.ident
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
            while not core.closing and self._listeners and not lost:
                try:
                    delivery = self._next()
                    if delivery is not None:
                        self._call(delivery)
                except ConnectionLostError:
                    lost = True  # the connection has told its exception listener
                except JMSError as error:  # of an order of the ledger: the session goes on
                    core.report(error)
        finally:
            with core.use:
                core.listener_thread = None
                self._thread = None
                core.irregular = core.closing or core.lost is not None or core.life.over
                if self._listeners and not core.closing and not lost:
                    self._serve()  # set again while this thread was on its way out
            self._idle.set()
            for action in self.after_callback:
                action()

    def _next(self) -> Delivery | None:
        """The next delivery for any listener, now held; None after a wait."""
        core = self._core
        with core.use:
            if core.lost is not None:
                core.ledger.transport_lost()
                raise ConnectionLostError("the connection was lost") from core.lost
            if core.inbox:
                core.take_in()
            remaining: float | None = None
            self._idle.clear()  # before `running` is read: stop() reads in the other order
            if core.running:
                now = monotonic()
                if core.ledger.delayed and core.ledger.delayed[0][0] <= now:
                    core.overtake()
                core.ledger.tick(now)
                delivery = self._dispatch(now)
                core.carry_out_before(delivery)
                if delivery is not None:
                    return delivery
                until = core.ledger.next_deadline()
                remaining = None if until == float("inf") else max(0.0, until - now)
            self._idle.set()
        core.transport.wait(core.waiter, remaining)
        return None

    def _dispatch(self, now: float) -> Delivery | None:
        stations = list(self._listeners)
        for at in range(len(stations)):
            station = stations[(self._turn + at) % len(stations)]
            delivery = self._core.ledger.dispatch(station, now)
            if delivery is not None:
                self._turn = (self._turn + at + 1) % len(stations)
                return delivery
        return None

    def _call(self, delivery: Delivery) -> None:
        core = self._core
        station: Station = delivery.link.consumer
        entry = self._listeners.get(station)
        if entry is None:  # removed between dispatch and here
            with core.use:
                core.ledger.put_back(delivery)
                core.carry_out()
            self._idle.set()
            return
        callback, receipt = entry
        try:
            core.channel.handed_out(delivery)
        except BaseException:
            core.ledger.put_back(delivery)
            raise
        error: BaseException | None = None
        try:
            callback(Message.received(delivery, delivery.redeliveries, receipt))
        except BaseException as raised:  # noqa: BLE001  a listener's failure is a fact for the ledger, whatever its class
            error = raised
        try:
            with core.use:
                self._after(delivery, station, error)
                core.carry_out()
        except ConnectionLostError:
            pass  # seen at the next turn
        finally:
            self._idle.set()
        if self.after_callback:
            actions, self.after_callback = self.after_callback, []
            for action in actions:
                action()

    def _after(self, delivery: Delivery, station: Station, error: BaseException | None) -> None:
        core = self._core
        if core.lost is not None:
            return
        if error is None:
            if core.mode in (AckMode.AUTO, AckMode.DUPS_OK) and core.ledger.consumed(delivery):
                core.channel.accept((delivery,), lazy=core.mode == AckMode.DUPS_OK)
            return
        self.failures += 1
        if core.mode in (AckMode.TRANSACTED, AckMode.CLIENT):
            delivery.cause = error
            log.warning(
                "the listener of %s raised; the message stays unacknowledged and the next one is delivered: "
                "a %s session must roll back or recover itself",
                station.link.destination,
                core.mode.name,
                exc_info=error,
            )
        else:
            log.warning(
                "the listener of %s raised; the message is redelivered", station.link.destination, exc_info=error
            )
            core.ledger.listener_failed(station, monotonic(), error)
