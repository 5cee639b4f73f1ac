"""One STOMP client's socket: bytes in to frames, answers and messages out to bytes, never waiting for the client."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeAlias

from redelivery.broker.core import BrokerClosedError, Core
from redelivery.broker.door import Client
from redelivery.broker.engine.subscriptions import Dispatch
from redelivery.broker.faults import Action
from redelivery.broker.stomp_conversation import Conversation, HangUpError
from redelivery.broker.stomp_subscriptions import AUTO, StompSubscription
from redelivery.model.errors import JMSError, ProtocolError
from redelivery.transports.stomp.frames import Frame
from redelivery.transports.stomp.reader import FrameReader, RawFrame
from redelivery.transports.wire.clock import monotonic

_Said: TypeAlias = bytes | tuple[StompSubscription, Dispatch]

_READ: Final = 256 << 10  # bytes
_WRITE: Final = 64 << 10  # bytes; messages are encoded when about so much can be written
_ROUND: Final = 1 << 20  # bytes for one client before it is another's turn
_ANSWERS: Final = 1000  # a client that does not read them is not read either
_CONNECT: Final = 30.0  # seconds for CONNECT (ActiveMQ's connectAttemptTimeout)
_LINGER: Final = 2.0  # seconds for a client to take the last words
_SILENCE: Final = 3.0  # promised intervals without a byte (ActiveMQ closes so late, too)
_SHORTEST_SILENCE: Final = 0.5  # seconds
_BEAT_EARLY: Final = 0.7  # of the interval that the client wants


class StompSocket:
    """Used by the server's thread only, but for what the conversation queues."""

    def __init__(self, sock: socket.socket, core: Core, session: str, wake: Callable[[Client], None]) -> None:
        self.socket = sock
        self.closed = False
        self.conversation = Conversation(core, session, say=self._say, queue=self._queue, wake=lambda: wake(self))
        self._core = core
        self._reader = FrameReader()
        self._frames: deque[RawFrame] = deque()
        self._said: deque[_Said] = deque()
        self._answers = 0  # of them, those that are no messages
        self._unwritten = memoryview(b"")
        self._automatic: list[Dispatch] = []  # acknowledged as soon as they are written
        self._hanging_up: float | None = None  # when, if the last words are not taken
        self._delayed_until = 0.0
        self._opened = self._heard = self._wrote = monotonic()

    @property
    def reads(self) -> bool:
        """Whether more is wanted from the client."""
        if self._hanging_up is not None:
            return True  # unread input would reset the connection before our last words are read
        return not self._frames and not self._delayed_until

    @property
    def writes(self) -> bool:
        """Whether something waits to be written."""
        return not self._core.faults.silent and bool(self._unwritten or self._said)

    def read(self) -> None:
        """Take what is there, and do it."""
        try:
            data = self.socket.recv(_READ)
        except BlockingIOError:
            return
        except OSError:
            self.close()
            return
        if not data:
            self.close()
            return
        if self._hanging_up is not None:
            return
        self._heard = monotonic()
        try:
            self._frames.extend(self._reader.feed(data))
        except ProtocolError as error:
            self.conversation.refuse(HangUpError(str(error)), None)
            self._hang_up()
            return
        self.work()

    def work(self) -> None:
        """Do the frames that have come, unless one is delayed."""
        while self._frames and self._hanging_up is None and not self.closed and self._answers < _ANSWERS:
            if self._delayed_until:
                if monotonic() < self._delayed_until:
                    return
                self._delayed_until = 0.0
                self._execute(self._frame(), fresh=False)
            else:
                self._execute(self._frame(), fresh=True)

    def write(self) -> None:
        """Write what the client takes at once."""
        if self._core.faults.silent or self.closed:
            return
        written = 0
        try:
            while written < _ROUND and (self._unwritten or self._encode()):
                count = self.socket.send(self._unwritten)
                written += count
                self._unwritten = self._unwritten[count:]
                if not self._unwritten:
                    self._acknowledge_written()
        except BlockingIOError:
            pass
        except (OSError, BrokerClosedError):
            self.close()
            return
        if written:
            self._wrote = monotonic()
        if self._hanging_up is not None and not self._unwritten and not self._said:
            with suppress(OSError):  # the client was first
                self.socket.shutdown(socket.SHUT_WR)
        elif self._frames and not self._delayed_until:
            self.work()

    def next_deadline(self) -> float | None:
        """When `tick` has something to do."""
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
                self._say(b"\n")

    def close(self) -> None:
        """End at once; what the client held goes back. The server closes the socket. Harmless twice."""
        if self.closed:
            return
        self.closed = True
        with suppress(BrokerClosedError):  # then nothing is left to give back to
            self.conversation.end()
        self._said.clear()
        self._frames.clear()

    def _frame(self) -> Frame:
        return Frame(*self._frames[0], self.conversation.version)

    def _execute(self, frame: Frame, *, fresh: bool) -> None:
        """Do one frame, with the fault that is planned for it; a delayed one is not fresh when it comes again."""
        command = "CONNECT" if frame.command == "STOMP" else frame.command
        fault = self._core.faults.strike(command) if fresh else None
        action = None if fault is None else fault.action
        if fault is not None and action is Action.DELAY:
            self._delayed_until = monotonic() + fault.seconds
            return
        self._frames.popleft()
        if action is Action.SWALLOW:
            return
        if fault is not None and action is Action.ERROR:
            self.conversation.refuse(JMSError(fault.text), frame.raw(b"\nreceipt:"))
            return
        if action in (Action.DROP, Action.DROP_AFTER):
            self._frames.clear()  # or `write` would go on with them
            self.write()  # what was said before
        if action is Action.DROP:
            self.close()
            return
        try:
            self.conversation.execute(frame)
        except HangUpError:
            self._hang_up()
        except BrokerClosedError:
            self.close()
        if action is Action.DROP_AFTER:
            self.close()
        elif self.conversation.over:
            self._hang_up()
        self._reader.version = self.conversation.version

    def _hang_up(self) -> None:
        self._hanging_up = monotonic() + _LINGER
        self._frames.clear()

    def _say(self, frame: bytes) -> None:
        self._answers += 1
        self._said.append(frame)

    def _queue(self, subscription: StompSubscription, dispatch: Dispatch) -> None:
        self._said.append((subscription, dispatch))

    def _encode(self) -> bool:
        """Make the next bytes to write; False where there are none."""
        parts: list[bytes] = []
        size = 0
        while self._said and size < _WRITE:
            said = self._said.popleft()
            if isinstance(said, bytes):
                self._answers -= 1
                part = said
            else:
                subscription, dispatch = said
                if subscription.subscription.closed:
                    continue  # it went back meanwhile
                part = subscription.frame(dispatch, self.conversation.version)
                if subscription.ack == AUTO:
                    self._automatic.append(dispatch)
            parts.append(part)
            size += len(part)
        self._unwritten = memoryview(parts[0] if len(parts) == 1 else b"".join(parts))
        return bool(parts)

    def _acknowledge_written(self) -> None:
        automatic = [each for each in self._automatic if not each.subscription.closed]
        self._automatic.clear()
        if automatic:
            self._core.call(lambda engine, now: engine.acknowledge(automatic, now))

    def _beat_at(self) -> float | None:
        wanted = self.conversation.wanted_ms
        return self._wrote + wanted / 1000 * _BEAT_EARLY if wanted and self.conversation.connected else None

    def _ends(self) -> list[float]:
        """When the connection ends if nothing happens."""
        ends = []
        if self._hanging_up is not None:
            ends.append(self._hanging_up)
        elif not self.conversation.connected:
            ends.append(self._opened + _CONNECT)
        elif self.conversation.promised_ms and self.reads:
            ends.append(self._heard + max(_SHORTEST_SILENCE, self.conversation.promised_ms / 1000 * _SILENCE))
        return ends

    def _deadlines(self) -> list[float]:
        deadlines = self._ends()
        beat = self._beat_at()
        if beat is not None and not self._core.faults.silent:
            deadlines.append(beat)
        if self._delayed_until:
            deadlines.append(self._delayed_until)
        return deadlines
