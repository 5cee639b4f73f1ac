"""The way out of one connection: whole frames in order, at once or a little later together.

Nothing waits here: what the system does not take stays in the buffer, and the owner of the connection waits until it
has left (`WireOwner.drain`), with no lock held.

An interrupt tears nothing: what a writer has handed over leaves whole, and how much of it has left is noted in the same
step in which it leaves.
"""

from __future__ import annotations

import threading
from itertools import repeat
from typing import Final

from redelivery.model.errors import ConnectionLostError, IllegalStateError, JMSError
from redelivery.transports.wire.protocol import WireOwner
from redelivery.transports.wire.sockets import Stream

TOGETHER: Final = 64 << 10  # bytes that may wait for company
_PATIENT, _AT_ONCE = (True,), (False,)  # `blocking` of `Lock.acquire`, for `map`
_LONGEST_WRITE: Final = (30.0,)  # seconds, its `timeout`: a thread that is inside does not wait for the peer
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
        self._turns = map(self._lock.acquire, repeat(False))  # each step tries to take it, without waiting
        self._waiting: list[bytes] = []
        self._leaving: bytes | memoryview | None = None  # what is being sent, after which come those that wait
        self._sent: list[int] = []  # bytes of it that have left and are not taken off yet
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

        ``done`` gets an entry in the step from which on they leave: at once or, after an interrupt, soon.
        """
        taken: list[bool] = []
        left = False
        try:
            try:
                self._enter(taken)
                if self._waiting or self._leaving is not None or len(parts) != 1:
                    # no call until it is noted: an interrupt finds it done, or not begun
                    self._waiting += parts
                    if done is not None:
                        done += (None,)
                    left = self._push()
                else:
                    left = self._write_one(parts[0], done)
            finally:
                if taken and taken[0]:
                    self._lock.release()
            if left:
                self.congested = not self._owner.drain()
        except ConnectionLostError as error:
            if self.refusal is None:
                self._owner.lose(error)  # a frame may be torn: nothing can follow it
            raise ConnectionLostError(str(error)) from error  # which forgets its frames: see `lose`
        except BaseException:
            self._owner.flush_soon()  # an interrupt: what is left leaves soon
            raise
        self.wrote = True

    def later(self, data: bytes, done: list[None] | None = None) -> None:
        """Send whole frames soon; ``done`` as for `write`. Raises ConnectionLostError."""
        if self.refusal is not None:
            raise ConnectionLostError(str(self.refusal)) from self.refusal
        try:
            # no lock: only its holder takes something out of the list, and to add to it is one step. No call until it
            # is noted, as in `write`
            self._waiting += (data,)
            if done is not None:
                done += (None,)
            self._size += len(data)
            if self._size > TOGETHER:
                self.write()
            elif not self._expected:  # read after: see `flush_quietly`
                self._expected = True
                self._owner.flush_soon()
        except JMSError:
            raise
        except BaseException:
            self._owner.flush_soon()
            raise

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
        taken: list[bool] = []
        try:
            taken.extend(map(self._lock.acquire, _AT_ONCE))
            if not taken[0]:
                return True
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
            if taken and taken[0]:
                self._lock.release()

    def close(self) -> None:
        """Close the stream when no writer is inside; it is shut down already, so none stays."""
        taken: list[bool] = []
        try:
            taken.extend(map(self._lock.acquire, _PATIENT, _LONGEST_WRITE))
            self._stream.close()
        finally:
            if taken and taken[0]:
                self._lock.release()

    def orphan(self, error: JMSError) -> None:
        """In a child after fork(): the threads that may have held the lock are not here to release it."""
        self.refusal = error
        self._lock = threading.Lock()
        self._turns = map(self._lock.acquire, repeat(False))
        self._waiting, self._leaving = [], None

    def _enter(self, taken: list[bool]) -> None:
        """Take the lock and note it in one step, so that no interrupt comes between; the caller releases it."""
        for got in self._turns:  # no look for signals until it is noted
            taken += (got,)
            break
        if not taken[0]:
            del taken[:]
            taken += map(self._lock.acquire, _PATIENT, _LONGEST_WRITE)
            if not taken[0]:
                raise IllegalStateError("a signal handler cannot write while it interrupts a write of its own thread")
        if self.refusal is not None:
            raise ConnectionLostError(str(self.refusal)) from self.refusal

    def _write_one(self, data: bytes, done: list[None] | None) -> bool:
        """The usual case, in fewer steps: every ACK comes here. Whether something is left."""
        sent, size = self._sent, len(data)
        # no call until it is noted, as in `write`
        self._leaving = data
        if done is not None:
            done += (None,)
        try:
            self._stream.send_noting(data, sent)
        except ConnectionLostError:
            if done is not None:
                done.clear()  # nothing of it has left
            raise
        if sent and sent[0] == size:
            # no call between the two
            self._leaving = None
            del sent[0]
            return False
        return self._push()

    def _push(self) -> bool:
        """Send what the system takes at once; whether something is left. By the holder of the lock.

        An interrupt may come after any call: then what has left is noted, and the next one goes on from there.
        """
        sent = self._sent
        while True:
            leaving = self._leaving
            if sent and leaving is not None:
                rest = None if sent[0] == len(leaving) else memoryview(leaving)[sent[0] :]
                # no call between the two
                self._leaving = leaving = rest
                del sent[0]
            if leaving is None:
                if not self._waiting:
                    self._size = 0
                    self.blocked = self.congested = False
                    return False
                leaving = self._next()
            self._stream.send_noting(leaving, sent)
            if not sent:
                self.blocked = True
                return True

    def _next(self) -> bytes:
        """What leaves next: all that waits together where that is small, for the sake of fewer system calls."""
        waiting = self._waiting[:]  # others may add to it
        count = len(waiting)
        if count > 1 and sum(map(len, waiting)) > _JOINED:
            size, count = len(waiting[0]), 1
            while size + len(waiting[count]) <= _JOINED:
                size += len(waiting[count])
                count += 1
        data = waiting[0] if count == 1 else b"".join(waiting[:count])
        # no call between the two
        self._leaving = data
        del self._waiting[:count]
        return data
