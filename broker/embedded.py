"""The embedded broker: queues and topics in this process, by ``vm://`` and, if asked for, over STOMP and AMQP 1.0."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Final, Unpack

from redelivery.broker import registry
from redelivery.broker.core import Core
from redelivery.broker.engine.config import BrokerConfig
from redelivery.broker.engine.engine import Engine
from redelivery.broker.engine.state import TEMPORARY
from redelivery.broker.engine.stored import StoredMessage
from redelivery.broker.faults import Faults
from redelivery.broker.observed import ObservedBroker
from redelivery.broker.servers.listener import HOST, ClientFactory, Listener
from redelivery.broker.servers.stomp.socket import StompSocket
from redelivery.broker.store.sqlite import SqliteStore
from redelivery.broker.subscriptions import NamedSubscription, named_subscriptions
from redelivery.broker.views import StoredSource
from redelivery.model.content.headers import SYNONYMS, SendKeywords
from redelivery.model.destinations import Destination, Topic
from redelivery.model.destinations import destination as parse
from redelivery.model.errors import ConfigError, IllegalStateError, InvalidDestinationError, RequestTimeoutError
from redelivery.model.events import Observer
from redelivery.model.messages import Message
from redelivery.model.suggestions import suggesting
from redelivery.model.version import lacks_proton
from redelivery.policies import read
from redelivery.policies.checks import check_flag, check_seconds, check_whole, to_ms
from redelivery.transports.wire.clock import epoch_ms

_END: Final = 5.0  # seconds that a thread of ours is waited for at close
_HEADERS: Final = ("correlation_id", "reply_to", "type", "group_id")


class EmbeddedBroker:
    """A broker in this process; a context manager. Without a store nothing is kept after `close`.

    ``name``: what ``vm://name`` connects to; one broker of a name per process.
    ``stomp_port``: also listen for STOMP clients on 127.0.0.1; 0 takes a free port, None (default) opens none.
    ``amqp_port``: the same for AMQP 1.0 clients; needs the extra ``redelivery[amqp]``.
    ``config``: limits, users and dead-letter strategies; or the name of another broker's configuration file, whose
        redelivery and dead-letter rules count then (`redelivery.policies.read` says which files).
    ``properties``: the values of placeholders (``${name}``) in such a file; nothing else is looked up.
    ``store``: a file that keeps persistent messages of queues, with their order, counts and delays, over the end of
        the process, a kill -9 among them; it is made where there is none. One broker at a time has it. What was
        answered is durable. Without it, messages end with the broker.
    ``observer``: is called with an event (`redelivery.events`) of each thing that happens to a message here, in order,
        by the thread in which it happened or another one that is doing so already.

    Raises:
        ConfigError: a bad name, port, store, file or observer, or an AMQP port without the extra.
    """

    @suggesting({"port": "stomp_port", "stomp": "stomp_port", "amqp": "amqp_port", "path": "store", "file": "store"})
    def __init__(
        self,
        name: str = "localhost",
        *,
        stomp_port: int | None = None,
        amqp_port: int | None = None,
        config: BrokerConfig | str | os.PathLike[str] | None = None,
        store: str | os.PathLike[str] | None = None,
        observer: Observer | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        if not isinstance(name, str) or not name or not name.isprintable() or set(name) & set("/?#: "):
            raise ConfigError(f"name={name!r} is not a broker's name: it must fit into a URL like vm://orders")
        self.name = name
        self.store = None if store is None else _path(store)
        observed = None if observer is None else ObservedBroker(observer)
        self.core = Core(name, _config(config, properties), observed)
        self._listeners: dict[str, Callable[[], Listener]] = {}
        if stomp_port is not None:
            self._listeners["stomp"] = partial(
                Listener, self.core, "stomp", _port("stomp_port", stomp_port), 2, StompSocket
            )
        if amqp_port is not None:
            self._listeners["amqp"] = partial(
                Listener, self.core, "amqp", _port("amqp_port", amqp_port), 3, _amqp_socket()
            )
        self.core.faults.sockets = bool(self._listeners)
        self.core.faults.stored = self.store is not None
        self._open: dict[str, Listener] = {}
        self._state = "not started yet"

    @property
    def running(self) -> bool:
        """True: it was started, and is not closed."""
        return self._state == "running"

    @property
    def faults(self) -> Faults:
        """The planned faults of this broker."""
        return self.core.faults

    def start(self) -> EmbeddedBroker:
        """Start; entering the context does it too.

        Raises:
            ConfigError: a port cannot be had, or the store: the text says why.
            IllegalStateError: it was started before, or another broker of that name runs in this process.
        """
        if self._state != "not started yet":
            raise IllegalStateError(f"the embedded broker {self.name!r} cannot be started: it is {self._state}")
        registry.register(self)
        try:
            if self.store is not None:
                synchronous = self.core.config.store_synchronous
                self.core.keep_in(SqliteStore(self.store, synchronous=synchronous))
            for protocol, listen in self._listeners.items():
                self._open[protocol] = listen()
        except BaseException:  # whatever it is: the name is free again, and the file
            registry.unregister(self)
            self._shut()
            if self.store is not None:
                self.core.close("it could not be started", _END)
            raise
        self._state = "running"
        return self

    def close(self) -> None:
        """End the broker and every connection to it. Idempotent."""
        if self._state == "closed":
            return
        self._state = "closed"
        registry.unregister(self)
        self._shut()
        self.core.close("close() was called", _END)

    def kill(self) -> None:
        """End as a kill -9 of its process would: of its store stays what was answered. For tests of what survives."""
        if self._state != "closed":
            self._state = "closed"
            self.core.kill()
            registry.unregister(self)
            self._shut()
            self.core.close("kill() was called", _END)

    def __enter__(self) -> EmbeddedBroker:
        if self._state != "running":
            self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def vm_url(self) -> str:
        """The URL for `redelivery.connect` within this process."""
        return f"vm://{self.name}"

    @property
    def stomp_url(self) -> str:
        """The URL for STOMP clients.

        Raises:
            IllegalStateError: no STOMP port was asked for, or the broker does not run.
        """
        return self._url("stomp")

    @property
    def amqp_url(self) -> str:
        """The URL for AMQP 1.0 clients.

        Raises:
            IllegalStateError: no AMQP port was asked for, or the broker does not run.
        """
        return self._url("amqp")

    @property
    def urls(self) -> dict[str, str]:
        """The URLs that it listens on, by protocol; empty where it has no port.

        Raises:
            IllegalStateError: the broker does not run.
        """
        return {protocol: self._url(protocol) for protocol in self._listeners}

    def queue_depth(self, name: Destination | str) -> int:
        """The number of messages that a queue holds: waiting or unacknowledged; delayed ones not yet.

        Raises:
            InvalidDestinationError: the name is a topic's; a topic holds nothing.
        """
        queue = _queue_name(name)
        return self.core.call(lambda engine, _now: engine.depth(queue))

    def messages(self, name: Destination | str) -> list[Message]:
        """The messages that `queue_depth` counts, in order; nothing is taken. Each shows its next delivery's count.

        Raises:
            InvalidDestinationError: as `queue_depth`.
        """
        queue = _queue_name(name)

        def snapshot(engine: Engine, _now: int) -> list[Message]:
            return [
                Message.received(StoredSource(entry.message, entry.redeliveries + 1), 0, None)
                for entry in engine.entries(queue)
            ]

        return self.core.call(snapshot)

    def subscriptions(self) -> list[NamedSubscription]:
        """The durable and the shared subscriptions to topics, by name, and how many messages each holds."""
        return self.core.call(lambda engine, _now: named_subscriptions(engine))

    @suggesting(SYNONYMS)
    def send(
        self,
        destination: Destination | str,
        body_or_message: object,
        **options: Unpack[SendKeywords],
    ) -> Message:
        """Put a message there, as a producer would; for tests, which need no connection for it.

        Args:
            destination: a Queue, a Topic or a str.
            body_or_message: ``str``, ``bytes``, ``dict``, ``list``, None, or a Message, which is copied.
            options: ``persistent`` (True), ``priority`` (4), ``ttl``, …: see
                `redelivery.model.content.headers.SendKeywords`.
                The broker keeps a message until it ends, persistent or not.

        Returns:
            The message with its headers as sent.

        Raises:
            InvalidDestinationError, MessageFormatError, ConfigError: an argument does not fit; the text names it.
            ResourceAllocationError: the broker is full.
        """
        message = body_or_message.copy() if isinstance(body_or_message, Message) else Message(body_or_message)
        if properties := options.get("properties"):
            message.properties = {**message.properties, **properties}
        headers: dict[str, object] = {name: options.get(name) for name in _HEADERS}
        for name, value in headers.items():
            if value is not None:
                setattr(message, name, value)
        now, delay = epoch_ms(), _milliseconds("delivery_delay", options.get("delivery_delay"))
        lifetime = _milliseconds("ttl", options.get("ttl"))
        message.stamp(
            destination=parse(destination),
            persistent=check_flag("persistent", options.get("persistent", True)),
            priority=check_whole("priority", options.get("priority", 4), 0, 9),
            timestamp=now,
            expiration=now + delay + lifetime if lifetime else None,
            delivery_time=now + delay if delay else None,
            message_id=self.core.new_id(),
        )
        stored = StoredMessage.of(message, str(message.message_id), now=now)
        self.core.call(lambda engine, now: engine.send(stored, now))
        return message

    def wait_for(self, destination: Destination | str, depth: int = 0, timeout: float | timedelta = 2) -> None:
        """Wait until a queue holds ``depth`` messages, as `queue_depth` counts them; returns as soon as it does.

        Args:
            destination: a Queue or its name.
            depth: how many messages; 0: until everything is consumed and acknowledged.
            timeout: seconds.

        Raises:
            RequestTimeoutError: it does not; the text says how many there are instead.
        """
        queue = _queue_name(destination)
        wanted, seconds = check_whole("depth", depth, 0), check_seconds("timeout", timeout)
        if not self.core.wait_until(lambda engine: engine.depth(queue) == wanted, seconds):
            seen = self.queue_depth(destination)
            raise RequestTimeoutError(
                f"queue://{queue} holds {seen} message{'' if seen == 1 else 's'} after {seconds:g} s, not {wanted}"
            )

    def _url(self, protocol: str) -> str:
        if protocol not in self._listeners:
            raise IllegalStateError(
                f"the embedded broker {self.name!r} does not listen for {protocol.upper()}: it was made without"
                f" {protocol}_port; pass {protocol}_port=0 for a free port"
            )
        if self._state != "running":
            raise IllegalStateError(
                f"the embedded broker {self.name!r} has no {protocol.upper()} port: it is {self._state}"
            )
        return f"{protocol}://{HOST}:{self._open[protocol].port}"

    def _shut(self) -> None:
        for listener in self._open.values():
            listener.close(_END)

    def __repr__(self) -> str:
        kept = "messages end with it" if self.store is None else f"store={str(self.store)!r}"
        kept = registry.remark(self) or kept
        return f"<EmbeddedBroker {self.name!r} {self._state}, {kept}>"


def _config(config: BrokerConfig | str | os.PathLike[str] | None, properties: Mapping[str, str] | None) -> BrokerConfig:
    if config is not None and not isinstance(config, (BrokerConfig, str, os.PathLike)):
        raise ConfigError(f"config={config!r} is not a configuration: pass the name of a file, or a BrokerConfig")
    if isinstance(config, (str, os.PathLike)):
        return BrokerConfig(rules=read(config, properties=properties).rules)
    if properties is not None:
        raise ConfigError("properties are the values of placeholders in a file: pass its name as config= too")
    return BrokerConfig() if config is None else config


def _queue_name(name: Destination | str) -> str:
    if isinstance(name, str) and name.startswith(TEMPORARY):
        return name
    wanted = parse(name)
    if isinstance(wanted, Topic):
        raise InvalidDestinationError(f"{wanted}: a topic holds no messages; pass a queue, or see subscriptions()")
    return wanted.name


def _milliseconds(name: str, value: float | timedelta | None) -> int:
    return 0 if value is None else to_ms(check_seconds(name, value))


def _path(store: object) -> Path:
    if not isinstance(store, (str, os.PathLike)) or not str(store):
        raise ConfigError(f"store={store!r} is not a file's name: pass a str or a Path, or None to keep nothing")
    return Path(os.fspath(store))


def _port(name: str, port: object) -> int:
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
        raise ConfigError(f"{name}={port!r} is not a port: pass 0 to 65535, or None to open none")
    return port


def _amqp_socket() -> ClientFactory:
    try:
        from redelivery.broker.servers.amqp.socket import AmqpSocket
    except ModuleNotFoundError as error:
        if (lacks := lacks_proton(error)) is None:
            raise
        raise ConfigError(f"amqp_port: the embedded broker needs {lacks}") from error
    return AmqpSocket
