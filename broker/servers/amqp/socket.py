"""One AMQP client's socket: bytes in to proton, proton's bytes out, never waiting for the client."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from redelivery.broker.core import BrokerClosedError, Core
from redelivery.broker.servers.amqp.commands import Command
from redelivery.broker.servers.amqp.sasl import SaslServer
from redelivery.broker.servers.amqp.session import AmqpServerSession
from redelivery.broker.servers.client import ClientSocket
from redelivery.model.errors import JMSError, ProtocolError
from redelivery.transports.amqp.engine import AmqpEngine
from redelivery.transports.wire.clock import monotonic

_UNREAD: Final = 10_000  # commands of a client that takes no byte meanwhile: it is not read either
MAX_FRAME: Final = 256 << 10  # bytes


class AmqpSocket(ClientSocket):
    """Used by the listener's thread only; from other threads come dispatches to the session's links."""

    def __init__(self, sock: socket.socket, core: Core, name: str, wake: Callable[[ClientSocket], None]) -> None:
        super().__init__(sock, core)
        self._engine = AmqpEngine(server=True)
        self._engine.transport.max_frame_size = MAX_FRAME
        if core.config.amqp_idle_timeout:
            self._engine.transport.idle_timeout = core.config.amqp_idle_timeout
        self._engine.bind()
        self._sasl = SaslServer(core.config, self._write_login)
        self._login = b""  # what the login has to write
        self._session = AmqpServerSession(core, name, self._engine, lambda: wake(self))
        self._command: Command | None = None  # what is being executed, or delayed by a fault
        self._unwritten = False  # something waits to be written
        self._unread = 0  # commands since the client took a byte
        self._tick_at: float | None = None

    @property
    def reads(self) -> bool:
        """True: more is wanted from the client."""
        if self._closing_at is not None:
            return True  # unread input would reset the connection before our last answers are read
        if self._delayed_until or self._session.commands:
            return False
        return self._unread < _UNREAD or not self._unwritten

    @property
    def writes(self) -> bool:
        """True: something waits to be written."""
        return self._unwritten and not self._core.faults.silent

    def _take_in(self, data: bytes) -> None:
        broken = False
        try:
            if not self._sasl.done:
                data = self._sasl.feed(data)
            # What proton has noted of our own sending, flows among it, must not seem to come before what comes now.
            self._engine.dispatch({})
            if data:
                self._engine.receive(data)
        except ProtocolError:  # proton or the login says so to the peer
            broken = True
        self._engine.dispatch(self._session.handlers)
        self.work()
        if broken and not self.closed:
            self._close_slowly()

    def work(self) -> None:
        """Do what the client asks for, unless it is delayed."""
        try:
            self._do_steps()
            self._session.settle_gathered()
        except BrokerClosedError:
            self.close()
        self._command = None  # its message may be large
        if self._tick_at is None and self._session.connected:
            self._tick_at = monotonic()

    def write(self) -> None:
        """Write what the client takes at once."""
        if self.closed:
            return
        self._unwritten = True
        if self._core.faults.silent:
            return
        written = self._write_round()
        if self._session.is_cut:
            self.close()
        if self.closed:
            return
        if written:
            self._unread = 0
        if not self._unwritten and self._engine.closed:
            self._close_slowly()
        if not self._unwritten and self._closing_at is not None:
            self._say_all_is_written()

    def next_deadline(self) -> float | None:
        """The time when `tick` has something to do."""
        deadlines = [self._end_at(), self._delayed_until or None, self._tick_at]
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
            self._engine.dispatch(self._session.handlers)
            self.work()  # a command left undone would keep us from reading
            if self._engine.failure is not None:
                self._close_slowly()

    def close(self) -> None:
        """End at once; what the client held is released. The listener closes the socket. Idempotent."""
        if self.closed:
            return
        self.closed = True
        with suppress(BrokerClosedError):  # then there is nothing to release to
            self._session.end()
        self._session.dispose()

    # One command and its fault (`redelivery.broker.faults.ClientStep`)

    def execute_step(self) -> None:
        """Do it."""
        assert self._command is not None, "work has taken one"
        self._unread += 1
        self._session.execute(self._command)

    def refuse_step(self, error: JMSError) -> None:
        """Notify the client that it was not done."""
        assert self._command is not None, "work has taken one"
        self._unread += 1
        self._session.settle_gathered()
        self._session.refuse(self._command, error)

    def skip_step(self) -> None:
        """Neither do it nor answer."""
        self._unread += 1

    def delay_step(self, seconds: float) -> None:
        """Do it later, and all behind it."""
        assert self._command is not None, "work has taken one"
        self._session.commands.appendleft(self._command)
        self._delayed_until = monotonic() + seconds

    def write_answers(self) -> bool:
        """Write what was answered before; whether the client is still there."""
        self._session.settle_gathered()
        self.write()
        return not self.closed

    def cut(self, *, executed: bool) -> None:
        """End the connection without a word."""
        if executed:
            self._session.settle_gathered()
        self.close()

    def _write_login(self, data: bytes) -> None:
        self._login += data

    @property
    def _connected(self) -> bool:
        return self._session.connected

    def _has_steps(self) -> bool:
        return bool(self._session.commands)

    def _take_step(self) -> str | None:
        self._command = command = self._session.commands.popleft()
        return command.fault_name

    def _next_bytes(self) -> bytes | memoryview:
        output = self._output()
        if not output:
            self._unwritten = False
        return output

    def _output(self) -> bytes | memoryview:
        if self._login:
            return self._login
        if not self._sasl.done:
            return b""
        output = self._engine.output()[0]
        if not output and not self._session.ended:  # answers leave first: their client waits for them
            self._session.flush()
            output = self._engine.output()[0]
        return output

    def _mark_written(self, size: int) -> None:
        if self._login:
            self._login = self._login[size:]
        else:
            self._engine.written(size)

    def _close_slowly(self) -> None:
        """Let the client read the last answers; what it held is released now."""
        if self._closing_at is None:
            self._begin_close()
            self._delayed_until = 0.0
            with suppress(BrokerClosedError):  # then there is nothing to release to
                self._session.end()
