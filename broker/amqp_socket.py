"""One AMQP client's socket: bytes in to proton, proton's bytes out, never waiting for the client."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from redelivery.broker.amqp_conversation import AmqpConversation
from redelivery.broker.amqp_greeting import Greeting
from redelivery.broker.core import BrokerClosedError, Core
from redelivery.broker.door import Client
from redelivery.broker.faults import Action
from redelivery.model.errors import JMSError, ProtocolError
from redelivery.transports.amqp.engine import Engine
from redelivery.transports.wire.clock import monotonic

_READ: Final = 256 << 10  # bytes
_ROUND: Final = 1 << 20  # bytes for one client before it is another's turn
_UNHEARD: Final = 10_000  # steps of a client that takes no byte meanwhile: it is not read either
_CONNECT: Final = 30.0  # seconds for open
_LINGER: Final = 2.0  # seconds for a client to take the last words
MAX_FRAME: Final = 256 << 10  # bytes


class AmqpSocket:
    """Used by the door's thread only, but for what the conversation's links are given."""

    def __init__(self, sock: socket.socket, core: Core, session: str, wake: Callable[[Client], None]) -> None:
        self.socket = sock
        self.closed = False
        self._core = core
        self._engine = Engine(server=True)
        self._engine.transport.max_frame_size = MAX_FRAME
        if core.config.amqp_idle_timeout:
            self._engine.transport.idle_timeout = core.config.amqp_idle_timeout
        self._engine.bind()
        self._greeting = Greeting(core.config, self._say)
        self._said = b""  # of the greeting
        self._conversation = AmqpConversation(core, session, self._engine, lambda: wake(self))
        self._left = False  # something waits to be written
        self._unheard = 0  # steps since the client took a byte
        self._delayed_until = 0.0
        self._hanging_up: float | None = None  # when, if the last words are not taken
        self._tick_at: float | None = None
        self._opened = monotonic()

    @property
    def reads(self) -> bool:
        """Whether more is wanted from the client."""
        if self._hanging_up is not None:
            return True  # unread input would reset the connection before our last words are read
        if self._delayed_until or self._conversation.commands:
            return False
        return self._unheard < _UNHEARD or not self._left

    @property
    def writes(self) -> bool:
        """Whether something waits to be written."""
        return self._left and not self._core.faults.silent

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
        broken = False
        try:
            if not self._greeting.done:
                data = self._greeting.feed(data)
            # What proton has noted of our own sending, flows among it, must not seem to come before what comes now.
            self._engine.dispatch({})
            if data:
                self._engine.receive(data)
        except ProtocolError:  # the peer is told by proton, or was told
            broken = True
        self._engine.dispatch(self._conversation.handlers)
        self.work()
        if broken and not self.closed:
            self._hang_up()

    def work(self) -> None:
        """Do what the client asks for, unless it is delayed."""
        commands = self._conversation.commands
        try:
            while commands and not self.closed:
                if not self._delayed_until:
                    self._execute(fresh=True)
                elif monotonic() < self._delayed_until:
                    break
                else:
                    self._delayed_until = 0.0
                    self._execute(fresh=False)
            self._conversation.flush()
        except BrokerClosedError:
            self.close()
        if self._tick_at is None and self._conversation.connected:
            self._tick_at = monotonic()

    def write(self) -> None:
        """Write what the client takes at once."""
        if self.closed:
            return
        self._left = True
        if self._core.faults.silent:
            return
        written = 0
        try:
            while written < _ROUND:
                view = self._next()
                if not view:
                    self._left = False
                    break
                sent = self.socket.send(view)
                self._taken(sent)
                written += sent
        except BlockingIOError:
            pass
        except (OSError, BrokerClosedError):
            self.close()
            return
        if written:
            self._unheard = 0
        if not self._left and self._engine.over:
            self._hang_up()
        if not self._left and self._hanging_up is not None:
            with suppress(OSError):  # the client was first
                self.socket.shutdown(socket.SHUT_WR)

    def next_deadline(self) -> float | None:
        """When `tick` has something to do."""
        ends = self._end_at()
        deadlines = [ends, self._delayed_until or None, self._tick_at]
        return min((each for each in deadlines if each is not None), default=None)

    def tick(self, now: float) -> None:
        """Send an empty frame, go on after a delay, or end with a client that is silent or takes nothing."""
        ends = self._end_at()
        if ends is not None and ends <= now:
            self.close()
        elif self._delayed_until and now >= self._delayed_until:
            self.work()
        if self._tick_at is not None and now >= self._tick_at and not self.closed:
            self._engine.dispatch({})  # as in `read`
            self._tick_at = self._engine.tick(now)
            self._engine.dispatch(self._conversation.handlers)
            self.work()  # a step left undone would keep us from reading
            if self._engine.failure is not None:
                self._hang_up()

    def close(self) -> None:
        """End at once; what the client held goes back. The door closes the socket. Harmless twice."""
        if self.closed:
            return
        self.closed = True
        with suppress(BrokerClosedError):  # then nothing is left to give back to
            self._conversation.end()
        self._conversation.dispose()

    def _execute(self, *, fresh: bool) -> None:
        """Do one step, with the fault that is planned for it; a delayed one is not fresh when it comes again."""
        conversation = self._conversation
        command = conversation.commands[0]
        fault = self._core.faults.strike(command.name) if fresh and command.name else None
        action = None if fault is None else fault.action
        if fault is not None and action is Action.DELAY:
            self._delayed_until = monotonic() + fault.seconds
            return
        conversation.commands.popleft()
        self._unheard += 1
        if action is Action.SWALLOW:
            return
        if fault is not None and action is Action.ERROR:
            conversation.flush()
            command.refuse(JMSError(fault.text))
            return
        if action in (Action.DROP, Action.DROP_AFTER):
            conversation.flush()
            self.write()  # what was said before
        if action is Action.DROP:
            self.close()
        if self.closed:
            return
        conversation.execute(command)
        if action is Action.DROP_AFTER:
            conversation.flush()
            self.close()

    def _say(self, data: bytes) -> None:
        self._said += data

    def _next(self) -> bytes | memoryview:
        """What is to be written now."""
        if self._said:
            return self._said
        if not self._greeting.done:
            return b""
        if not self._conversation.over:
            self._conversation.pump()
        return self._engine.output()[0]

    def _taken(self, size: int) -> None:
        if self._said:
            self._said = self._said[size:]
        else:
            self._engine.written(size)

    def _hang_up(self) -> None:
        """Let the client take the last words; what it held goes back now."""
        if self._hanging_up is None:
            self._hanging_up = monotonic() + _LINGER
            self._delayed_until = 0.0
            with suppress(BrokerClosedError):  # then nothing is left to give back to
                self._conversation.end()

    def _end_at(self) -> float | None:
        """When the connection ends if nothing happens."""
        if self._hanging_up is not None:
            return self._hanging_up
        return None if self._conversation.connected else self._opened + _CONNECT
