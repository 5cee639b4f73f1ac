"""An established AMQP connection: engine, way in, way out, and what the housekeeping thread does for it.

1. `lock` is held around every call of proton, and never while somebody waits or is told something.
2. What goes out stays in proton's buffer until the system takes it. A writer that finds the pipe full waits outside
   the lock, so that whoever reads can go on: two full pipes would wait for each other otherwise.
"""

from __future__ import annotations

import threading
from typing import Any, Final

from cproton_ffi import ffi, lib

from redelivery.model.errors import ConnectionLostError, JMSError
from redelivery.transports.amqp.dispositions import condition_of
from redelivery.transports.amqp.endpoints import Endpoint
from redelivery.transports.amqp.engine import Engine, Event
from redelivery.transports.amqp.errors import broker_error
from redelivery.transports.amqp.tidings import Tidings
from redelivery.transports.base import ConnectionEvents, Pending, TransportOptions
from redelivery.transports.wire.clock import monotonic
from redelivery.transports.wire.housekeeping import housekeeper
from redelivery.transports.wire.leader import Leader
from redelivery.transports.wire.socket import Stream
from redelivery.transports.wire.threads import Waiter

_TOGETHER_FOR: Final = 0.003  # seconds that acknowledgements and asynchronous sends wait for company
_STAND_IN_AFTER: Final = 0.005  # seconds that an answer may wait for somebody who reads
_SPACE: Final = 64 << 10  # bytes of a message that is copied once


class AmqpConnection:
    """From the peer's open to the end. Thread-safe where nothing else is said."""

    def __init__(self, stream: Stream, engine: Engine, options: TransportOptions, events: ConnectionEvents) -> None:
        self.engine = engine
        self.lock = threading.Lock()
        self.endpoints: dict[Any, Endpoint] = {}  # links and sessions by the C library's pointer
        self.tidings = Tidings()
        self.unanswered = 0  # requests and sends
        self.sessions = 0
        self.most_sessions: int = engine.transport.channel_max + 1
        self.closing = False  # by our own will: then nobody is told
        self.lost: JMSError | None = None
        self.blocked = False  # the system did not take all
        self.unwritten = False  # something waits for company
        self.waiting = 0  # bytes of messages that do
        self.written = 0  # bytes that the system took
        space = bytearray(_SPACE)
        self.view = memoryview(space)  # where a message is read to, under the lock
        self.space = ffi.from_buffer(space)
        self._stream = stream
        self._events = events
        self._timeout = options.request_timeout
        self._heard = False
        self._stands_in = False  # `_stand_in` will come
        self._flushes = False  # `_flush_together` will come
        self._over: ConnectionLostError | None = None  # the peer has closed
        self._goodbye: Pending | None = None  # our own close
        self._handlers = {
            lib.PN_DELIVERY: self._on_delivery,
            lib.PN_LINK_REMOTE_OPEN: self._on_link_open,
            lib.PN_LINK_REMOTE_CLOSE: self._on_link_close,
            lib.PN_LINK_REMOTE_DETACH: self._on_link_close,
            lib.PN_LINK_FLOW: self._on_flow,
            lib.PN_SESSION_REMOTE_OPEN: self._on_session_open,
            lib.PN_SESSION_REMOTE_CLOSE: self._on_session_close,
            lib.PN_CONNECTION_REMOTE_CLOSE: self._on_close,
            lib.PN_TRANSPORT_ERROR: self._on_error,
        }
        self.leader = Leader(stream, self._receive, self.lose, self._nobody_reads, self._close_stream)

    def start(self) -> None:
        """Begin, after the peer's open."""
        housekeeper().enter(self)
        due = self._tick(monotonic())
        if due is not None:
            housekeeper().at(due, self._tick)

    def check(self) -> None:
        """Raise ConnectionLostError where the connection is gone: nothing of proton may be touched then."""
        if self.lost is not None:
            raise ConnectionLostError(str(self.lost)) from self.lost

    def flush(self) -> None:
        """Send what the system takes now; by the holder of the lock, who calls `press_on` after it is released."""
        engine, stream = self.engine, self._stream
        self.unwritten = False
        self.waiting = 0
        more = True
        while more:
            view, more = engine.output()
            if not view:
                break
            try:
                sent = stream.send(view)
            except ConnectionLostError as error:
                self._over = error
                self.blocked = True  # `press_on` says so
                return
            engine.written(sent)
            self.written += sent
            if sent < len(view):
                self.blocked = True
                return
        self.blocked = False

    def press_on(self) -> None:
        """After a `flush` that left something: wait for the peer to take it.

        Raises:
            ConnectionLostError: it takes no byte for request_timeout, or is gone.
        """
        while self.blocked:
            if self._over is not None:
                self.lose(self._over)
                raise ConnectionLostError(str(self._over)) from self._over
            housekeeper().watch(self._stream.fileno(), self._look)
            writable = self._stream.wait_writable(self._timeout)
            with self.lock:
                self.check()
                if writable:
                    self.flush()
            if not writable:
                error = ConnectionLostError(f"{self._stream.name} took no byte for {self._timeout:g} s")
                self.lose(error)
                raise error

    def flush_soon(self) -> None:
        """Something waits for company; within milliseconds it leaves anyway."""
        self.unwritten = True
        if not self._flushes:
            self._flushes = True
            housekeeper().at(monotonic() + _TOGETHER_FOR, self._flush_together)

    def flush_now(self) -> None:
        """What waits for company leaves now. Raises ConnectionLostError."""
        with self.lock:
            self.check()
            self.flush()
        if self.blocked:
            self.press_on()

    def stand_in(self) -> None:
        """An answer is awaited by nobody who reads: soon the housekeeping thread does."""
        if not self._stands_in:
            self._stands_in = True
            housekeeper().at(monotonic() + _STAND_IN_AFTER, self._stand_in)

    def tell(self) -> None:
        """Tell what has come up while we held the lock ourselves."""
        with self.lock:
            tidings, self.tidings = self.tidings, Tidings()
        tidings.tell(self._events.on_error)

    def say_goodbye(self, deadline: float) -> None:
        """Close, and wait for the peer's close until ``deadline`` (monotonic seconds)."""
        waiter = Waiter()
        self._goodbye = Pending(waiter)
        try:
            with self.lock:
                self.check()
                self.engine.connection.close()
                self.flush()
            while not self._goodbye.done and (remaining := deadline - monotonic()) > 0:
                self.leader.wait(waiter, remaining)
        except ConnectionLostError:
            return  # it closed the socket instead

    def lose(self, error: JMSError) -> None:
        """The end, for whatever reason; only the first counts. Holds no lock while it tells."""
        with self.lock:
            if self.lost is not None:
                return
            self.lost = error
            for endpoint in list(self.endpoints.values()):
                lost = ConnectionLostError(str(error))
                lost.__cause__ = error
                endpoint.lose(lost)
            self.endpoints.clear()
            tidings, self.tidings = self.tidings, Tidings()
        self.blocked = False
        tidings.tell(self._events.on_error)
        self.leader.stop(error)
        housekeeper().leave(self, self._flush_together, self._tick, self._stand_in, watch=self._look)
        if not self.closing:
            self._events.on_lost(error)

    def orphan(self) -> None:
        """See `wire.housekeeping.Owner`."""
        error = ConnectionLostError("the connection was made before fork() and is the parent's: make one in the child")
        self.lock = threading.Lock()
        self.lost = error
        self.closing = True
        for endpoint in self.endpoints.values():
            endpoint.ended = error
        self.leader.orphan(error)

    def _receive(self, data: bytes) -> None:
        self._heard = True
        with self.lock:
            if self.lost is not None:
                return
            self.engine.receive(data)
            self.engine.dispatch(self._handlers)
            self.flush()
            if self.tidings:
                tidings, self.tidings = self.tidings, Tidings()
            else:
                tidings = None
        if tidings is not None:
            tidings.tell(self._events.on_error)
        if self._over is not None:
            raise self._over
        if self.blocked:  # whoever reads must not wait for the peer to read
            self.flush_soon()

    # what the peer did; by the holder of the lock

    def _on_delivery(self, event: Event) -> None:
        handle = lib.pn_event_delivery(event)
        link: Any = self.endpoints.get(lib.pn_delivery_link(handle))
        if link is not None:
            link.on_delivery(handle)

    def _on_link_open(self, event: Event) -> None:
        endpoint = self.endpoints.get(lib.pn_event_link(event))
        if endpoint is not None and endpoint.ended is None:
            handle = endpoint.handle
            agreed = handle.remote_target if handle.is_sender else handle.remote_source
            if agreed.type != agreed.UNSPECIFIED:  # otherwise it is refused, and the reason comes with the detach
                endpoint.on_opened()

    def _on_link_close(self, event: Event) -> None:
        endpoint = self.endpoints.get(lib.pn_event_link(event))
        if endpoint is not None:
            condition = condition_of(lib.pn_link_remote_condition(endpoint.raw))
            endpoint.on_closed(broker_error(condition, endpoint.what))

    def _on_session_open(self, event: Event) -> None:
        endpoint = self.endpoints.get(lib.pn_event_session(event))
        if endpoint is not None and endpoint.ended is None:
            endpoint.on_opened()

    def _on_session_close(self, event: Event) -> None:
        endpoint = self.endpoints.get(lib.pn_event_session(event))
        if endpoint is not None:
            condition = condition_of(lib.pn_session_remote_condition(endpoint.raw))
            endpoint.on_closed(broker_error(condition, endpoint.what))

    def _on_flow(self, event: Event) -> None:
        link: Any = self.endpoints.get(lib.pn_event_link(event))
        if link is not None:
            link.on_flow()

    def _on_close(self, _: Event) -> None:
        connection = self.engine.connection
        if self._goodbye is not None:
            self.tidings.answer(self._goodbye)
            return
        self._over = ConnectionLostError(
            str(broker_error(connection.remote_condition, "the broker closed the connection"))
        )
        connection.close()

    def _on_error(self, _: Event) -> None:
        self._over = ConnectionLostError(f"the protocol failed: {self.engine.failure}")

    # called by the way in

    def _nobody_reads(self) -> None:
        if self.unanswered or self.blocked:
            self.stand_in()

    def _close_stream(self) -> None:
        with self.lock:
            self._stream.close()
            self.engine.dispose()

    # on the housekeeping thread

    def _flush_together(self, now: float) -> float | None:
        self._flushes = False
        with self.lock:
            if self.lost is None:
                self.flush()
        if self._over is not None:
            self.lose(self._over)
        elif self.blocked and self.lost is None:
            self._flushes = True
            return now + _TOGETHER_FOR
        return None

    def _stand_in(self, _: float) -> float | None:
        self._stands_in = False
        if self._look():
            housekeeper().watch(self._stream.fileno(), self._look)
        return None

    def _look(self) -> bool:
        """Read what is there; whether to go on: only while nobody else reads, and there is something to wait for."""
        return self.leader.read_now() and bool(self.unanswered or self.blocked)

    def _tick(self, _: float) -> float | None:
        if not self._heard:
            self.leader.read_now()
        self._heard = False
        with self.lock:
            if self.lost is not None:
                return None
            due = self.engine.tick(monotonic())
            self.engine.dispatch(self._handlers)
            self.flush()
        if self._over is not None:
            self.lose(self._over)
            return None
        return due
