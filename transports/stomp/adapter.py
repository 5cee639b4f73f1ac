"""The STOMP transport: what connections and sessions see of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, TypeAlias, cast
from uuid import uuid4

from redelivery.model.errors import ConfigError, IllegalStateError, JMSError, SecurityError
from redelivery.model.modes import AckMode
from redelivery.model.suggestions import unknown_option
from redelivery.transports.dialects.detect import check_name, detect_stomp, stomp_host
from redelivery.transports.dialects.dialect import StompDialect
from redelivery.transports.seam import (
    Channel,
    ConnectionEvents,
    Flow,
    Peer,
    Runtime,
    SessionEvents,
    Transport,
    TransportOptions,
    Waiter,
)
from redelivery.transports.stomp.channel.channel import StompChannel
from redelivery.transports.stomp.channel.context import ChannelContext
from redelivery.transports.stomp.codec.reader import MAX_BODY, RawFrame
from redelivery.transports.stomp.codec.sends import SendEncoder
from redelivery.transports.stomp.connection.engine import Engine
from redelivery.transports.stomp.connection.login import log_in
from redelivery.transports.stomp.connection.protocol import StompWire, stomp_wire
from redelivery.transports.stomp.wires import Place, Wires
from redelivery.transports.wire.sockets import Stream
from redelivery.transports.wire.threads.runtime import THREADS
from redelivery.transports.wire.threads.waiter import Waiter as ParkedWaiter

_PORTS: Final[Mapping[str, int]] = {"stomp": 61613, "stomp+ssl": 61612}  # ActiveMQ's
_MAX_BODY: Final = "wireFormat.maxDataLength"
_HOST: Final = "wireFormat.host"

Login: TypeAlias = tuple[Stream, Engine, list[RawFrame]]  # the frames came right after CONNECTED


class StompTransport(Transport):
    """See `Transport`.

    It knows two options of the URL's query: ``wireFormat.maxDataLength``, the largest body that is read, in bytes
    (100 MiB), and ``wireFormat.host``, the virtual host to name (the host itself; on a broker whose virtual hosts have
    other names, its default one). Another one raises ConfigError.
    """

    def __init__(self, options: TransportOptions, events: ConnectionEvents, runtime: Runtime | None = None) -> None:
        super().__init__(options, events, runtime)
        self._runtime = runtime or THREADS
        if options.scheme not in _PORTS:
            raise ConfigError(
                f"{options.scheme}:// is not STOMP; that is {' or '.join(f'{each}://' for each in _PORTS)}"
            )
        check_name(options.dialect)
        self._given_host, self._max_body = _params(options)
        self._virtual_host = self._given_host or stomp_host(options.dialect) or options.host
        self._token = uuid4().hex
        self._wires = Wires(self._dial_further, events)
        self._first: StompWire | None = None
        self._dialect: StompDialect | None = None

    def open(self) -> Flow[None]:
        """See `Transport.open`."""
        stream, engine, frames = yield from self._log_in()
        try:
            dialect, stomp = detect_stomp(self.options.dialect, engine.server)
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
        self._first = self._start(stream, engine, frames)
        self._wires.begin(self._first, stomp.sessions_per_wire)

    def _log_in(self) -> Flow[Login]:
        """Connect; once more where the broker has no virtual host of the URL's host's name, and the URL names none."""
        options = self.options
        try:
            return (yield from self._shake_hands(options))
        except SecurityError as error:
            other = None if self._given_host else stomp_host(options.dialect, str(error))
            if other is None or other == self._virtual_host:
                raise
        self._virtual_host = other
        return (yield from self._shake_hands(options))

    def _shake_hands(self, options: TransportOptions, address: str | None = None) -> Flow[Login]:
        engine = Engine(self._virtual_host, options.heartbeat, self._max_body)
        stream, frames = yield from log_in(options, options.port or _PORTS[options.scheme], engine, address)
        return stream, engine, frames

    def _start(self, stream: Stream, engine: Engine, frames: list[RawFrame]) -> StompWire:
        dialect = self._dialect
        assert dialect is not None, "set before"
        engine.never_silent_for(dialect.silence_limit)
        try:
            return stomp_wire(stream, engine, frames, dialect, self.options, self._wires, self._runtime)
        except JMSError:
            stream.close()
            raise

    def _dial_further(self) -> Flow[StompWire]:
        """A wire beside the first, for a session: the same broker and login, and no client id, which is taken."""
        first = self._opened()
        first.protocol.outbox.check()
        try:
            login = yield from self._shake_hands(replace(self.options, client_id=None), first.address)
            return self._start(*login)
        except JMSError as error:
            raise type(error)(
                f"session: with {self.peer.provider_name} over STOMP each session has a socket of its own beside the "
                f"connection's, and this one could not be opened: {error}"
            ) from error

    def channel(self, mode: AckMode, events: SessionEvents) -> Flow[Channel]:
        """See `Transport.channel`."""
        dialect = self._dialect
        self._opened()
        assert dialect is not None, "set with the first connection"
        waiter = cast(ParkedWaiter, events.waiter)
        known: StompWire | None = waiter.place
        wire = waiter.place = known or (yield from self._wires.take())
        protocol = wire.protocol
        context = ChannelContext(
            dialect=dialect,
            version=protocol.version,
            router=protocol.router,
            outbox=protocol.outbox,
            events=events,
            control=protocol.control(),
            encoder=SendEncoder(protocol.version, dialect, self._token),
            token=self._token,
            whole=self._runtime.whole,
        )
        return StompChannel(context, mode, Place(self._wires, wire, leaves=known is None))

    def new_waiter(self, beside: Waiter | None = None) -> Waiter:
        """See `Transport.new_waiter`."""
        waiter = cast(ParkedWaiter, self._runtime.new_waiter())
        waiter.place = None if beside is None else cast(ParkedWaiter, beside).place
        return waiter

    def wait(self, waiter: Waiter, timeout: float | None) -> None:
        """See `Transport.wait`. What waits to leave together leaves first."""
        parked = cast(ParkedWaiter, waiter)
        wire: StompWire | None = parked.place
        if wire is None:
            wire = self._opened()
            self._wires.poll_once()
        wire.wait(parked, timeout)

    def flush(self, waiter: Waiter) -> None:
        """See `Transport.flush`."""
        wire: StompWire = cast(ParkedWaiter, waiter).place or self._opened()
        wire.flush()

    def close(self, waiter: Waiter) -> Flow[None]:
        """See `Transport.close`."""
        yield from self._wires.close(cast(ParkedWaiter, waiter), self.options.close_timeout)

    def abort(self) -> None:
        """See `Transport.abort`."""
        self._wires.abort()

    def _opened(self) -> StompWire:
        if self._first is None:
            raise IllegalStateError("the transport is not open")
        return self._first


def _params(options: TransportOptions) -> tuple[str | None, int]:
    for name in options.params:
        if name not in (_MAX_BODY, _HOST):
            raise ConfigError(unknown_option(name, (_MAX_BODY, _HOST), of=f"{options.scheme}://"))
    digits = options.params.get(_MAX_BODY, str(MAX_BODY))
    if not digits.isdecimal() or len(digits) > 10 or int(digits) == 0:
        raise ConfigError(f"{_MAX_BODY}={digits[:40]!r} is not a number of bytes above 0")
    return options.params.get(_HOST), int(digits)
