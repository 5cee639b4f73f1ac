"""``vm://name``: the transport to the embedded broker of this process; every answer is there at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import Final, TypeVar

from redelivery.broker import registry
from redelivery.broker.core import BrokerClosedError, Core
from redelivery.broker.embedded import EmbeddedBroker
from redelivery.broker.engine.engine import Engine
from redelivery.broker.registry import RunningBroker
from redelivery.broker.vm.channel import VmChannel
from redelivery.broker.vm.steps import Call, Connect
from redelivery.model.capabilities import Capabilities
from redelivery.model.destinations import Destination
from redelivery.model.errors import (
    ConfigError,
    ConnectError,
    ConnectionLostError,
    IllegalStateError,
    JMSError,
    SecurityError,
    UnsupportedError,
)
from redelivery.model.modes import AckMode
from redelivery.model.suggestions import unknown_option
from redelivery.model.version import VERSION
from redelivery.transports.dialects.detect import ContradictedError, chosen
from redelivery.transports.dialects.embedded import MEANING, NO_DECLARING
from redelivery.transports.runtime import OF_THE_PARENT
from redelivery.transports.seam import (
    Channel,
    ConnectionEvents,
    Flow,
    Link,
    Peer,
    Runtime,
    SessionEvents,
    Transport,
    TransportOptions,
    Waiter,
)
from redelivery.transports.wire.threads.waiter import ThreadWaiter

CAPABILITIES: Final = Capabilities(
    transactions=True,
    native_poison=True,
    poison_by_broker=True,
    poison_carries_cause=True,
    exact_counts=True,
    counts_prefetched=False,
    selectors=True,
    browse=True,
    delayed_delivery=True,
    no_local=True,
    queue_patterns=True,
    composite_destinations=True,
    exclusive_consumers=True,
    message_ids=True,
    body_kinds=frozenset(("text", "bytes", "map", "stream", "none")),
    subscriptions=frozenset(("durable", "shared", "shared durable")),
    no_declaring=NO_DECLARING,
)
T = TypeVar("T")
_numbers = count(1)
_OPTIONS: Final = ("create", "store")
_FLAGS: Final = {"true": True, "false": False}


class VmTransport(Transport):
    """One connection to an embedded broker, which is started on first use and ends with its last such connection.

    The URL's query may say ``create=false``: then the broker must be there already. ``store=shop.db``: it keeps its
    messages in that file, relative to the current directory; otherwise they end with the broker.
    """

    def __init__(self, options: TransportOptions, events: ConnectionEvents, runtime: Runtime | None = None) -> None:
        super().__init__(options, events, runtime)
        for name, value in options.params.items():
            if name not in _OPTIONS:
                raise ConfigError(unknown_option(name, _OPTIONS, of=f"vm://{options.host}"))
            if name == "create" and value not in _FLAGS:
                raise ConfigError(f"vm://{options.host}: create={value!r} is not a flag: pass true or false")
            if name == "store" and (not value or "\0" in value):
                raise ConfigError(f"vm://{options.host}: store={value!r} is not a file's name")
        self._broker: RunningBroker | None = None
        self._channels: list[VmChannel] = []
        self._temporary: list[Destination] = []
        self._lock = threading.Lock()
        self._ended: JMSError | None = None
        self.hung_up = threading.Event()  # ends a planned delay
        self._name = f"vm:{next(_numbers)}"
        # no_local excludes what any connection of the same client id sends (JMS 3.1 §8.3.3)
        self._origin = self._name if options.client_id is None else f"client-id:{options.client_id}"

    @property
    def core(self) -> Core:
        """The broker behind. Raises IllegalStateError before `open`, and what ended the connection after its end."""
        if self._ended is not None:
            raise type(self._ended)(str(self._ended))  # a new one: the same may be handled in another thread
        if self._broker is None:
            raise IllegalStateError(f"vm://{self.options.host} is not open yet")
        return self._broker.core

    @property
    def remark(self) -> str:
        """The hint that says what happens to the messages, where a connection started the broker."""
        return "" if self._broker is None else registry.remark(self._broker)

    @property
    def lost(self) -> bool:
        """See `Transport.lost`."""
        return self._ended is not None

    def open(self) -> Flow[None]:
        """Find or start the broker."""
        yield from ()
        options = self.options
        name = options.host or "localhost"
        store = options.params.get("store")
        create = _FLAGS[options.params.get("create", "true")]
        start = (lambda: EmbeddedBroker(name, store=store).start()) if create else None
        try:
            self._broker = registry.join(name, self, options.client_id, start, store)
        except IllegalStateError as error:
            raise ConnectError(f"vm://{name}: {error}") from error
        self._broker.core.owners.add(self)
        try:
            chosen(options.dialect, self._broker.core.dialect, "")
        except ContradictedError:
            registry.leave(self._broker, self)
            raise
        if not self._broker.core.config.admits(options.username, options.password):
            registry.leave(self._broker, self)
            raise SecurityError(f"vm://{name}: user name {options.username!r} or password is wrong")
        try:
            self._broker.core.faults.run("CONNECT", Connect(name, self.hung_up), sockets=False)
        except (UnsupportedError, ConnectError):
            registry.leave(self._broker, self)
            raise
        self.peer = Peer("redelivery", VERSION, "vm", *_meaning(self._broker.core))

    def channel(self, mode: AckMode, events: SessionEvents, *, client_id: bool = False) -> Flow[Channel]:  # noqa: ARG002 - all have it
        """One session's channel."""
        yield from ()
        channel = VmChannel(self, mode, events, self._origin, self.options.client_id)
        with self._lock:
            _ = self.core  # raises after the end
            self._channels.append(channel)
        return channel

    def temporary(self, kind: type[Destination], waiter: Waiter) -> Flow[Destination]:  # noqa: ARG002 - made at once
        """See `Transport.temporary`."""
        yield from ()
        made = kind(f"{kind.scheme}://{self._name}:{next(_numbers)}")
        self.call(lambda engine, _: engine.make_temporary(made))
        with self._lock:
            self._temporary.append(made)
        return made

    def unsubscribe(self, name: str, known: Link | None, waiter: Waiter) -> Flow[None]:  # noqa: ARG002 - found by its name, at once
        """See `Transport.unsubscribe`."""
        yield from ()
        self.run("UNSUBSCRIBE", lambda engine, _: engine.remove_subscription(name, self.options.client_id))

    def forget(self, channel: VmChannel) -> None:
        """A channel has ended."""
        with self._lock:
            known = channel in self._channels
            if known:
                self._channels.remove(channel)
        if known and self._broker is not None:
            channel.leave(self._broker.core)

    def run(self, command: str, function: Callable[[Engine, int], T]) -> T:
        """Do something at the broker, under the faults planned for the command.

        Raises:
            ConnectionLostError: the broker has ended, or a planned fault cut the connection.
            UnsupportedError: a planned fault needs a socket; nothing is done.
            JMSError: a planned error; or whatever the function raises.
        """
        step = Call(self, command, function)
        self.core.faults.run(command, step, sockets=False)
        return step.result

    def call(self, function: Callable[[Engine, int], T]) -> T:
        """Do something at the broker.

        Raises:
            ConnectionLostError: it has ended.
            JMSError: whatever the function raises.
        """
        core = self.core
        try:
            return core.call(function)
        except BrokerClosedError as error:
            raise self.lose(str(error)) from error

    def lose(self, reason: str) -> ConnectionLostError:
        """The connection breaks; returns the error for a call that is under way."""
        error = ConnectionLostError(f"vm://{self.options.host}: {reason}")
        self.fail(error)
        return error

    def fail(self, error: JMSError) -> None:
        """See `Transport.fail`."""
        if self._end(error):
            self.events.on_lost(error)

    def new_waiter(self, beside: Waiter | None = None) -> Waiter:  # noqa: ARG002 - one kind serves all
        """A waiter for a thread, or task."""
        return ThreadWaiter() if self.runtime is None else self.runtime.new_waiter()

    def wait(self, waiter: Waiter, timeout: float | None) -> None:
        """Park; there is nothing to read meanwhile."""
        self._check_lost()
        if isinstance(waiter, ThreadWaiter):  # a task's is for `flush` and `await`
            waiter.wait(timeout)
            self._check_lost()

    def flush(self, waiter: Waiter) -> None:  # noqa: ARG002 - nothing waits to leave
        """See `Transport.flush`."""
        self._check_lost()

    def close(self, waiter: Waiter) -> Flow[None]:  # noqa: ARG002 - nothing is to wait for
        """End the channels in order, then leave the broker."""
        yield from ()
        self._end(IllegalStateError(f"the connection to vm://{self.options.host} is closed"))

    def abort(self) -> None:
        """The same, as an abrupt end: the broker still knows exactly what was seen, as it is in this process."""
        self._end(ConnectionLostError(f"the connection to vm://{self.options.host} was aborted"))

    def broker_closed(self, reason: str) -> None:
        """The broker has ended under us."""
        self.lose(f"the embedded broker is closed: {reason}")

    def orphan(self) -> None:
        """See `redelivery.transports.runtime.Owner`; a thread of the parent's may have held the lock."""
        self._lock = threading.Lock()
        self._channels, self._temporary, self._broker = [], [], None
        self._ended = self._ended or ConnectionLostError(f"vm://{self.options.host}: {OF_THE_PARENT}")

    def _check_lost(self) -> None:
        if isinstance(self._ended, ConnectionLostError):
            raise ConnectionLostError(str(self._ended))

    def _end(self, error: JMSError) -> bool:
        """End the connection; False where another call has ended it."""
        with self._lock:
            if self._ended is not None:
                return False
            self._ended = error
            self.hung_up.set()
            channels, self._channels = self._channels, []
            temporary, self._temporary = self._temporary, []
        broker = self._broker
        if broker is not None:
            for channel in channels:
                channel.leave(broker.core)
            self._drop(broker.core, temporary)
            registry.leave(broker, self)
        for channel in channels:
            channel.events.waiter.wake()
        return True

    def _drop(self, core: Core, temporary: Sequence[Destination]) -> None:
        def drop(engine: Engine, _: int) -> None:
            for made in temporary:
                engine.drop_temporary(made)

        with suppress(BrokerClosedError):  # gone with all the rest
            core.call(drop)


def _meaning(core: Core) -> tuple[str, Capabilities]:
    """The dialect of the broker, and what sessions may expect of it: it is ActiveMQ's, or that of the file it obeys."""
    if core.config.rules is None:
        return MEANING, CAPABILITIES
    other = core.dialect.amqp
    assert other is not None, "the embedded broker has both"
    return core.dialect.name, replace(
        CAPABILITIES,
        native_poison=other.capabilities.native_poison,
        poison_by_broker=other.capabilities.poison_by_broker,
        poison_of_topics=other.capabilities.poison_of_topics,
        poison_carries_cause=other.capabilities.poison_carries_cause,
    )
