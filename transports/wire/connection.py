"""An established connection: it owns the socket, the timers and the loss, whatever the protocol.

1. Threads that wait read for each other (`threads.leader`); where nobody waits, the housekeeping thread reads. An event
   loop reads whatever comes, and nothing waits here.
2. What is to leave together leaves after 3 ms at the latest.
3. The connection is lost once, for whatever reason, and everybody is notified without a lock held.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from redelivery.model.errors import ConnectionLostError, JMSError, forget_frames
from redelivery.transports.runtime import OF_THE_PARENT, Runtime
from redelivery.transports.seam import ConnectionEvents, Pending
from redelivery.transports.wire.clock import monotonic
from redelivery.transports.wire.protocol import WireOwner, WireProtocol
from redelivery.transports.wire.sockets import Stream
from redelivery.transports.wire.threads.leader import Leader
from redelivery.transports.wire.threads.runtime import THREADS
from redelivery.transports.wire.threads.waiter import ThreadWaiter

P = TypeVar("P", bound=WireProtocol)
_TOGETHER_FOR: Final = 0.003  # seconds that acknowledgements and asynchronous sends wait for company
_READ_ON_BEHALF_AFTER: Final = 0.005  # seconds that an answer may wait for somebody who reads
_HELD: Final = 1.0  # seconds that a tick may be late on a busy machine
_MISSED: Final = 6  # times the wait between two ticks: two heart-beats were not written
_JUST_NOW: Final = 2.0  # seconds
_PEER_CLOSES_WITHIN: Final = 0.5  # seconds, of one that has said that it does


class WireConnection(Generic[P]):
    """From the end of the login to the loss. Thread-safe.

    Args:
        stream: the socket.
        make: the protocol, given its owner.
        events: are notified of the loss.
        timeout: seconds that the peer may take no byte of what is to leave.
        runtime: under what it runs.
    """

    def __init__(
        self,
        stream: Stream,
        make: Callable[[WireOwner], P],
        events: ConnectionEvents,
        timeout: float,
        runtime: Runtime = THREADS,
    ) -> None:
        self._stream = stream
        self._runtime = runtime
        self._undrained: list[Pending] = []  # under an event loop: who wait until what is written has left
        self._left = 0.0  # when the peer last took something of it
        self._events = events
        self._mutex = threading.Lock()
        self._draining = threading.Lock()  # held by the thread that waits for the peer to take something
        self._drainer: int | None = None  # which one that is
        self._reads_on_behalf = False  # `_read_on_behalf` will be called
        self.timeout = timeout
        self._due: float | None = None
        self._ticked = 0.0  # when a heart-beat was last looked after, and when it is to be again
        self._silence = 0.0  # seconds that this process was late with that, not long ago
        self.closing = False  # by our own will: then nobody is notified
        self.lost: JMSError | None = None
        self.protocol = protocol = make(self)
        self._flush_now, self._acknowledge = protocol.flush_now, stream.acknowledge_owed
        self.leader = Leader(stream, protocol, self)

    @property
    def address(self) -> str | None:
        """The broker's, of those that the host may have."""
        return self._stream.address

    def start(self) -> None:
        """Begin. Raises JMSError where the connection cannot be kept."""
        self._ticked = monotonic()
        due = self._due = self.protocol.next_deadline(self._ticked)
        if self._runtime.blocks:
            self._runtime.enter(self)
            self._runtime.when_ended(self._stream.fileno(), self._ended)
        else:
            self._runtime.watch(self._stream.fileno(), self._read)
        if due is not None:
            self._runtime.at(due, self._tick)

    def wait(self, waiter: ThreadWaiter, timeout: float | None) -> None:
        """See `Transport.wait`. What waits to leave together leaves first."""
        self._flush_now()
        self.leader.wait(waiter, timeout)

    def flush(self) -> None:
        """See `Transport.flush`."""
        if self.lost is not None:
            raise ConnectionLostError(str(self.lost)) from self.lost
        self._flush_now()

    def lose(self, error: JMSError) -> None:
        """See `WireOwner.lose`."""
        with self._mutex:
            if self.lost is not None:
                return
            self.lost = error
        self.lost = error = self._explained(self.protocol.fail(error))
        forget_frames(error)
        if not self._runtime.blocks:
            self._runtime.unwatch(self._stream.fileno())
        self.leader.stop(error)
        tasks = self._flush, self._tick, self._read_on_behalf, self._stalled, self._look_again, self._hang_up
        self._runtime.leave(self, *tasks, watches=(self._poll_once, self._ended))
        self._drained()
        if not self.closing:
            self._events.on_lost(error)

    def ends(self) -> None:
        """See `WireOwner.ends`."""
        self._runtime.at(monotonic() + _PEER_CLOSES_WITHIN, self._hang_up)

    def flush_soon(self) -> None:
        """See `WireOwner.flush_soon`."""
        self._runtime.at(monotonic() + _TOGETHER_FOR, self._flush)

    def tick_at(self, due: float) -> None:
        """See `WireOwner.tick_at`."""
        if self.lost is None:
            self._runtime.at(due, self._tick)

    def read_on_behalf(self) -> None:
        """See `WireOwner.read_on_behalf`: the housekeeping thread does; an event loop reads anyway."""
        if not self._reads_on_behalf and self._runtime.blocks:
            self._reads_on_behalf = True
            self._runtime.at(monotonic() + _READ_ON_BEHALF_AFTER, self._read_on_behalf)

    def drain(self) -> bool:
        """See `WireOwner.drain`."""
        if not self._runtime.blocks:
            self._left = monotonic()
            self._runtime.when_writable(self._stream.fileno(), self._push)
            self._runtime.at(self._left + self.timeout, self._stalled)
            return False
        error = self._drain()
        if error is not None:
            self.lose(error)
            raise ConnectionLostError(str(error)) from error
        return True

    def when_drained(self, pending: Pending) -> None:
        """See `WireOwner.when_drained`."""
        self._undrained.append(pending)

    # called by the event loop

    def _read(self) -> bool:
        """Read what is there; whether to go on."""
        self.leader.read_now(acknowledges=False)
        assert not self._runtime.blocks, "a thread that waits reads itself"
        self._runtime.soon(self._acknowledge)  # when the tasks that it wakes have written, which may do for that
        return self.lost is None

    def _push(self) -> bool:
        """The system takes more; whether something is left then."""
        try:
            left = self.protocol.flush()
        except JMSError as error:
            self.lose(error)
            return False
        self._left = monotonic()
        if not left:
            self._drained()
        return left and self.lost is None

    def _stalled(self, now: float) -> float | None:
        """Lose the connection whose peer has taken nothing for too long; the time to check again."""
        if not self.protocol.blocked or self.lost is not None:
            return None
        if now < self._left + self.timeout:
            return self._left + self.timeout
        self.lose(self._took_nothing())
        return None

    def _drained(self) -> None:
        undrained, self._undrained = self._undrained, []
        for pending in undrained:
            if self.lost is None:
                pending.complete()
            else:
                pending.fail(ConnectionLostError(str(self.lost)))

    def _took_nothing(self) -> ConnectionLostError:
        return ConnectionLostError(f"{self._stream.name} took no byte for {self.timeout:g} s")

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
        error = ConnectionLostError(OF_THE_PARENT)
        self._mutex, self._draining, self._drainer = threading.Lock(), threading.Lock(), None
        self.lost = error
        self.closing = True
        self.protocol.orphan(error)
        self.leader.orphan(error)

    def _drain(self) -> JMSError | None:
        """Write all; the reason why not all of it has left, None where it has."""
        if self._drainer == threading.get_ident():  # in a signal handler: the wait that it has interrupted goes on
            return self.lost
        with self._draining:
            self._drainer = threading.get_ident()
            try:
                while self.protocol.flush():
                    self._watch()  # somebody must read, or two full pipes wait for each other
                    if not self._stream.wait_writable(self.timeout):
                        return self._took_nothing()
            except JMSError as error:
                return self.lost or error
            except BaseException:  # an interrupt: what is left leaves without this thread
                self.flush_soon()
                raise
            finally:
                self._drainer = None
            return self.lost

    def _watch(self) -> None:
        self._runtime.watch(self._stream.fileno(), self._poll_once)

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

    def _ended(self) -> bool:
        """The peer has closed: read what is left, up to that; whether to be called again."""
        if self.leader.read_now():
            return self.lost is None
        if self.lost is None:  # somebody reads, who may go away before that
            self._runtime.at(monotonic() + _READ_ON_BEHALF_AFTER, self._look_again)
        return False

    def _hang_up(self, _: float) -> float | None:
        self.lose(ConnectionLostError(f"{self._stream.name} has not closed the connection"))
        return None

    def _look_again(self, _: float) -> float | None:
        assert self._runtime.blocks, "a loop notices an end by reading"
        self._runtime.when_ended(self._stream.fileno(), self._ended)
        return None

    def _explained(self, error: JMSError) -> JMSError:
        """Explain that this process was silent for too long, where it was: the peer may have hung up for that."""
        self._note_silence(monotonic())
        if not self._silence or self.closing or monotonic() - self._ticked > max(_JUST_NOW, self._silence):
            return error
        explained = ConnectionLostError(
            f"{error}; this process wrote no heart-beat for {self._silence:.1f} s: something held the interpreter or "
            "the event loop, or the process was stopped"
        )
        explained.__cause__ = error
        return explained

    def _note_silence(self, now: float) -> None:
        if self._due is None or now - self._due < _HELD:
            return
        if now - self._ticked >= _MISSED * (self._due - self._ticked):
            self._silence, self._ticked = now - self._ticked, now

    def _tick(self, now: float) -> float | None:
        self._silence = self._silence if monotonic() - self._ticked < _JUST_NOW else 0.0
        self._note_silence(now)
        if self.protocol.quiet(now):
            self.leader.read_now()
        try:
            due = self.protocol.tick(now)
        except JMSError as error:
            self.lose(error)
            return None
        self._ticked, self._due = now, due
        return due if self.lost is None else None
