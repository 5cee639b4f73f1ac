"""Leader and followers: of the threads that wait on one connection, one reads for all.

1. The thread that waits reads itself, so that a message need not be handed from thread to thread.
2. The leader only passes bytes on (they become deliveries in inboxes and answers to requests); it never runs a session.
3. A leader that leaves, also by an exception, wakes one parked thread, unless another thread already leads. So while
   anybody waits, somebody reads.
4. An interrupt ends a wait, never what a read has brought (`guard`).
"""

from __future__ import annotations

import threading
from typing import Final, Protocol

from redelivery.model.errors import ConnectionLostError, IllegalStateError, JMSError
from redelivery.transports.wire.clock import monotonic
from redelivery.transports.wire.sockets import Stream
from redelivery.transports.wire.threads.guard import at_once, handle_noted, noted, protected
from redelivery.transports.wire.threads.waiter import ThreadWaiter

_READS_AFTER_DEADLINE: Final = 4  # what is there counts as in time; others' messages must not hold us
_READS_ON_BEHALF: Final = 8


class ByteReceiver(Protocol):
    """The receiver of what is read."""

    def receive(self, data: bytes) -> None:
        """Some bytes, on the thread that reads. Raises JMSError when they end the connection."""


class StreamOwner(Protocol):
    """The owner of the stream."""

    def lose(self, error: JMSError) -> None:
        """The connection is lost, or what was read ends it; must call `Leader.stop`."""

    def nobody_reads(self) -> None:
        """The last reader has gone."""

    def release_stream(self) -> None:
        """Close the stream; called once, after `Leader.stop`, when nobody reads any more."""


class Leader:
    """Chooses the thread that reads one stream."""

    def __init__(self, stream: Stream, receiver: ByteReceiver, owner: StreamOwner) -> None:
        self._stream = stream
        self._receiver = receiver
        self._owner = owner
        self._mutex = threading.Lock()
        self._leader: int | None = None  # the thread that leads
        self._reader: int | None = None  # the thread that is inside `receive`: the leader
        self._parked: list[ThreadWaiter] = []
        self._closed = False
        self.lost: JMSError | None = None

    @property
    def leads(self) -> bool:
        """True: the calling thread is the one that reads (so it is inside `receive`)."""
        return self._reader == threading.get_ident()

    @property
    def led(self) -> bool:
        """True: some thread reads."""
        return self._leader is not None

    def wait(self, waiter: ThreadWaiter, timeout: float | None) -> None:
        """Return when the waiter was woken since its last wait, or after ``timeout`` seconds; reads meanwhile.

        A ``timeout`` of 0 reads what is there, also where the waiter was woken before: who asks so wants to know.

        Raises:
            ConnectionLostError: the connection is gone.
            IllegalStateError: the thread is in the midst of a read: the caller is a callback, or a signal handler.
        """
        if self._reader is not None and self._reader == threading.get_ident():
            raise IllegalStateError(
                "a callback that is notified of an answer, or a signal handler that has come in between, runs in the "
                "midst of a read: it cannot wait; let another thread do it, or raise SystemExit in the handler"
            )
        try:
            self._wait(waiter, timeout)
        finally:
            if noted:
                handle_noted()

    @protected
    def _wait(self, waiter: ThreadWaiter, timeout: float | None) -> None:
        deadline = None if timeout is None else monotonic() + timeout
        if timeout == 0:
            waiter.woken = False  # it may be for an answer that was seen without a wait
        while not waiter.woken:
            try:
                if self._take_lead(waiter):
                    self._lead(waiter, deadline)
                else:
                    waiter.park(None if deadline is None else deadline - monotonic())
            finally:
                self._step_back(waiter)
            if not waiter.woken and deadline is not None and monotonic() >= deadline:
                break
        waiter.woken = False

    def read_now(self, *, acknowledges: bool = True) -> bool:
        """Read what is there, without waiting, for those who do not read; False if somebody reads.

        ``acknowledges``: by TCP, too, at once: the one who waits does not come by. Else the caller does.
        """
        with self._mutex:
            if self._leader is not None or self.lost is not None:
                return False
            self._leader = threading.get_ident()
        try:
            for _ in range(_READS_ON_BEHALF):
                if not self._read() or self._stream.drained:
                    break
            if acknowledges:
                self._stream.acknowledge_quickly()
        finally:
            self._step_back(None)
        return True

    def stop(self, error: JMSError) -> None:
        """The connection is gone: each thread that waits gets a ConnectionLostError that says why."""
        with self._mutex:
            if self.lost is not None:
                return
            self.lost = error
            parked = list(self._parked)
            close = self._leader is None
        self._stream.shut_down()
        for waiter in parked:
            waiter.nudge()
        if close:
            self._close_once()

    def orphan(self, error: JMSError) -> None:
        """In a child after fork(): forget the parent's threads and descriptors; the parent's connection goes on."""
        self._mutex = threading.Lock()
        self._parked = []
        self._leader = None
        self.lost = error
        self._close_once()

    def _take_lead(self, waiter: ThreadWaiter) -> bool:
        me = threading.get_ident()
        with self._mutex:
            if self.lost is not None:
                raise ConnectionLostError(str(self.lost)) from self.lost
            if self._leader is None or self._leader == me:
                self._leader = me
                return True
            self._parked.append(waiter)
            return False

    def _lead(self, waiter: ThreadWaiter, deadline: float | None) -> None:
        late, me = 0, threading.get_ident()
        while not waiter.woken and self.lost is None:
            remaining = None
            if deadline is not None:
                remaining = deadline - monotonic()
                if remaining <= 0.0:
                    remaining = 0.0
                    late += 1
                    if late > _READS_AFTER_DEADLINE:
                        return
            waiter.poke = self._stream.poke
            try:
                # Read after `poke` was set: a wake that came before that is seen, a later one pokes.
                ready = waiter.woken or self._stream.wait_readable(at_once(remaining))
            finally:
                waiter.poke = None
            if not ready or self._leader != me:  # a signal handler has read meanwhile, and leads no more
                return
            self._read()

    def _read(self) -> bool:
        """One read and all that it brings; False when nothing came."""
        if self.lost is not None:
            return False
        self._reader = threading.get_ident()
        try:
            data = self._stream.receive()
            if data is None or self.lost is not None:
                return False
            self._receiver.receive(data)
        except JMSError as error:
            self._owner.lose(error)
            return False
        finally:
            self._reader = None
        return True

    def _step_back(self, waiter: ThreadWaiter | None) -> None:
        """Lead no more, or park no more, whichever it was."""
        me = threading.get_ident()
        with self._mutex:
            if self._leader == me:
                self._leader = None
            elif waiter in self._parked:
                self._parked.remove(waiter)
            if self._leader is not None:
                return
            heir, lost = self._parked[0] if self._parked else None, self.lost is not None
        if heir is not None:
            heir.nudge()
        if lost:
            self._close_once()
        elif heir is None:
            self._owner.nobody_reads()

    def _close_once(self) -> None:
        with self._mutex:
            if self._closed:
                return
            self._closed = True
        self._owner.release_stream()
