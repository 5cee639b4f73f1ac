"""The STOMP transport: what connections and sessions see of it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Final, cast

from redelivery.model.errors import ConfigError, ConnectionLostError, IllegalStateError, JMSError, SecurityError
from redelivery.model.modes import AckMode
from redelivery.transports.base import (
    Channel,
    ConnectionEvents,
    Peer,
    Pending,
    SessionEvents,
    Transport,
    TransportOptions,
    Waiter,
)
from redelivery.transports.dialects.detect import check_name, detect_stomp, stomp_host
from redelivery.transports.dialects.dialect import StompDialect
from redelivery.transports.stomp.channel import StompChannel
from redelivery.transports.stomp.connection import StompConnection
from redelivery.transports.stomp.control import ControlFrames
from redelivery.transports.stomp.conversation import Conversation
from redelivery.transports.stomp.engine import Engine
from redelivery.transports.stomp.login import log_in
from redelivery.transports.stomp.reader import MAX_BODY, RawFrame
from redelivery.transports.stomp.sends import SendEncoder
from redelivery.transports.wire import threads
from redelivery.transports.wire.clock import monotonic
from redelivery.transports.wire.socket import Stream

_PORTS: Final[Mapping[str, int]] = {"stomp": 61613, "stomp+ssl": 61612}  # ActiveMQ's
_MAX_BODY: Final = "wireFormat.maxDataLength"
_HOST: Final = "wireFormat.host"


class StompTransport(Transport):
    """See `Transport`.

    It knows two options of the URL's query: ``wireFormat.maxDataLength``, the largest body that is read, in bytes
    (100 MiB), and ``wireFormat.host``, the virtual host to name (the host itself; on a broker whose virtual hosts have
    other names, its default one). Another one raises ConfigError.
    """

    def __init__(self, options: TransportOptions, events: ConnectionEvents) -> None:
        super().__init__(options, events)
        if options.scheme not in _PORTS:
            raise ConfigError(
                f"{options.scheme}:// is not STOMP; that is {' or '.join(f'{each}://' for each in _PORTS)}"
            )
        check_name(options.dialect)
        self._given_host, self._max_body = _params(options)
        self._virtual_host = self._given_host or stomp_host(options.dialect) or options.host
        self._connection: StompConnection | None = None
        self._engine = Engine(self._virtual_host, options.heartbeat, self._max_body)
        self._dialect: StompDialect | None = None

    def open(self) -> None:
        """See `Transport.open`."""
        options = self.options
        stream, frames = self._log_in()
        engine = self._engine
        try:
            dialect, stomp = detect_stomp(options.dialect, engine.server)
        except JMSError:
            stream.close()
            raise
        self.peer = Peer(
            provider_name=dialect.provider,
            provider_version=engine.server.removeprefix(dialect.server_prefix).partition(" ")[0] or "unknown",
            protocol=f"STOMP {engine.version}",
            dialect=dialect.name,
            capabilities=stomp.capabilities,
        )
        self._dialect = stomp
        engine.never_silent_for(stomp.silence_limit)
        connection = StompConnection(stream, engine, stomp, options, self.events)
        try:
            connection.start(frames)
        except JMSError:
            stream.close()
            raise
        self._connection = connection

    def _log_in(self) -> tuple[Stream, list[RawFrame]]:
        """Connect; once more where the broker has no virtual host of the URL's host's name, and the URL names none."""
        options, port = self.options, self.options.port or _PORTS[self.options.scheme]
        try:
            return log_in(options, port, self._engine)
        except SecurityError as error:
            other = None if self._given_host else stomp_host(options.dialect, str(error))
            if other is None or other == self._virtual_host:
                raise
        self._virtual_host = other
        self._engine = Engine(other, options.heartbeat, self._max_body)
        return log_in(options, port, self._engine)

    def channel(self, mode: AckMode, events: SessionEvents) -> Channel:
        """See `Transport.channel`."""
        connection, dialect = self._opened(), self._dialect
        assert dialect is not None, "set with the connection"
        version = self._engine.version
        talk = Conversation(
            dialect=dialect,
            version=version,
            router=connection.router,
            outbox=connection.outbox,
            events=events,
            control=ControlFrames(version, self._virtual_host),
            encoder=SendEncoder(version, dialect),
        )
        return StompChannel(talk, mode, self.events.on_error, connection.stand_in)

    def new_waiter(self) -> Waiter:
        """See `Transport.new_waiter`."""
        return threads.Waiter()

    def wait(self, waiter: Waiter, timeout: float | None) -> None:
        """See `Transport.wait`. What waits to leave together leaves first."""
        connection = self._opened()
        connection.outbox.flush()
        connection.leader.wait(cast(threads.Waiter, waiter), timeout)

    def close(self) -> None:
        """See `Transport.close`."""
        connection = self._connection
        if connection is None or connection.closing:
            return
        connection.closing = True
        with suppress(ConnectionLostError):
            if not connection.leader.leads:  # a callback on the thread that reads cannot wait for an answer
                self._say_goodbye(connection)
        connection.lose(ConnectionLostError("the connection was closed"))

    def abort(self) -> None:
        """See `Transport.abort`."""
        connection = self._connection
        if connection is not None:
            connection.closing = True
            connection.lose(ConnectionLostError("the connection was aborted"))

    def _say_goodbye(self, connection: StompConnection) -> None:
        deadline = monotonic() + self.options.close_timeout
        connection.outbox.timeout = min(connection.outbox.timeout, self.options.close_timeout)
        waiter = threads.Waiter()
        pending = Pending(waiter)
        receipt = connection.router.expect(pending).decode()
        connection.outbox.write(ControlFrames(self._engine.version, self._virtual_host).disconnect(receipt))
        while not pending.done and (remaining := deadline - monotonic()) > 0:
            connection.leader.wait(waiter, remaining)

    def _opened(self) -> StompConnection:
        if self._connection is None:
            raise IllegalStateError("the transport is not open")
        return self._connection


def _params(options: TransportOptions) -> tuple[str | None, int]:
    for name in options.params:
        if name not in (_MAX_BODY, _HOST):
            raise ConfigError(f"{name!r} is no option of {options.scheme}://; those are {_MAX_BODY} and {_HOST}")
    digits = options.params.get(_MAX_BODY, str(MAX_BODY))
    if not digits.isdecimal() or len(digits) > 10 or int(digits) == 0:
        raise ConfigError(f"{_MAX_BODY}={digits[:40]!r} is no number of bytes above 0")
    return options.params.get(_HOST), int(digits)
