"""The way out of one connection: whole frames in order, at once or a little later together.

Nothing waits here: what the system does not take stays in the buffer, and the owner of the connection waits until it
has left (`WireOwner.drain`), with no lock held.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Final

from redelivery.model.errors import ConnectionLostError, IllegalStateError, JMSError
from redelivery.transports.wire.protocol import WireOwner
from redelivery.transports.wire.sockets import Stream

TOGETHER: Final = 64 << 10  # bytes that may wait for company
_LONGEST_WRITE: Final = 30.0  # seconds: a thread that is inside does not wait for the peer
_JOINED: Final = 256 << 10  # bytes up to which one copy is cheaper than more system calls


class Outbox:
    """Any thread may write. What is written later leaves with the next write or `flush`, or when it is 64 KiB.

    Args:
        stream: where to.
        owner: flushes what waits, waits for a peer that takes nothing, and is notified of the loss.
    """

    def __init__(self, stream: Stream, owner: WireOwner) -> None:
        self._stream = stream
        self._owner = owner
        self._lock = threading.Lock()
        self._waiting: list[bytes] = []
        self._leaving: bytes | memoryview | None = None  # what is being sent, after which come those that wait
        self._written = 0  # bytes that have left
        self._size = 0
        self._expected = False  # `flush_soon` was called, `flush_quietly` will be
        self.refusal: JMSError | None = None  # why nothing can be written any more
        self.blocked = False  # the system did not take all
        self.congested = False  # nor did the writer wait until it had: an event loop
        self.when_drained = owner.when_drained
        self.wrote = False  # a sign of life went out since this was last set to False

    def check(self) -> None:
        """Raise ConnectionLostError where nothing can be written any more."""
        if self.refusal is not None:
            raise ConnectionLostError(str(self.refusal)) from self.refusal

    def write(self, *parts: bytes, done: list[None] | None = None) -> None:
        """Send the parts of one or more whole frames now, after what waits. Raises ConnectionLostError.

        ``done`` gets an entry when they leave, or will.
        """
        try:
            if not self._lock.acquire(timeout=_LONGEST_WRITE):
                raise IllegalStateError("a signal handler cannot write while it interrupts a write of its own thread")
            try:
                if self.refusal is not None:
                    self.check()
                left = self._push_all(parts, done)
            finally:
                self._lock.release()
            if left:
                self.congested = not self._owner.drain()
        except ConnectionLostError as error:
            if self.refusal is None:
                self._owner.lose(error)  # a frame may be torn: nothing can follow it
            raise ConnectionLostError(str(error)) from error  # which forgets its frames: see `lose`
        self.wrote = True

    def later(self, data: bytes, done: list[None] | None = None) -> None:
        """Send whole frames soon; ``done`` as for `write`. Raises ConnectionLostError."""
        if self.refusal is not None:
            self.check()
        # no lock: only its holder takes something out of the list, and to add to it is one step
        self._waiting.append(data)
        if done is not None:
            done.append(None)
        self._size += len(data)
        if self._size > TOGETHER:
            self.write()
        elif not self._expected:  # read after: see `flush_quietly`
            self._expected = True
            self._owner.flush_soon()

    def flush(self) -> None:
        """Send what waits. Raises ConnectionLostError."""
        if self._waiting or self._leaving is not None:
            self.write()

    def flush_quietly(self, more: bytes = b"") -> bool:
        """Send of what waits, and of a frame ``more``, as much as the system takes at once; never waits.

        Returns:
            False when there was nothing. True also when a writer is at it; ``more`` is left out then.

        Raises:
            ConnectionLostError: the caller reports it.
        """
        if not self._lock.acquire(blocking=False):
            return True
        try:
            if more:
                self._waiting.append(more)
            self._expected = False  # before the look: what is added after it asks for the next flush
            if not self._waiting and self._leaving is None:
                return False
            self._expected = True
            self._push()
            self.wrote = True
            return True
        finally:
            self._lock.release()

    def close(self) -> None:
        """Close the stream when no writer is inside; it is shut down already, so none stays."""
        held = self._lock.acquire(timeout=_LONGEST_WRITE)
        self._stream.close()
        if held:
            self._lock.release()

    def orphan(self, error: JMSError) -> None:
        """In a child after fork(): the threads that may have held the lock are not here to release it."""
        self.refusal = error
        self._lock = threading.Lock()
        self._waiting, self._leaving = [], None

    def _push_all(self, parts: Sequence[bytes], done: list[None] | None) -> bool:
        first, before = not self._waiting and self._leaving is None, self._written
        self._waiting += filter(None, parts)  # what sends nothing looks like a peer that takes nothing
        if done is not None:
            done.append(None)
        try:
            return self._push()
        except ConnectionLostError:
            if first and done is not None and self._written == before:
                done.clear()  # nothing of it has left
            raise

    def _push(self) -> bool:
        """Send what the system takes at once; whether something is left. By the holder of the lock."""
        while True:
            if self._leaving is None:
                if not self._waiting:
                    self._size = 0
                    self.blocked = self.congested = False
                    return False
                self._leaving = self._next()
            sent = self._stream.send(self._leaving)
            if not sent:
                self.blocked = True
                return True
            self._written += sent
            self._leaving = None if sent == len(self._leaving) else memoryview(self._leaving)[sent:]

    def _next(self) -> bytes:
        """The bytes that leave next: all that waits together where that is small, for fewer system calls."""
        if len(self._waiting) == 1:
            return self._waiting.pop(0)
        waiting = self._waiting[:]  # others may add to it
        count = len(waiting)
        if count > 1 and sum(map(len, waiting)) > _JOINED:
            size, count = len(waiting[0]), 1
            while size + len(waiting[count]) <= _JOINED:
                size += len(waiting[count])
                count += 1
        data = b"".join(waiting[:count])
        del self._waiting[:count]
        return data
