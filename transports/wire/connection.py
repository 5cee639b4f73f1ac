"""An established connection under threads: it owns the socket, the timers and the loss, whatever the protocol.

1. Threads that wait read for each other (`threads.leader`); where nobody waits, the housekeeping thread reads.
2. What is to leave together leaves after 3 ms at the latest.
3. The connection is lost once, for whatever reason, and everybody is notified without a lock held.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from redelivery.model.errors import ConnectionLostError, JMSError
from redelivery.transports.seam import ConnectionEvents
from redelivery.transports.wire.clock import monotonic
from redelivery.transports.wire.protocol import WireOwner, WireProtocol
from redelivery.transports.wire.sockets import Stream
from redelivery.transports.wire.threads.housekeeping import housekeeper
from redelivery.transports.wire.threads.leader import Leader
from redelivery.transports.wire.threads.waiter import Waiter

P = TypeVar("P", bound=WireProtocol)
_TOGETHER_FOR: Final = 0.003  # seconds that acknowledgements and asynchronous sends wait for company
_READ_ON_BEHALF_AFTER: Final = 0.005  # seconds that an answer may wait for somebody who reads


class WireConnection(Generic[P]):
    """From the end of the login to the loss. Thread-safe.

    Args:
        stream: the socket.
        make: the protocol, given its owner.
        events: are notified of the loss.
        timeout: seconds that the peer may take no byte of what is to leave.
    """

    def __init__(
        self, stream: Stream, make: Callable[[WireOwner], P], events: ConnectionEvents, timeout: float
    ) -> None:
        self._stream = stream
        self._events = events
        self._mutex = threading.Lock()
        self._draining = threading.Lock()  # held by the thread that waits for the peer to take something
        self._drainer: int | None = None  # which one that is
        self._reads_on_behalf = False  # `_read_on_behalf` will be called
        self.timeout = timeout
        self.closing = False  # by our own will: then nobody is notified
        self.lost: JMSError | None = None
        self.protocol = protocol = make(self)
        self._flush_now = protocol.flush_now
        self.leader = Leader(stream, protocol, self)

    @property
    def address(self) -> str | None:
        """The broker's, of those that the host may have."""
        return self._stream.address

    def start(self) -> None:
        """Begin. Raises JMSError where the connection cannot be kept."""
        due = self.protocol.next_deadline(monotonic())
        housekeeper().enter(self)
        if due is not None:
            housekeeper().at(due, self._tick)

    def wait(self, waiter: Waiter, timeout: float | None) -> None:
        """See `Transport.wait`. What waits to leave together leaves first."""
        self._flush_now()
        self.leader.wait(waiter, timeout)

    def lose(self, error: JMSError) -> None:
        """See `WireOwner.lose`."""
        with self._mutex:
            if self.lost is not None:
                return
            self.lost = error
        self.lost = error = self.protocol.fail(error)
        self.leader.stop(error)
        housekeeper().leave(self, self._flush, self._tick, self._read_on_behalf, watch=self._poll_once)
        if not self.closing:
            self._events.on_lost(error)

    def flush_soon(self) -> None:
        """See `WireOwner.flush_soon`."""
        housekeeper().at(monotonic() + _TOGETHER_FOR, self._flush)

    def read_on_behalf(self) -> None:
        """See `WireOwner.read_on_behalf`: the housekeeping thread does."""
        if not self._reads_on_behalf:
            self._reads_on_behalf = True
            housekeeper().at(monotonic() + _READ_ON_BEHALF_AFTER, self._read_on_behalf)

    def drain(self) -> None:
        """See `WireOwner.drain`."""
        error = self._drain()
        if error is not None:
            self.lose(error)
            raise ConnectionLostError(str(error)) from error

    # called by the leader

    def nobody_reads(self) -> None:
        """See `threads.leader.StreamOwner`."""
        if self.protocol.awaits:
            self.read_on_behalf()

    def release_stream(self) -> None:
        """See `threads.leader.StreamOwner`: the stream is shut down, so that no writer waits any more."""
        if self._drainer == threading.get_ident():  # a signal handler, which has interrupted that wait
            self.protocol.dispose()
            return
        with self._draining:
            self.protocol.dispose()

    # on the housekeeping thread

    def orphan(self) -> None:
        """See `threads.housekeeping.Owner`."""
        error = ConnectionLostError("the connection was made before fork() and is the parent's: make one in the child")
        self._mutex, self._draining, self._drainer = threading.Lock(), threading.Lock(), None
        self.lost = error
        self.closing = True
        self.protocol.orphan(error)
        self.leader.orphan(error)

    def _drain(self) -> JMSError | None:
        """Why not all of it has left; None where it has."""
        if self._drainer == threading.get_ident():  # in a signal handler: the wait that it has interrupted goes on
            return self.lost
        with self._draining:
            self._drainer = threading.get_ident()
            try:
                while self.protocol.flush():
                    self._watch()  # somebody must read, or two full pipes wait for each other
                    if not self._stream.wait_writable(self.timeout):
                        return ConnectionLostError(f"{self._stream.name} took no byte for {self.timeout:g} s")
            except JMSError as error:
                return self.lost or error
            finally:
                self._drainer = None
            return self.lost

    def _watch(self) -> None:
        housekeeper().watch(self._stream.fileno(), self._poll_once)

    def _flush(self, now: float) -> float | None:
        try:
            return now + _TOGETHER_FOR if self.protocol.flush() else None
        except JMSError as error:
            self.lose(error)
            return None

    def _read_on_behalf(self, _: float) -> float | None:
        self._reads_on_behalf = False
        if self._poll_once():
            self._watch()
        return None

    def _poll_once(self) -> bool:
        """Read what is there; whether to go on: only while nobody else reads, and there is something to wait for."""
        return self.leader.read_now() and self.protocol.awaits

    def _tick(self, now: float) -> float | None:
        if self.protocol.quiet(now):
            self.leader.read_now()
        try:
            due = self.protocol.tick(now)
        except JMSError as error:
            self.lose(error)
            return None
        return due if self.lost is None else None
