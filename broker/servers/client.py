"""The base of the sockets of both protocols: read, do step after step, write, and end slowly; never waiting."""

from __future__ import annotations

import socket
from abc import abstractmethod
from contextlib import suppress
from typing import Final

from redelivery.broker.core import BrokerClosedError, Core
from redelivery.broker.faults import ClientStep
from redelivery.transports.wire.clock import monotonic

_READ: Final = 256 << 10  # bytes
_ROUND: Final = 1 << 20  # bytes for one client before it is another's turn
_CONNECT: Final = 30.0  # seconds for the login (ActiveMQ's connectAttemptTimeout)
_LINGER: Final = 2.0  # seconds for a client to read the answers before the connection is closed


class ClientSocket(ClientStep):
    """One client's socket, and what is exchanged through it. Used by the listener's thread only.

    A step is what a client asks for at once: one frame, one command; a `redelivery.broker.faults.ClientStep`.
    """

    def __init__(self, sock: socket.socket, core: Core) -> None:
        self.socket = sock
        self.closed = False
        self._core = core
        self.opened = monotonic()
        self._delayed_until = 0.0  # by a fault: the next step is done then
        self._closing_at: float | None = None  # when, if the client does not read the last answers

    # of the protocol

    @property
    @abstractmethod
    def reads(self) -> bool:
        """True: more is wanted from the client."""

    @property
    @abstractmethod
    def writes(self) -> bool:
        """True: something waits to be written."""

    @abstractmethod
    def write(self) -> None:
        """Write what the client takes at once."""

    @abstractmethod
    def next_deadline(self) -> float | None:
        """The time when `tick` has something to do; monotonic seconds, None for never."""

    @abstractmethod
    def tick(self, now: float) -> None:
        """Do what is due."""

    @abstractmethod
    def close(self) -> None:
        """End at once; what the client held is released. The listener closes the socket. Idempotent."""

    @property
    @abstractmethod
    def _connected(self) -> bool:
        """True: the login is done."""

    @abstractmethod
    def _take_in(self, data: bytes) -> None:
        """The client has sent this."""

    @abstractmethod
    def _has_steps(self) -> bool:
        """Check whether a step can be taken now."""

    @abstractmethod
    def _take_step(self) -> str | None:
        """Take the next one; the name that faults have for it, if they have one."""

    @abstractmethod
    def _next_bytes(self) -> bytes | memoryview:
        """The bytes to be written next; empty where there are none."""

    @abstractmethod
    def _mark_written(self, size: int) -> None:
        """Note that so many bytes of it have left."""

    # the same for both

    @property
    def logs_in(self) -> bool:
        """True: the client has not finished its login."""
        return not self.closed and not self._connected

    def read(self) -> None:
        """Take what is there, and do it."""
        try:
            data = self.socket.recv(_READ)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
        elif self._closing_at is None:
            self._take_in(data)

    def _do_steps(self) -> None:
        """Do what the client has asked for, up to a step that is delayed."""
        while not self.closed and self._has_steps():
            if not self._delayed_until:
                self._core.faults.run(self._take_step(), self)
            elif monotonic() < self._delayed_until:
                return
            else:
                self._delayed_until = 0.0
                self._take_step()
                self.execute_step()

    def _write_round(self) -> int:
        """Write what the client takes at once, up to its turn's end; how many bytes. It may have to be closed."""
        written = 0
        try:
            while written < _ROUND and (output := self._next_bytes()):
                sent = self.socket.send(output)
                written += sent
                self._mark_written(sent)
        except BlockingIOError:
            pass
        except (OSError, BrokerClosedError):
            self.close()
        return written

    def _begin_close(self) -> None:
        """The client gets its last answers, and a moment to read them."""
        self._closing_at = monotonic() + _LINGER

    def _say_all_is_written(self) -> None:
        """While it is being closed: no more will come."""
        with suppress(OSError):  # the client was first
            self.socket.shutdown(socket.SHUT_WR)

    def _end_at(self) -> float | None:
        """The time when the connection ends if nothing happens; None where it lives on."""
        if self._closing_at is not None:
            return self._closing_at
        return None if self._connected else self.opened + _CONNECT
