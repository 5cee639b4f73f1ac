"""AMQP on an established connection: proton's engine, the links that live on it, and the way out.

1. `lock` is held around every call of proton, and never while somebody waits or is notified.
2. What goes out stays in proton's buffer until the system takes it. A writer that finds the pipe full waits outside
   the lock, so that the thread that reads can go on: two full pipes would wait for each other otherwise.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, TypeAlias

from cproton_ffi import lib

from redelivery.model.errors import ConnectionLostError, JMSError, ProtocolError
from redelivery.transports.amqp.codec.errors import broker_error
from redelivery.transports.amqp.engine import AmqpEngine, Event
from redelivery.transports.amqp.links.endpoints import LinkTable, Nodes
from redelivery.transports.runtime import Runtime
from redelivery.transports.seam import NO_ANSWER, ConnectionEvents, Flow, Pending, TransportOptions, Waiter
from redelivery.transports.wire.clock import monotonic
from redelivery.transports.wire.connection import WireConnection
from redelivery.transports.wire.protocol import WireOwner
from redelivery.transports.wire.sockets import Stream
from redelivery.transports.wire.threads.runtime import THREADS

_NEVER: Final = float("inf")


class AmqpProtocol:
    """See `WireProtocol`. Thread-safe where nothing else is said."""

    def __init__(
        self, engine: AmqpEngine, stream: Stream, options: TransportOptions, events: ConnectionEvents, owner: WireOwner
    ) -> None:
        self.engine = engine
        self.lock = threading.Lock()
        self.table = LinkTable(
            engine, stream.name, options.request_timeout, owner.tick_at, client_id=options.client_id is not None
        )
        self.nodes: Nodes | None = None  # where a queue must be found first
        self.lost: JMSError | None = None
        self.blocked = False  # the system did not take all
        self.unwritten = False  # something waits for company
        self.waiting = 0  # bytes of messages that do
        self.written = 0  # bytes that the system took
        self.read_on_behalf = owner.read_on_behalf
        self.drain = owner.drain
        self.when_drained = owner.when_drained
        self._stream = stream
        self._events = events
        self._owner = owner
        self._timeout = options.request_timeout
        self._heard = monotonic()  # when the peer last sent anything
        self._ticked = 0.0  # when time last passed
        # proton has said it to the peer, and would know nothing but silence
        self._idle: float = engine.transport.idle_timeout
        engine.transport.idle_timeout = 0
        self._failure: JMSError | None = None  # the peer has closed
        self._goodbye: Pending | None = None  # our own close
        self._handlers = {
            **self.table.handlers(),
            lib.PN_CONNECTION_REMOTE_CLOSE: self._on_close,
            lib.PN_TRANSPORT_ERROR: self._on_error,
        }

    def check(self) -> None:
        """Raise ConnectionLostError where the connection is gone: nothing of proton may be touched then."""
        if self.lost is not None:
            raise ConnectionLostError(str(self.lost)) from self.lost

    def raise_refused(self, written: int) -> None:
        """Raise ConnectionLostError where a `write` failed and nothing of it has left: no more than ``written`` has.

        Where some of it has, the broker may have it all, and nothing is raised. Called without the lock.
        """
        if self._failure is not None and self.written == written:
            self.drain()
            raise ConnectionLostError(str(self._failure)) from self._failure

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the connection, then write what came of it. Raises ConnectionLostError."""
        with self.lock:
            self.check()
            yield
            self.write()
        if self.blocked:
            self.drain()
        if self.table.notifications:
            self.notify()

    def write(self) -> None:
        """Send what the system takes now; by the holder of the lock, who calls `drain` after its release."""
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
                self._failure = error
                self.blocked = True  # `drain` says so
                return
            engine.written(sent)
            self.written += sent
            if sent < len(view):
                self.blocked = True
                return
        self.blocked = False

    def flush_soon(self) -> None:
        """Something waits for company; within milliseconds it leaves anyway."""
        if not self.unwritten:
            self.unwritten = True
            self._owner.flush_soon()

    def flush_now(self) -> None:
        """See `WireProtocol.flush_now`."""
        if not self.unwritten:
            return
        with self.lock:
            self.check()
            self.write()
        if self.blocked:
            self.drain()

    def flush(self) -> bool:
        """See `WireProtocol.flush`."""
        with self.lock:
            if self.lost is not None:
                return False
            self.write()
        if self._failure is not None:
            raise self._failure
        return self.blocked

    def notify(self) -> None:
        """Notify of what has come up while we held the lock ourselves."""
        with self.lock:
            notifications = self.table.take_notifications()
        if notifications is not None:
            notifications.notify(self._events.on_error)

    def begin_goodbye(self, pending: Pending) -> None:
        """Close; the pending is the peer's close. Raises ConnectionLostError."""
        self._goodbye = pending
        with self.lock:
            self.check()
            self.engine.connection.close()
            self.write()

    def fail(self, error: JMSError) -> JMSError:
        """See `WireProtocol.fail`."""
        with self.lock:
            self.lost = error
            lost = ConnectionLostError(str(error))
            lost.__cause__ = error
            self.table.lose(lost)
            notifications = self.table.take_notifications()
        self.blocked = False
        if notifications is not None:
            notifications.notify(self._events.on_error)
        return error

    def orphan(self, error: JMSError) -> None:
        """See `WireProtocol.orphan`."""
        self.lock = threading.Lock()
        self.lost = error
        for endpoint in self.table.endpoints.values():
            endpoint.ended = error

    def dispose(self) -> None:
        """See `WireProtocol.dispose`."""
        with self.lock:
            self._stream.close()
            self.engine.dispose()

    def receive(self, data: bytes) -> None:
        """See `WireProtocol.receive`."""
        self._heard = monotonic()
        with self.lock:
            if self.lost is not None:
                return
            self.engine.receive(data)
            self.engine.dispatch(self._handlers)
            self.write()
            notifications = self.table.take_notifications()
        if notifications is not None:
            notifications.notify(self._events.on_error)
        if self._failure is not None:
            raise self._failure
        if self.blocked:  # the thread that reads must not wait for the peer to read
            self.flush_soon()

    # what the peer did; by the holder of the lock

    def _on_close(self, _: Event) -> None:
        connection = self.engine.connection
        if self._goodbye is not None:
            self.table.notifications.answer(self._goodbye)
            return
        self._failure = ConnectionLostError(
            str(broker_error(connection.remote_condition, "the broker closed the connection"))
        )
        connection.close()

    def _on_error(self, _: Event) -> None:
        self._failure = ProtocolError(f"the broker breaks the rules of AMQP 1.0: {self.engine.failure}")

    # time

    @property
    def awaits(self) -> bool:
        """See `WireProtocol.awaits`."""
        return bool(self.table.unanswered or self.blocked)

    def next_deadline(self, now: float) -> float | None:
        """See `WireProtocol.next_deadline`: only proton knows, and says so where time passes."""
        return self.tick(now)

    def quiet(self, now: float) -> bool:
        """See `WireProtocol.quiet`."""
        return self._heard <= self._ticked or now >= self._heard + self._idle

    def tick(self, now: float) -> float | None:
        """See `WireProtocol.tick`."""
        self._ticked = monotonic()
        with self.lock:
            if self.lost is not None:
                return None
            due = min(self.engine.tick(now) or _NEVER, self.table.expire(self._ticked) or _NEVER)
            self.engine.dispatch(self._handlers)
            self.write()
            silent_until = self._silent_until()
            notifications = self.table.take_notifications()
        if notifications is not None:
            notifications.notify(self._events.on_error)
        if self._failure is None and now >= silent_until:
            self._failure = ConnectionLostError(
                f"{self._stream.name} was silent for {now - self._heard:.3g} s; the idle time-out is {self._idle:g} s"
            )
        if self._failure is not None:
            raise self._failure
        if silent_until != _NEVER:
            due = min(due, silent_until, now + self._idle)
        return None if due == _NEVER else due

    def _silent_until(self) -> float:
        """The time when a peer that has been silent since it was last heard is taken for dead.

        One that works on a request for long may send nothing meanwhile, not even a sign of life (ActiveMQ Classic, at
        the discharge of a large transaction), and so has as long as the request has.
        """
        if not self._idle:
            return _NEVER
        patience = self._timeout if any(each.awaits for each in self.table.endpoints.values()) else 0.0
        return self._heard + self._idle + patience


AmqpConnection: TypeAlias = WireConnection[AmqpProtocol]


def amqp_connection(
    stream: Stream,
    engine: AmqpEngine,
    options: TransportOptions,
    events: ConnectionEvents,
    runtime: Runtime = THREADS,
) -> AmqpConnection:
    """A connection after the peer's open."""
    return WireConnection(
        stream,
        lambda owner: AmqpProtocol(engine, stream, options, events, owner),
        events,
        options.request_timeout,
        runtime,
    )


def say_goodbye(connection: AmqpConnection, waiter: Waiter) -> Flow[None]:
    """Close, and wait for the peer's close, as long as the driver does."""
    pending = Pending(waiter)
    with suppress(*NO_ANSWER):  # it closed the socket instead, or is silent
        connection.protocol.begin_goodbye(pending)
        yield pending
