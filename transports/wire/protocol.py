"""A connection and its protocol, each as the other sees it: the one has socket and timers, the other the bytes."""

from __future__ import annotations

from typing import Protocol

from redelivery.model.errors import JMSError
from redelivery.transports.flows import Pending


class WireProtocol(Protocol):
    """The protocol of one connection: reads its bytes, makes those to be written. Starts no thread, sets no timer."""

    def receive(self, data: bytes) -> None:
        """Take what the peer has sent, on the thread that reads. Raises JMSError where that ends the connection."""

    def flush(self) -> bool:
        """Write what waits, as far as the system takes it at once; whether something is left.

        Raises:
            JMSError: the connection is lost.
        """

    def flush_now(self) -> None:
        """Write what waits, before a thread waits for an answer. Raises ConnectionLostError."""

    def next_deadline(self, now: float) -> float | None:
        """The time to call `tick` (monotonic seconds); None for never."""

    def tick(self, now: float) -> float | None:
        """Let time pass; when to call it again. Raises JMSError where the peer was silent for too long."""

    def quiet(self, now: float) -> bool:
        """Check that nothing was heard that `tick` would count: then what is there is read before."""

    @property
    def blocked(self) -> bool:
        """True: the system has not taken all that was written."""

    @property
    def awaits(self) -> bool:
        """True: somebody waits for what the peer is to send or to take."""

    def fail(self, error: JMSError) -> JMSError:
        """The connection is lost: every answer that is missing fails. Returns the error in the peer's last words."""

    def orphan(self, error: JMSError) -> None:
        """This process is a child after fork(): forget the parent's locks and answers."""

    def dispose(self) -> None:
        """Nobody reads any more, and the stream is shut down: close it, as soon as nobody writes either."""


class WireOwner(Protocol):
    """The connection, as a protocol and its way out need it. Only `drain` waits."""

    def lose(self, error: JMSError) -> None:
        """The connection is lost; only the first call counts. To be called without a lock held."""

    def ends(self) -> None:
        """The peer has said that it closes the connection: lost when it does, half a second later at the latest.

        `WireProtocol.fail` says why. Until then nothing is to be written. Artemis may lock up for ever if the client is
        the first to close (docs/brokers/artemis.md).
        """

    def flush_soon(self) -> None:
        """Something waits for company: within milliseconds it is to leave anyway."""

    def tick_at(self, due: float) -> None:
        """`WireProtocol.tick` is to be called then (monotonic seconds), if it is not earlier."""

    def read_on_behalf(self) -> None:
        """An answer is awaited by nobody who reads: soon another thread is to read."""

    def drain(self) -> bool:
        """Wait in this thread until the system has taken all that is written. To be called without a lock held.

        False under an event loop, where it leaves when the system takes it: see `when_drained`.

        Raises:
            ConnectionLostError: the peer took no byte for the request's time-out, or is gone.
        """

    def when_drained(self, pending: Pending) -> None:
        """Complete it as soon as the system has taken all that is written; fail it where the connection is lost."""
