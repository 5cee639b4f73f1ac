"""The AMQP 1.0 transport: what connections and sessions see of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final, cast

from redelivery.model.destinations import Destination, Topic
from redelivery.model.errors import (
    ConfigError,
    ConnectionLostError,
    IllegalStateError,
    JMSError,
    ProtocolError,
    UnsupportedError,
)
from redelivery.model.modes import AckMode
from redelivery.transports.amqp.channel.channel import AmqpChannel
from redelivery.transports.amqp.channel.context import AmqpChannelContext, answer
from redelivery.transports.amqp.channel.unsubscribing import unsubscribe
from redelivery.transports.amqp.connection.login import check_params, log_in
from redelivery.transports.amqp.connection.protocol import AmqpConnection, amqp_connection, say_goodbye
from redelivery.transports.amqp.engine import AmqpEngine
from redelivery.transports.amqp.links.management import ManagementNode
from redelivery.transports.amqp.links.probing import Prober
from redelivery.transports.amqp.links.senders import Maker
from redelivery.transports.amqp.links.sessions import AmqpSession
from redelivery.transports.amqp.managing.addresses import BoundQueueFinder, KnownQueues
from redelivery.transports.amqp.managing.entities import EntityQueues
from redelivery.transports.amqp.managing.operations import OperationQueues
from redelivery.transports.amqp.managing.resources import ResourceQueues
from redelivery.transports.dialects.amqp import AmqpDialect, OperationsNode
from redelivery.transports.dialects.detect import (
    amqp_virtual_host,
    check_declares,
    check_name,
    check_virtual_host,
    detect_amqp,
)
from redelivery.transports.dialects.dialect import Dialect
from redelivery.transports.finding import Meaning
from redelivery.transports.seam import (
    Channel,
    ConnectionEvents,
    Flow,
    Link,
    Peer,
    Pending,
    Queues,
    Runtime,
    SessionEvents,
    Transport,
    TransportOptions,
    Waiter,
)
from redelivery.transports.wire.sockets import Stream
from redelivery.transports.wire.threads.runtime import THREADS
from redelivery.transports.wire.threads.waiter import ThreadWaiter

_PORTS: Final[Mapping[str, int]] = {"amqp": 5672, "amqps": 5671}
_RELAY: Final = "ANONYMOUS-RELAY"
_SHARED: Final = "SHARED-SUBS"


class AmqpTransport(Transport):
    """See `Transport`.

    It knows four options of the URL's query, named as Qpid JMS names them: ``amqp.vhost`` (the host itself),
    ``amqp.maxFrameSize`` in bytes (1 MiB), ``amqp.idleTimeout`` in milliseconds (twice the heartbeat) and
    ``amqp.saslMechanisms``, separated by commas. Another one raises ConfigError.
    """

    def __init__(self, options: TransportOptions, events: ConnectionEvents, runtime: Runtime | None = None) -> None:
        super().__init__(options, events, runtime)
        self._runtime = runtime or THREADS
        if options.scheme not in _PORTS:
            raise ConfigError(
                f"{options.scheme}:// is not AMQP; that is {' or '.join(f'{each}://' for each in _PORTS)}"
            )
        check_name(options.dialect)
        check_params(options)
        self._connection: AmqpConnection | None = None
        self._dialect: AmqpDialect | None = None
        self._meaning = Meaning()
        self._places = KnownQueues(options.made)
        self._relays = False

    def open(self) -> Flow[None]:
        """See `Transport.open`."""
        options = self.options
        stream, engine = yield from self._log_in()
        connection = amqp_connection(stream, engine, options, self.events, self._runtime)
        try:
            properties = _properties(engine)
            offered = engine.connection.remote_offered_capabilities or ()
            dialect, self._dialect = _detect(options.dialect, engine)
            check_declares(dialect, self._dialect, options.declare)
            self._meaning = Meaning(self._dialect.spellings, declares=options.declare)
            table = connection.protocol.table
            table.dialect = self._dialect
            if self._dialect.management:
                connection.protocol.nodes = ManagementNode(table)
            elif self._dialect.other_queue_refusal:
                connection.protocol.nodes = Prober(table, self._dialect)
            offers = {str(each) for each in offered}
            self._relays = _RELAY in offers
            if _SHARED not in offers:  # some brokers echo what is asked for, and do not share
                kinds = frozenset(each for each in self._dialect.capabilities.subscriptions if "shared" not in each)
                can = replace(self._dialect.capabilities, subscriptions=kinds)
                self._dialect = replace(self._dialect, capabilities=can)
            self.peer = Peer(
                provider_name=dialect.provider,
                provider_version=str(properties.get("version", "unknown")),
                protocol="AMQP 1.0",
                dialect=dialect.name,
                capabilities=self._dialect.capabilities,
            )
            connection.start()
        except JMSError:
            stream.close()
            raise
        self._connection = connection

    def _log_in(self) -> Flow[tuple[Stream, AmqpEngine]]:
        """Connect; once more where only the broker's answer says how it wants its virtual host to be named."""
        options = self.options
        port = options.port or _PORTS[options.scheme]
        stream, engine = yield from log_in(options, port)
        if options.vhost is None:
            return stream, engine
        try:
            dialect, _ = _detect(options.dialect, engine)
            check_virtual_host(dialect, options.vhost)
        except JMSError:
            stream.close()
            raise
        if amqp_virtual_host(dialect.name, options.vhost) == engine.connection.hostname:
            return stream, engine
        stream.close()
        return (yield from log_in(replace(options, dialect=dialect.name), port))

    def channel(self, mode: AckMode, events: SessionEvents, *, client_id: bool = False) -> Flow[Channel]:  # noqa: ARG002 - all have it
        """See `Transport.channel`."""
        yield from ()
        assert self._dialect is not None, "set with the connection"
        context = AmqpChannelContext(self._opened(), events, self._dialect, self._meaning, self._places.routes)
        node, finder = self._dialect.queues, None
        if isinstance(node, OperationsNode):
            capability = self._dialect.temporary_queue_capability
            asks = partial(OperationQueues, context.protocol, node, capability, events.waiter)
            finder = BoundQueueFinder(self._places, node.address, asks)
        return AmqpChannel(
            context,
            mode,
            self.events.on_error,
            relays=self._relays,
            request_timeout=self.options.request_timeout,
            finder=finder,
        )

    def temporary(self, kind: type[Destination], waiter: Waiter) -> Flow[Destination]:
        """See `Transport.temporary`; its link is in a session of its own, which lives as long as the connection."""
        protocol, dialect, topic = self._opened().protocol, self._dialect, issubclass(kind, Topic)
        assert dialect is not None, "set with the connection"
        if isinstance(protocol.nodes, ManagementNode) and not topic:
            return kind((yield from protocol.nodes.temporary(protocol.writing, waiter)))
        named = dialect.temporary_topic_capability if topic else dialect.temporary_queue_capability
        if named is None:
            raise UnsupportedError(f"this broker makes no {kind.__name__} over AMQP")
        asked = Pending(waiter)
        with protocol.writing():
            session = AmqpSession(protocol.table)
            session.open(None)
            maker = Maker(session, named)
            maker.open(asked)
        yield from answer(asked)
        if not maker.address:
            raise ProtocolError(f"{maker.what}: the broker gave it no name")
        return kind(maker.address)

    def queues(self, waiter: Waiter) -> Queues:
        """See `Transport.queues`."""
        protocol, dialect = self._opened().protocol, self._dialect
        assert dialect is not None, "set with the connection"
        capability = dialect.temporary_queue_capability
        if isinstance(protocol.nodes, ManagementNode):
            return ResourceQueues(protocol, waiter)
        if isinstance(dialect.queues, OperationsNode):
            return OperationQueues(protocol, dialect.queues, capability, waiter)
        if dialect.queues is not None:
            return EntityQueues(protocol, dialect.queues, capability, waiter)
        return super().queues(waiter)

    def meant(self, destination: Destination) -> Destination:
        """See `Transport.meant`."""
        return self._meaning.of(destination)

    def unsubscribe(self, name: str, known: Link | None, waiter: Waiter) -> Flow[None]:
        """See `Transport.unsubscribe`."""
        assert self._dialect is not None, "set with the connection"
        return unsubscribe(self._opened().protocol, self._dialect, name, known, waiter)

    def new_waiter(self, beside: Waiter | None = None) -> Waiter:  # noqa: ARG002 - one place serves all
        """See `Transport.new_waiter`."""
        return self._runtime.new_waiter()

    def wait(self, waiter: Waiter, timeout: float | None) -> None:
        """See `Transport.wait`. What waits to leave together leaves first."""
        self._opened().wait(cast(ThreadWaiter, waiter), timeout)

    def flush(self, waiter: Waiter) -> None:  # noqa: ARG002 - one place serves all
        """See `Transport.flush`."""
        self._opened().flush()

    def close(self, waiter: Waiter) -> Flow[None]:
        """See `Transport.close`."""
        connection = self._connection
        if connection is None or connection.closing:
            return
        connection.closing = True
        if not connection.leader.leads:  # a callback on the thread that reads cannot wait for an answer
            try:
                yield from say_goodbye(connection, waiter)
            finally:
                connection.lose(ConnectionLostError("the connection was closed"))
        else:
            connection.lose(ConnectionLostError("the connection was closed"))

    @property
    def lost(self) -> bool:
        """See `Transport.lost`."""
        return self._connection is not None and self._connection.lost is not None

    def abort(self) -> None:
        """See `Transport.abort`."""
        connection = self._connection
        if connection is not None:
            connection.closing = True
            connection.lose(ConnectionLostError("the connection was aborted"))

    def fail(self, error: JMSError) -> None:
        """See `Transport.fail`."""
        self._opened().lose(error)

    def _opened(self) -> AmqpConnection:
        if self._connection is None:
            raise IllegalStateError("the transport is not open")
        return self._connection


def _properties(engine: AmqpEngine) -> dict[str, object]:
    """The properties of the broker's open."""
    return {str(key): value for key, value in (engine.connection.remote_properties or {}).items()}


def _detect(name: str, engine: AmqpEngine) -> tuple[Dialect, AmqpDialect]:
    properties, peer = _properties(engine), engine.connection
    product, version = str(properties.get("product", "")), str(properties.get("version", ""))
    return detect_amqp(name, product, peer.remote_container or "", version, peer.remote_hostname)
