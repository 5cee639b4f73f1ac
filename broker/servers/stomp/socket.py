"""One STOMP client's socket: bytes in to frames, answers and messages out to bytes, never waiting for the client."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeAlias

from redelivery.broker.core import BrokerClosedError, Core
from redelivery.broker.engine.subscriptions import Dispatch, Ending
from redelivery.broker.servers.client import ClientSocket
from redelivery.broker.servers.stomp.bodies import LARGE, LargeFrame, PartsReader
from redelivery.broker.servers.stomp.refusals import HangUpError
from redelivery.broker.servers.stomp.session import StompServerSession
from redelivery.broker.servers.stomp.subscriptions import AUTO, ServedSubscription
from redelivery.model.errors import JMSError, ProtocolError
from redelivery.transports.stomp.codec.frames import Frame
from redelivery.transports.stomp.codec.reader import AnyFrame, Parts
from redelivery.transports.wire.clock import monotonic

_Output: TypeAlias = bytes | tuple[ServedSubscription, Dispatch]

_WRITE: Final = 64 << 10  # bytes; messages are encoded when about so much can be written
_ANSWERS: Final = 1000  # a client that does not read them is not read either
_SILENCE: Final = 3.0  # promised intervals without a byte (ActiveMQ closes so late, too)
_SHORTEST_SILENCE: Final = 0.5  # seconds
_BEAT_EARLY: Final = 0.7  # of the interval that the client wants


class StompSocket(ClientSocket):
    """Used by the listener's thread only, but for `dispatch` and `wake`."""

    def __init__(self, sock: socket.socket, core: Core, name: str, wake: Callable[[ClientSocket], None]) -> None:
        super().__init__(sock, core)
        self.session = StompServerSession(core, name, self)
        self._wake = wake
        self._reader = PartsReader()
        self._frames: deque[AnyFrame[Parts]] = deque()
        self._raw: AnyFrame[Parts] | None = None  # what is being executed, or delayed by a fault
        self._frame: Frame | None = None  # the same
        self._output: deque[_Output] = deque()
        self._answers = 0  # of them, the frames that answer the client
        self._unwritten = memoryview(b"")
        self._parts: deque[bytes | bytearray] = deque()  # to be written behind it
        self._slow: deque[tuple[ServedSubscription, Ending]] = deque()  # to be ended
        self._automatic: list[Dispatch] = []  # acknowledged as soon as they are written
        self._heard = self._wrote = monotonic()

    @property
    def reads(self) -> bool:
        """True: more is wanted from the client."""
        if self._closing_at is not None:
            return True  # unread input would reset the connection before our last answers are read
        return not self._frames and not self._delayed_until

    @property
    def writes(self) -> bool:
        """True: something waits to be written."""
        return not self._core.faults.silent and bool(self._unwritten or self._parts or self._output)

    def _take_in(self, data: bytes) -> None:
        self._heard = monotonic()
        try:
            self._frames.extend(self._reader.feed(data))
        except ProtocolError as error:
            self.session.refuse(HangUpError(str(error)), None)
            self._close_slowly()
            return
        self.work()

    def work(self) -> None:
        """Do the frames that have come, unless one is delayed."""
        self._do_steps()
        self._raw = self._frame = None  # its body may be large

    def write(self) -> None:
        """Write what the client takes at once."""
        while self._slow and not self.closed:
            self._end(*self._slow.popleft())
        if self._core.faults.silent or self.closed:
            return
        if self._write_round():
            self._wrote = monotonic()
        if self.closed:
            return
        if self._closing_at is not None and not self._unwritten and not self._parts and not self._output:
            self._say_all_is_written()
        elif self._frames and not self._delayed_until:
            self.work()

    def next_deadline(self) -> float | None:
        """The time when `tick` has something to do."""
        return min(self._deadlines(), default=None)

    def tick(self, now: float) -> None:
        """Send a heart-beat, go on after a delay, or end with a client that is silent or takes nothing."""
        if any(deadline <= now for deadline in self._ends()):
            self.close()
            return
        if self._delayed_until and now >= self._delayed_until:
            self.work()
        beat = self._beat_at()
        if beat is not None and now >= beat:
            self._wrote = now
            if not self.writes:
                self.answer(b"\n")

    def close(self) -> None:
        """End at once; what the client held is released. The listener closes the socket. Idempotent."""
        if self.closed:
            return
        self.closed = True
        with suppress(BrokerClosedError):  # then there is nothing to release to
            self.session.end()
        self._output.clear()
        self._parts.clear()
        self._frames.clear()

    # One frame and its fault (`redelivery.broker.faults.ClientStep`)

    def execute_step(self) -> None:
        """Do what it says."""
        assert self._frame is not None, "work has taken one"
        try:
            self.session.execute(self._frame)
        except HangUpError:
            self._close_slowly()
        except BrokerClosedError:
            self.close()
        if self.session.ended:
            self._close_slowly()
        self._reader.version = self.session.version

    def refuse_step(self, error: JMSError) -> None:
        """Answer ERROR."""
        assert self._frame is not None, "work has taken one"
        self.session.refuse(error, self._frame.raw(b"\nreceipt:"))

    def skip_step(self) -> None:
        """Neither do it nor answer."""

    def delay_step(self, seconds: float) -> None:
        """Do it later, and all behind it."""
        assert self._raw is not None, "work has taken one"
        self._frames.appendleft(self._raw)
        self._delayed_until = monotonic() + seconds

    def write_answers(self) -> bool:
        """Write what was answered before; whether the client is still there."""
        self._frames.clear()  # or `write` would go on with them
        self.write()
        return not self.closed

    def cut(self, *, executed: bool) -> None:  # noqa: ARG002 - the same either way
        """End the connection without a word."""
        self.close()

    # For the session (`redelivery.broker.servers.stomp.subscriptions.ClientOutput`)

    def answer(self, frame: bytes) -> None:
        """Add a frame that answers the client."""
        self._answers += 1
        self._output.append(frame)

    def dispatch(self, subscription: ServedSubscription, dispatch: Dispatch) -> None:
        """Add a message."""
        self._output.append((subscription, dispatch))

    def end_slow(self, subscription: ServedSubscription, ending: Ending) -> None:
        """End it, or the connection. From any thread."""
        self._slow.append((subscription, ending))
        self._wake(self)

    def wake(self) -> None:
        """Have it written. From any thread."""
        self._wake(self)

    def _end(self, subscription: ServedSubscription, ending: Ending) -> None:
        if ending.connection:
            self.close()
        else:
            self.session.end_subscription(subscription)

    @property
    def _connected(self) -> bool:
        return self.session.connected

    def _has_steps(self) -> bool:
        return bool(self._frames) and self._closing_at is None and self._answers < _ANSWERS

    def _take_step(self) -> str:
        self._raw = raw = self._frames.popleft()
        head, body = raw
        version = self.session.version
        frame = Frame(head, body, version) if isinstance(body, bytes) else LargeFrame(head, body, version)
        self._frame = frame
        return "CONNECT" if frame.command == "STOMP" else frame.command

    def _next_bytes(self) -> memoryview:
        if not self._unwritten and not self._parts:
            self._encode()
        while not self._unwritten and self._parts:
            self._unwritten = memoryview(self._parts.popleft())
        return self._unwritten

    def _mark_written(self, size: int) -> None:
        self._unwritten = self._unwritten[size:]
        if not self._unwritten and not self._parts:
            self._acknowledge_written()

    def _close_slowly(self) -> None:
        self._begin_close()
        self._frames.clear()

    def _encode(self) -> None:
        """Make the next bytes to write, if there are any."""
        parts: list[bytes | bytearray] = []
        answers = False  # whether it begins with some
        size = 0
        while self._output and size < _WRITE:
            item = self._output.popleft()
            if isinstance(item, bytes):
                self._answers -= 1
                answers = not parts or answers
                parts.append(item)
                size += len(item)
            elif answers:  # they leave first: their client waits for them, and not for the messages behind
                self._output.appendleft(item)
                break
            else:
                subscription, dispatch = item
                if subscription.subscription.closed:
                    continue  # it went back meanwhile
                frame = subscription.frame(dispatch, self.session.version)
                parts += frame
                size += sum(map(len, frame))
                if subscription.ack == AUTO:
                    self._automatic.append(dispatch)
        if size <= LARGE:
            parts = [b"".join(parts)]
        self._parts += parts

    def _acknowledge_written(self) -> None:
        automatic = [each for each in self._automatic if not each.subscription.closed]
        self._automatic.clear()
        if automatic:
            self._core.call(lambda engine, now: engine.acknowledge(automatic, now))

    def _beat_at(self) -> float | None:
        wanted = self.session.wanted_ms
        return self._wrote + wanted / 1000 * _BEAT_EARLY if wanted and self.session.connected else None

    def _ends(self) -> list[float]:
        """The times at which the connection ends if nothing happens."""
        end = self._end_at()
        if end is not None:
            return [end]
        if self.session.promised_ms and self.reads:
            return [self._heard + max(_SHORTEST_SILENCE, self.session.promised_ms / 1000 * _SILENCE)]
        return []

    def _deadlines(self) -> list[float]:
        deadlines = self._ends()
        beat = self._beat_at()
        if beat is not None and not self._core.faults.silent:
            deadlines.append(beat)
        if self._delayed_until:
            deadlines.append(self._delayed_until)
        return deadlines
