"""The way out of one connection: whole frames in order, at once or a little later together."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from redelivery.model.errors import ConnectionLostError, JMSError
from redelivery.transports.wire.socket import Stream

TOGETHER: Final = 64 << 10  # bytes that may wait for company
_JOINED: Final = 256 << 10  # bytes up to which one copy is cheaper than more system calls


class Outbox:
    """Any thread may write. What is written later leaves with the next write or `flush`, or when it is 64 KiB.

    Args:
        stream: where to.
        timeout: seconds that the peer may take no byte, and that a writer waits for another one.
        fail: is told that the connection is lost, without a lock held.
        queued: is called when something waits, once until `flush_quietly` has found nothing.
        stuck: is called when the peer takes nothing: somebody must read, or two full pipes wait for each other.
    """

    def __init__(
        self,
        stream: Stream,
        timeout: float,
        fail: Callable[[JMSError], object],
        queued: Callable[[], None],
        stuck: Callable[[], None],
    ) -> None:
        self._stream = stream
        self._fail = fail
        self._queued = queued
        self._stuck = stuck
        self._lock = threading.Lock()
        self._waiting: list[bytes] = []
        self._size = 0
        self._expected = False  # `queued` was called, `flush_quietly` will come
        self.timeout = timeout
        self.refusal: JMSError | None = None  # why nothing can be written any more
        self.blocked = False  # a writer waits for the peer to read
        self.wrote = False  # a sign of life went out since this was last set to False

    def write(self, *parts: bytes) -> None:
        """Send the parts of one or more whole frames now, after what waits. Raises ConnectionLostError."""
        try:
            # the usual case without another call: every ACK comes here
            if self.refusal is not None or not self._lock.acquire(blocking=False):
                self._enter()
            try:
                if self._waiting:
                    parts = (*self._take(), *parts)
                if len(parts) == 1:
                    data = parts[0]
                    sent = self._stream.send(data)
                    if sent < len(data):
                        self._send_rest(memoryview(data)[sent:])
                else:
                    self._send(parts)
            finally:
                self._lock.release()
        except ConnectionLostError as error:
            self._fail(error)  # a frame may be torn: nothing can follow it
            raise
        self.wrote = True

    def later(self, data: bytes) -> None:
        """Send whole frames soon. Raises ConnectionLostError."""
        if self.refusal is not None or not self._lock.acquire(blocking=False):
            self._enter()
        self._waiting.append(data)
        self._size += len(data)
        full = self._size > TOGETHER
        self._lock.release()
        if full:
            self.write()
        elif not self._expected:
            self._expected = True
            self._queued()

    def flush(self) -> None:
        """Send what waits. Raises ConnectionLostError."""
        if self._waiting:
            self.write()

    def flush_quietly(self, more: bytes = b"") -> bool:
        """Send of what waits, and of a frame ``more``, as much as the system takes at once; never waits.

        Returns:
            False when there was nothing. True also when a writer is at it; ``more`` is left out then.

        Raises:
            ConnectionLostError: the caller tells.
        """
        if not self._lock.acquire(blocking=False):
            return True
        try:
            if more:
                self._waiting.append(more)
            if not self._waiting:
                self._expected = False
                return False
            data = b"".join(self._take())
            sent = self._stream.send(data)
            if sent < len(data):
                self._waiting.append(data[sent:])
                self._size = len(data) - sent
            self.wrote = True
            return True
        finally:
            self._lock.release()

    def close(self) -> None:
        """Close the stream when no writer is inside; it is shut down already, so none stays."""
        self._lock.acquire(timeout=self.timeout)
        self._stream.close()
        self._lock.release()

    def orphan(self, error: JMSError) -> None:
        """In a child after fork(): the threads that may have held the lock are not here to release it."""
        self.refusal = error
        self._lock = threading.Lock()
        self._waiting = []

    def _enter(self) -> None:
        if not self._lock.acquire(timeout=self.timeout):
            raise ConnectionLostError(f"{self._stream.name} took no byte for {self.timeout:g} s")
        if self.refusal is not None:
            self._lock.release()
            raise ConnectionLostError(str(self.refusal)) from self.refusal

    def _take(self) -> list[bytes]:
        taken, self._waiting, self._size = self._waiting, [], 0
        return taken

    def _send(self, parts: tuple[bytes, ...]) -> None:
        if len(parts) > 1 and sum(map(len, parts)) <= _JOINED:
            parts = (b"".join(parts),)
        for part in parts:
            sent = self._stream.send(part)
            if sent < len(part):
                self._send_rest(memoryview(part)[sent:])

    def _send_rest(self, rest: memoryview) -> None:
        try:
            while rest:
                sent = self._stream.send(rest)
                rest = rest[sent:]
                if not sent:
                    if not self.blocked:
                        self.blocked = True
                        self._stuck()
                    if not self._stream.wait_writable(self.timeout):
                        raise ConnectionLostError(f"{self._stream.name} took no byte for {self.timeout:g} s")
        finally:
            self.blocked = False
