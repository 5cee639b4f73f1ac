"""The embedded broker: queues and topics in this process, by ``vm://`` and, if asked for, over STOMP and AMQP 1.0."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Final

from redelivery.broker import registry
from redelivery.broker.core import Core
from redelivery.broker.door import HOST, Door, Welcome
from redelivery.broker.engine.config import BrokerConfig
from redelivery.broker.engine.engine import Engine
from redelivery.broker.engine.holding import TEMPORARY
from redelivery.broker.faults import Faults
from redelivery.broker.stomp_socket import StompSocket
from redelivery.broker.views import StoredSource
from redelivery.model.destinations import Topic, destination
from redelivery.model.errors import ConfigError, IllegalStateError, InvalidDestinationError
from redelivery.model.messages import Message

_END: Final = 5.0  # seconds that a thread of ours is waited for at close


class EmbeddedBroker:
    """A broker in this process; a context manager. Nothing is kept after `close`.

    ``name``: what ``vm://name`` connects to; one broker of a name per process.
    ``stomp_port``: also listen for STOMP clients on 127.0.0.1; 0 takes a free port, None (default) opens none.
    ``amqp_port``: the same for AMQP 1.0 clients; needs the extra ``redelivery[amqp]``.
    ``config``: limits, users and dead-letter strategies.

    Raises:
        ConfigError: a bad name or port, or an AMQP port without the extra.
    """

    def __init__(
        self,
        name: str = "localhost",
        *,
        stomp_port: int | None = None,
        amqp_port: int | None = None,
        config: BrokerConfig | None = None,
    ) -> None:
        if not isinstance(name, str) or not name or not name.isprintable() or set(name) & set("/?#: "):
            raise ConfigError(f"name={name!r} is no broker's name: it must fit into a URL like vm://orders")
        self.name = name
        self.core = Core(name, config or BrokerConfig())
        self._doors: dict[str, Callable[[], Door]] = {}
        if stomp_port is not None:
            self._doors["stomp"] = partial(Door, self.core, "stomp", _port("stomp_port", stomp_port), 2, StompSocket)
        if amqp_port is not None:
            self._doors["amqp"] = partial(Door, self.core, "amqp", _port("amqp_port", amqp_port), 3, _amqp_socket())
        self._open: dict[str, Door] = {}
        self._state = "not started yet"

    @property
    def faults(self) -> Faults:
        """Faults that this broker makes on purpose."""
        return self.core.faults

    def start(self) -> EmbeddedBroker:
        """Start; entering the context does it too.

        Raises:
            ConfigError: a port cannot be had.
            IllegalStateError: it was started before, or another broker of that name runs in this process.
        """
        if self._state != "not started yet":
            raise IllegalStateError(f"the embedded broker {self.name!r} cannot be started: it is {self._state}")
        registry.register(self)
        try:
            for protocol, door in self._doors.items():
                self._open[protocol] = door()
        except ConfigError:
            registry.unregister(self)
            self._shut()
            raise
        self._state = "running"
        return self

    def close(self) -> None:
        """End the broker and every connection to it. Harmless twice."""
        if self._state == "closed":
            return
        self._state = "closed"
        registry.unregister(self)
        self._shut()
        self.core.close("close() was called", _END)

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
        """What `redelivery.connect` takes within this process."""
        return f"vm://{self.name}"

    @property
    def stomp_url(self) -> str:
        """Where STOMP clients connect to.

        Raises:
            IllegalStateError: no STOMP port was asked for, or the broker does not run.
        """
        return self._url("stomp")

    @property
    def amqp_url(self) -> str:
        """Where AMQP 1.0 clients connect to.

        Raises:
            IllegalStateError: no AMQP port was asked for, or the broker does not run.
        """
        return self._url("amqp")

    def queue_depth(self, name: str) -> int:
        """How many messages a queue holds: waiting or unacknowledged; delayed ones not yet.

        Raises:
            InvalidDestinationError: the name is a topic's; a topic holds nothing.
        """
        queue = _queue_name(name)
        return self.core.call(lambda engine, _now: engine.depth(queue))

    def messages(self, name: str) -> list[Message]:
        """What `queue_depth` counts, in order; nothing is taken. Each shows the count of its next delivery.

        Raises:
            InvalidDestinationError: as `queue_depth`.
        """
        queue = _queue_name(name)

        def look(engine: Engine, _now: int) -> list[Message]:
            return [
                Message.received(StoredSource(entry.message, entry.redeliveries + 1), 0, None)
                for entry in engine.entries(queue)
            ]

        return self.core.call(look)

    def _url(self, protocol: str) -> str:
        if protocol not in self._doors:
            raise IllegalStateError(
                f"the embedded broker {self.name!r} does not listen for {protocol.upper()}: it was made without"
                f" {protocol}_port; give {protocol}_port=0 for a free port"
            )
        if self._state != "running":
            raise IllegalStateError(
                f"the embedded broker {self.name!r} has no {protocol.upper()} port: it is {self._state}"
            )
        return f"{protocol}://{HOST}:{self._open[protocol].port}"

    def _shut(self) -> None:
        for door in self._open.values():
            door.close(_END)

    def __repr__(self) -> str:
        return f"<EmbeddedBroker {self.name!r} {self._state}>"


def _queue_name(name: str) -> str:
    if name.startswith(TEMPORARY):
        return name
    wanted = destination(name)
    if isinstance(wanted, Topic):
        raise InvalidDestinationError(f"{wanted}: a topic holds no messages; name a queue")
    return wanted.name


def _port(name: str, port: object) -> int:
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
        raise ConfigError(f"{name}={port!r} is no port; give 0 to 65535, or None to open none")
    return port


def _amqp_socket() -> Welcome:
    try:
        from redelivery.broker.amqp_socket import AmqpSocket
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("proton", "cproton", "cproton_ffi"):
            raise
        raise ConfigError(
            "amqp_port: the embedded broker speaks AMQP by python-qpid-proton, which is not installed;"
            " pip install 'redelivery[amqp]'"
        ) from error
    return AmqpSocket
