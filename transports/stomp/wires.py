"""The wires of one connection: one socket for all sessions, or one for each where the broker mixes sessions up.

1. The first wire is the connection's own: it alone carries the client id, which a broker takes once. Where a session
   has a wire to itself, and there is a client id, the first is for one with durable subscriptions, which need that.
2. Where `StompDialect.sessions_per_wire` is 1, a session has a wire to itself, from when it is made until it is closed.
   The wire is used again only after a clean end; of the further wires one is kept for the next session.
3. A wire on which temporary destinations were made stays open for them, and for further sessions.
4. The loss of any wire is the loss of the connection: all the others are closed, and it is reported once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

from redelivery.model.errors import ConnectionLostError, IllegalStateError, JMSError
from redelivery.transports.seam import NO_ANSWER, ConnectionEvents, Flow, Pending
from redelivery.transports.stomp.channel.commits import empty
from redelivery.transports.stomp.channel.context import StompChannelContext
from redelivery.transports.stomp.connection.protocol import StompWire
from redelivery.transports.wire.clock import monotonic
from redelivery.transports.wire.threads.waiter import ThreadWaiter


class Wires:
    """See above; thread-safe. It is the `ConnectionEvents` of its wires.

    Args:
        dial: opens a further wire. Raises ConnectError, SecurityError, ProtocolError.
        events: the connection's.
    """

    def __init__(self, dial: Callable[[], Flow[StompWire]], events: ConnectionEvents) -> None:
        self._dial = dial
        self._events = events
        self._lock = threading.Lock()  # guards what follows, and is never held while somebody waits
        self._first: StompWire | None = None
        self._most = 0  # sessions of a wire; 0: any number
        self._sessions: dict[StompWire, int] = {}  # of each wire that is open
        self._kept: set[StompWire] = set()
        self._unclean = False  # the first wire is for no further session
        self._reserved = False  # it is for one that needs the client id
        self._ended: JMSError | None = None

    def begin(self, first: StompWire, sessions_per_wire: int, *, reserved: bool = False) -> None:
        """The connection's own wire is open; ``reserved``: for sessions that need its client id."""
        self._reserved = reserved
        self._first = first
        self._most = sessions_per_wire
        self._sessions[first] = 0

    def take(self, *, client_id: bool = False) -> Flow[StompWire]:
        """The wire for one more session; ``client_id``: the first.

        Raises:
            IllegalStateError: another session has the first.
            ConnectionLostError, ConnectError, SecurityError, ProtocolError: there is no wire.
        """
        with self._lock:
            self._check()
            for wire in self._sessions:
                if self._serves(wire, client_id):
                    self._sessions[wire] += 1
                    return wire
        if client_id:
            raise IllegalStateError(
                "with this broker over STOMP one session of a connection at a time can have durable subscriptions, "
                "and another one has that place: use that one, or a connection with another client id, or amqp://"
            )
        return (yield from self._further(1))

    def own(self) -> Flow[StompWire]:
        """A wire for what lives as long as the connection: the first, or one for no session. Raises as `take`."""
        with self._lock:
            self._check()
            if not self._most and self._first is not None:
                return self._first
        return (yield from self._further(self._most))

    def _further(self, sessions: int) -> Flow[StompWire]:
        wire = yield from self._dial()
        with self._lock:
            if self._ended is None:
                self._sessions[wire] = sessions
                return wire
        _close(wire, self._ended)
        raise ConnectionLostError(str(self._ended)) from self._ended

    def leave(self, wire: StompWire, context: StompChannelContext, *, clean: bool) -> Flow[None]:
        """A session ends; ``clean``: nothing that it asked for was refused or unanswered.

        Where it had the wire for itself, this ends when what it did not wait for (asynchronous sends) is answered.

        Raises:
            JMSError: the broker did not answer; the wire is not used again.
        """
        if not self._most:
            return
        ends = wire is not self._first and (not clean or (wire not in self._kept and self._has_spare()))
        answered = False
        wire.closing = ends  # the broker may hang up as soon as it has answered, which is no loss
        try:
            if clean:
                pending, receipt = context.ask()
                context.outbox.write(context.control.disconnect(receipt.decode()) if ends else empty(receipt))
                yield from context.answer(pending, receipt)
                answered = True
        finally:
            self._left(wire, usable=answered and not ends)

    def keep(self, wire: StompWire) -> None:
        """Something on it is to live as long as the connection."""
        self._kept.add(wire)

    def poll_once(self) -> None:
        """Take in what the broker has said and nobody has read. Raises ConnectionLostError."""
        with self._lock:
            self._check()
            wires = list(self._sessions)
        for wire in wires:
            wire.wait(ThreadWaiter(), 0)

    def close(self, waiter: ThreadWaiter, timeout: float) -> Flow[None]:
        """DISCONNECT, answered, from every wire; all within ``timeout`` seconds. Harmless twice.

        ``waiter``: who waits for the answers, for one wire after the other.
        """
        deadline = monotonic() + timeout
        error = ConnectionLostError("the connection was closed")
        wires = self._end(error)
        try:
            if not any(wire.leader.leads for wire in wires):  # a callback on a thread that reads cannot wait
                for wire, pending in [(wire, _goodbye(wire, waiter, deadline)) for wire in wires]:
                    waiter.place = wire
                    with suppress(*NO_ANSWER):
                        yield pending
        finally:
            for wire in wires:
                wire.lose(error)

    @property
    def lost(self) -> bool:
        """See `Transport.lost`: where one wire is, all are. Without the lock, which its collector may hold."""
        return self._ended is not None or any(wire.lost is not None for wire in list(self._sessions))

    def abort(self) -> None:
        """Close without a goodbye."""
        error = ConnectionLostError("the connection was aborted")
        for wire in self._end(error):
            wire.lose(error)

    def on_lost(self, error: JMSError) -> None:
        """See ConnectionEvents: one wire is lost, and so are all."""
        wires = self._end(error)
        for wire in wires:
            wire.lose(error)
        if wires:
            self._events.on_lost(error)

    def on_error(self, error: JMSError) -> None:
        """See ConnectionEvents."""
        self._events.on_error(error)

    def _serves(self, wire: StompWire, client_id: bool) -> bool:
        if not self._most:
            return True
        if self._sessions[wire] >= self._most:
            return False
        if wire is self._first:
            return not self._unclean and self._reserved == client_id
        return not client_id

    def _check(self) -> None:
        if self._ended is not None:
            raise ConnectionLostError(str(self._ended)) from self._ended

    def _has_spare(self) -> bool:
        with self._lock:
            return any(not sessions for wire, sessions in self._sessions.items() if wire is not self._first)

    def _left(self, wire: StompWire, *, usable: bool) -> None:
        with self._lock:
            if wire not in self._sessions:  # the connection has ended
                return
            self._sessions[wire] -= 1
            if usable:
                return
            if wire is self._first:
                self._unclean = True
                return
            del self._sessions[wire]
            self._kept.discard(wire)
        _close(wire, ConnectionLostError("the session was closed"))

    def _end(self, error: JMSError) -> list[StompWire]:
        """All wires, which report nothing any more; for the first who ends the connection, none for the others."""
        with self._lock:
            wires, self._sessions = list(self._sessions), {}
            self._ended = self._ended or error
        for wire in wires:
            wire.closing = True
        return wires


class WirePlace:
    """One channel's place on a wire: its `ChannelOwner`.

    Args:
        wires: the connection's.
        wire: the session's.
        leaves: the place ends with the channel; a further channel of a session leaves the wire to the session.
    """

    def __init__(self, wires: Wires, wire: StompWire, *, leaves: bool) -> None:
        self._wires = wires
        self._wire = wire
        self._leaves = leaves
        self.on_error = wires.on_error
        self.read_on_behalf = wire.read_on_behalf

    def leave(self, context: StompChannelContext, *, clean: bool) -> Flow[None]:
        """See `ChannelOwner.leave`."""
        leaves, self._leaves = self._leaves, False
        if leaves:
            yield from self._wires.leave(self._wire, context, clean=clean)


def _close(wire: StompWire, error: JMSError) -> None:
    wire.closing = True
    wire.lose(error)


def _goodbye(wire: StompWire, waiter: ThreadWaiter, deadline: float) -> Pending:
    """DISCONNECT; the answer to it fails at once where nothing can be written."""
    pending = Pending(waiter)
    outbox, router = wire.protocol.outbox, wire.protocol.router
    wire.timeout = max(0.0, min(wire.timeout, deadline - monotonic()))
    with suppress(ConnectionLostError):
        receipt = router.expect(pending).decode()
        outbox.write(wire.protocol.control().disconnect(receipt))
        return pending
    pending.fail(ConnectionLostError("nothing can be written"))
    return pending
