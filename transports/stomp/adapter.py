"""The STOMP transport: what connections and sessions see of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, cast
from uuid import UUID, uuid4, uuid5

from redelivery.model.destinations import Destination, Topic
from redelivery.model.errors import (
    ConfigError,
    ConnectError,
    IllegalStateError,
    InvalidDestinationError,
    JMSError,
    SecurityError,
    UnsupportedError,
)
from redelivery.model.modes import AckMode
from redelivery.model.suggestions import unknown_option
from redelivery.transports.dialects.detect import (
    check_declares,
    check_name,
    check_virtual_host,
    detect_stomp,
    stomp_host,
)
from redelivery.transports.dialects.dialect import StompDialect
from redelivery.transports.dialects.refusals import HOSTS_REFUSED
from redelivery.transports.finding import Meaning
from redelivery.transports.seam import (
    Channel,
    ConnectionEvents,
    Flow,
    Link,
    Peer,
    Pending,
    Runtime,
    SessionEvents,
    Transport,
    TransportOptions,
    Waiter,
)
from redelivery.transports.stomp.addresses import AddressFinder
from redelivery.transports.stomp.beside import Login, closes_at_maps
from redelivery.transports.stomp.channel.channel import StompChannel
from redelivery.transports.stomp.channel.context import StompChannelContext
from redelivery.transports.stomp.channel.subscribing import remove_frame
from redelivery.transports.stomp.channel.temporary import TemporaryMaker
from redelivery.transports.stomp.codec.reader import MAX_BODY, RawFrame
from redelivery.transports.stomp.codec.sends import SendEncoder
from redelivery.transports.stomp.connection.engine import StompEngine
from redelivery.transports.stomp.connection.login import log_in
from redelivery.transports.stomp.connection.protocol import StompWire, stomp_wire
from redelivery.transports.stomp.connection.redelivered_ids import ReleasedIds
from redelivery.transports.stomp.finder import QueueFinder
from redelivery.transports.stomp.wires import WirePlace, Wires
from redelivery.transports.wire.sockets import Stream
from redelivery.transports.wire.threads.runtime import THREADS
from redelivery.transports.wire.threads.waiter import ThreadWaiter

_PORTS: Final[Mapping[str, int]] = {"stomp": 61613, "stomp+ssl": 61612}  # ActiveMQ's
_CLIENT_IDS: Final = UUID("5b0f6a1e-6a0f-4c41-9d0c-1f5f0f6d8f1b")
_MAX_BODY: Final = "wireFormat.maxDataLength"
_MAX_FRAME: Final = "wireFormat.maxFrameSize"
_HOST: Final = "wireFormat.host"
_PARAMS: Final = (_MAX_BODY, _MAX_FRAME, _HOST)
_REASON_SECONDS: Final = 3.0


class StompTransport(Transport):
    """See `Transport`.

    It knows three options of the URL's query: ``wireFormat.maxDataLength``, the largest body that is read, in bytes
    (100 MiB), ``wireFormat.maxFrameSize``, the largest frame that the broker takes, in bytes (what its kind takes as
    it comes), and ``wireFormat.host``, the virtual host to name (the host itself; on a broker whose virtual hosts have
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
        _check_params(options)
        self._given_host = options.params.get(_HOST)
        self._max_body = _size(options, _MAX_BODY, MAX_BODY)
        self._max_frame = _size(options, _MAX_FRAME, 0)
        self._given_host = options.vhost if self._given_host is None else self._given_host
        self._versions = "1.2,1.1"
        self._virtual_host = self._given_host or stomp_host(options.dialect) or options.host
        # names the connection to its own no_local; with a client id, every one that has it (JMS 3.1 §8.3.3)
        self._token = uuid4().hex if options.client_id is None else uuid5(_CLIENT_IDS, options.client_id).hex
        self._wires = Wires(self._dial_further, events)
        self._first: StompWire | None = None
        self._dialect: StompDialect | None = None
        self._finder: QueueFinder | AddressFinder | None = None
        self._meaning = Meaning()
        self._released = ReleasedIds()
        self._makers: dict[StompWire, TemporaryMaker] = {}  # of each wire that has temporary destinations
        self._unowned: StompWire | None = None  # has those that no session has made

    def open(self) -> Flow[None]:
        """See `Transport.open`."""
        stream, engine, frames = yield from self._log_in()
        try:
            dialect, stomp = detect_stomp(self.options.dialect, engine.server)
            check_virtual_host(dialect, self.options.vhost)
            check_declares(dialect, stomp, self.options.declare)
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
        self._meaning = Meaning(stomp.spellings, declares=self.options.declare)
        self._first = self._start(stream, engine, frames)
        if stomp.other_queue_refusal:
            self._finder = QueueFinder(self._log_in_beside, stomp, self.options.request_timeout, self._meaning)
        elif stomp.addresses is not None:
            options = self.options
            self._finder = AddressFinder(self._log_in_beside, stomp, options.request_timeout, options.made)
        reserved = self.options.client_id is not None and bool(stomp.capabilities.subscriptions)
        self._wires.begin(self._first, stomp.sessions_per_wire, reserved=reserved)

    def _log_in(self) -> Flow[Login]:
        """Connect; once more where the broker has no virtual host of the URL's host's name, and the URL names none.

        One that has no virtual hosts at all, and says so, gets none named. Some want one for STOMP 1.2 all the same,
        and none for 1.1.
        """
        options = self.options
        try:
            return (yield from self._shake_hands(options))
        except ConnectError as error:
            if self._given_host or HOSTS_REFUSED not in str(error).lower():
                raise
            self._virtual_host = ""
            try:
                return (yield from self._shake_hands(options))
            except ConnectError:
                self._versions = "1.1"
                return (yield from self._shake_hands(options))
        except SecurityError as error:
            other = None if self._given_host else stomp_host(options.dialect, str(error))
            if other is None or other == self._virtual_host:
                raise
        self._virtual_host = other
        return (yield from self._shake_hands(options))

    def _shake_hands(self, options: TransportOptions, address: str | None = None) -> Flow[Login]:
        engine = StompEngine(self._virtual_host, options.heartbeat, self._max_body, self._versions)
        stream, frames = yield from log_in(options, options.port or _PORTS[options.scheme], engine, address)
        return stream, engine, frames

    def _start(self, stream: Stream, engine: StompEngine, frames: list[RawFrame]) -> StompWire:
        dialect = self._dialect
        assert dialect is not None, "set before"
        engine.never_silent_for(dialect.silence_limit)
        try:
            return stomp_wire(stream, engine, frames, dialect, self.options, self._wires, self._runtime)
        except JMSError:
            stream.close()
            raise

    def _log_in_beside(self, connect_timeout: float | None = None) -> Flow[Login]:
        """Log in to the same broker, without a client id, which is taken, and without heart-beats."""
        within = self.options.connect_timeout if connect_timeout is None else connect_timeout
        options = replace(self.options, client_id=None, heartbeat=0.0, connect_timeout=within)
        return self._shake_hands(options, self._opened().address)

    def _closes_at_maps(self) -> Flow[bool]:
        """See `closes_at_maps`; who has lost the connection does not wait long for the reason."""
        assert self._dialect is not None, "set with the first connection"
        login = self._log_in_beside(min(self.options.connect_timeout, _REASON_SECONDS))
        return closes_at_maps(login, self._dialect, min(self.options.request_timeout, _REASON_SECONDS))

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

    def channel(self, mode: AckMode, events: SessionEvents, *, client_id: bool = False) -> Flow[Channel]:
        """See `Transport.channel`."""
        dialect = self._dialect
        self._opened()
        assert dialect is not None, "set with the first connection"
        waiter = cast(ThreadWaiter, events.waiter)
        known: StompWire | None = waiter.place  # type: ignore[assignment]  # nobody else fills it
        wire = waiter.place = known or (yield from self._wires.take(client_id=client_id))
        protocol, finder = wire.protocol, self._finder
        context = StompChannelContext(
            dialect=dialect,
            version=protocol.version,
            router=protocol.router,
            outbox=protocol.outbox,
            events=events,
            control=protocol.control(),
            encoder=SendEncoder(
                protocol.version,
                dialect,
                self._token,
                finder.others if finder else (),
                self._max_frame,
                self._meaning,
                finder.routes if isinstance(finder, AddressFinder) else {},
            ),
            token=self._token,
            client_id=self.options.client_id,
            finder=finder,
            released=self._released,
            closes_at_maps=self._closes_at_maps,
            meaning=self._meaning,
        )
        channel = StompChannel(context, mode, WirePlace(self._wires, wire, leaves=known is None))
        channel.has_client_id = wire is self._first
        return channel

    def meant(self, destination: Destination) -> Destination:
        """See `Transport.meant`."""
        return self._meaning.of(destination)

    def unsubscribe(self, name: str, known: Link | None, waiter: Waiter) -> Flow[None]:  # noqa: ARG002 - found by its name
        """See `Transport.unsubscribe`: by the connection's own wire, which has the client id."""
        wire, dialect, parked = self._opened(), self._dialect, cast(ThreadWaiter, waiter)
        assert dialect is not None, "set with the first connection"
        if dialect.shared_needs_client_id and self.options.client_id is None:  # it would end the connection
            raise InvalidDestinationError(f"there is no durable subscription {name!r} without a client id")
        protocol, pending = wire.protocol, Pending(parked)
        receipt = protocol.router.expect(pending)
        place, parked.place = parked.place, wire
        try:
            protocol.outbox.write(remove_frame(name, protocol.control(), dialect, receipt))
            if not pending.done:
                yield pending
        finally:
            parked.place = place
            protocol.router.forget(receipt)
        if pending.error is not None:
            raise pending.error

    def temporary(self, kind: type[Destination], waiter: Waiter) -> Flow[Destination]:
        """See `Transport.temporary`."""
        dialect = self._dialect
        self._opened()
        assert dialect is not None, "set with the first connection"
        how = dialect.temporaries
        if how is None or (issubclass(kind, Topic) and not how.topic):
            raise UnsupportedError(
                f"{self.peer.provider_name} makes no {kind.__name__} over STOMP: {dialect.no_temporaries}"
            )
        wire: StompWire | None = cast(ThreadWaiter, waiter).place or self._unowned  # type: ignore[assignment]  # as above
        if wire is None:
            wire = self._unowned = yield from self._wires.own()
        self._wires.keep(wire)
        maker = self._makers.setdefault(wire, TemporaryMaker(wire, how))
        return (yield from maker.make(kind, waiter))

    def new_waiter(self, beside: Waiter | None = None) -> Waiter:
        """See `Transport.new_waiter`."""
        waiter = cast(ThreadWaiter, self._runtime.new_waiter())
        waiter.place = None if beside is None else cast(ThreadWaiter, beside).place
        return waiter

    def wait(self, waiter: Waiter, timeout: float | None) -> None:
        """See `Transport.wait`. What waits to leave together leaves first."""
        parked = cast(ThreadWaiter, waiter)
        wire: StompWire | None = parked.place  # type: ignore[assignment]  # as above
        if wire is None:
            wire = self._opened()
            self._wires.poll_once()
        wire.wait(parked, timeout)

    def flush(self, waiter: Waiter) -> None:
        """See `Transport.flush`."""
        wire: StompWire = cast(ThreadWaiter, waiter).place or self._opened()  # type: ignore[assignment]  # as above
        wire.flush()

    def close(self, waiter: Waiter) -> Flow[None]:
        """See `Transport.close`."""
        yield from self._wires.close(cast(ThreadWaiter, waiter), self.options.close_timeout)

    @property
    def lost(self) -> bool:
        """See `Transport.lost`."""
        return self._wires.lost

    def abort(self) -> None:
        """See `Transport.abort`."""
        self._wires.abort()

    def fail(self, error: JMSError) -> None:
        """See `Transport.fail`."""
        self._wires.on_lost(error)

    def _opened(self) -> StompWire:
        if self._first is None:
            raise IllegalStateError("the transport is not open")
        return self._first


def _check_params(options: TransportOptions) -> None:
    for name in options.params:
        if name not in _PARAMS:
            raise ConfigError(unknown_option(name, _PARAMS, of=f"{options.scheme}://"))


def _size(options: TransportOptions, name: str, usual: int) -> int:
    digits = options.params.get(name)
    if digits is None:
        return usual
    if not digits.isdecimal() or len(digits) > 10 or int(digits) == 0:
        raise ConfigError(f"{name}={digits[:40]!r} is not a number of bytes above 0")
    return int(digits)
