"""An AMQP client on proton's engine that does exactly what a test tells it to; every wait is bounded."""

from __future__ import annotations

import socket
from collections.abc import Callable
from itertools import count
from typing import Any, Self
from urllib.parse import urlsplit

import proton
from cproton_ffi import lib
from proton import Delivery, Described, Link, Terminus, symbol, ulong

from redelivery.transports.wire.clock import monotonic

TIMEOUT = 20.0  # seconds
ACCEPTED, REJECTED, RELEASED, MODIFIED, DECLARED, TRANSACTIONAL = 0x24, 0x25, 0x26, 0x27, 0x33, 0x34
_names = count(1)


class Refused(Exception):
    """What the broker has said no with."""

    def __init__(self, condition: Any) -> None:
        self.condition: str = condition.name if condition else ""
        self.description: str = (condition.description if condition else None) or ""
        self.info = condition.info if condition else None
        super().__init__(f"{self.condition}: {self.description}")


class Peer:
    """One connection. ``sasl``: the mechanisms to try, None for no SASL at all."""

    def __init__(
        self,
        url: str,
        *,
        connect: bool = True,
        container: str | None = None,
        desired: list[str] | None = None,
        sasl: str | None = "ANONYMOUS",
        user: str | None = None,
        password: str | None = None,
        idle: float = 0,
        max_frame: int = 0,
        receive_buffer: int | None = None,
    ) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        self.socket = socket.socket()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(TIMEOUT)
        try:
            self.socket.connect((parts.hostname, parts.port))
        except OSError:
            self.socket.close()
            raise
        self.transport = proton.Transport(proton.Transport.CLIENT)
        self.connection: Any = proton.Connection()
        self.connection.container = container or f"test-{next(_names)}"
        if desired:
            self.connection.desired_capabilities = proton.SymbolList(desired)
        if user is not None:
            self.connection.user, self.connection.password = user, password
        if sasl is not None:
            layer: Any = self.transport.sasl()
            layer.allow_insecure_mechs = True
            layer.allowed_mechs(sasl)
        if idle:
            self.transport.idle_timeout = idle
        if max_frame:
            self.transport.max_frame_size = max_frame
        self.collector = proton.Collector()
        self.connection.collect(self.collector)
        self.transport.bind(self.connection)
        self.received: list[tuple[Any, Any, bytes]] = []  # link, delivery and message, in order
        self.detached: set[str] = set()  # links by name
        self.aborted = 0  # deliveries
        self.eof = False
        self._part: dict[str, bytearray] = {}
        self._tags = count(1)
        self.connection.open()
        self.session: Any = self.connection.session()
        self.session.open()
        if connect:
            self.until(lambda: bool(self.connection.state & proton.Endpoint.REMOTE_ACTIVE))

    # the wire

    def flush(self) -> None:
        self.socket.settimeout(TIMEOUT)
        while (size := self.transport.pending()) > 0:
            data = self.transport.peek(min(size, 1 << 16))
            assert data is not None
            self.socket.sendall(data)
            self.transport.pop(len(data))

    def step(self, timeout: float = TIMEOUT) -> bool:
        """Write, then read once; False where nothing came in time."""
        self.transport.tick(monotonic())
        self.flush()
        self.socket.settimeout(timeout)
        try:
            data = self.socket.recv(1 << 16)
        except TimeoutError:
            return False
        except ConnectionResetError:
            data = b""
        if not data:
            self.eof = True
            return True
        while data:
            taken = min(len(data), self.transport.capacity())
            if taken <= 0:
                break
            self.transport.push(data[:taken])
            data = data[taken:]
        self._events()
        self.flush()
        return True

    def until(self, done: Callable[[], bool], timeout: float = TIMEOUT) -> None:
        end = monotonic() + timeout
        while not done():
            if self.connection.state & proton.Endpoint.REMOTE_CLOSED and self.connection.remote_condition:
                raise Refused(self.connection.remote_condition)
            assert not self.eof, "the broker has closed the connection"
            assert self.step(max(0.01, end - monotonic())), "nothing came in time"

    def closed(self) -> bool:
        """Whether the broker closes the connection; waits for it."""
        while not self.eof:
            assert self.step(), "the broker keeps the connection open"
        return True

    def quiet(self) -> bool:
        """Whether nothing more has come up to now: an exchange lies behind whatever the broker had to say."""
        self.flush()  # a begin would overtake transfers
        before = len(self.received)
        session = self.connection.session()
        session.open()
        self.until(lambda: bool(session.state & proton.Endpoint.REMOTE_ACTIVE))
        return len(self.received) == before

    def _events(self) -> None:
        while event := self.collector.peek():
            if event.type is proton.Event.LINK_REMOTE_DETACH:
                self.detached.add(event.link.name)
            elif event.type is proton.Event.DELIVERY and event.link.is_receiver:
                self._take(event.link, event.delivery)
            self.collector.pop()

    def _take(self, link: Any, delivery: Any) -> None:
        if delivery.aborted:
            self.aborted += 1
            self._part.pop(link.name, None)
            delivery.settle()
            return
        if not delivery.readable:
            return
        part = self._part.setdefault(link.name, bytearray())
        part += link.recv(delivery.pending) or b""
        if not delivery.partial:
            link.advance()
            self.received.append((link, delivery, bytes(self._part.pop(link.name))))

    # links

    def attach(self, link: Any) -> Any:
        link.open()
        self.until(lambda: bool(link.state & (proton.Endpoint.REMOTE_ACTIVE | proton.Endpoint.REMOTE_CLOSED)))
        terminus = link.remote_source if link.is_receiver else link.remote_target
        if terminus.type == Terminus.UNSPECIFIED:
            self.until(lambda: bool(link.state & proton.Endpoint.REMOTE_CLOSED))
            raise Refused(link.remote_condition)
        return link

    def sender(self, address: str | None, *capabilities: str, dynamic: bool = False, settled: bool = False) -> Any:
        link: Any = self.session.sender(f"sender-{next(_names)}")
        link.target.address = address
        link.target.dynamic = dynamic
        _put(link.target.capabilities, capabilities)
        link.snd_settle_mode = Link.SND_SETTLED if settled else Link.SND_UNSETTLED
        self.attach(link)
        self.until(lambda: link.credit > 0)
        return link

    def receiver(
        self,
        address: str | None,
        *capabilities: str,
        credit: int = 10,
        dynamic: bool = False,
        settled: bool = False,
        browse: bool = False,
        filters: dict[str, Any] | None = None,
        name: str | None = None,
        set_up: Callable[[Any], None] | None = None,
    ) -> Any:
        link: Any = self.session.receiver(name or f"receiver-{next(_names)}")
        link.source.address = address
        link.source.dynamic = dynamic
        if browse:
            link.source.distribution_mode = Terminus.DIST_MODE_COPY
        _put(link.source.capabilities, capabilities)
        if filters:
            link.source.filter.put_dict({symbol(name): value for name, value in filters.items()})
        link.snd_settle_mode = Link.SND_SETTLED if settled else Link.SND_UNSETTLED
        if set_up is not None:
            set_up(link)
        self.attach(link)
        link.flow(credit)
        self.flush()
        return link

    def end(self, link: Any) -> None:
        link.close()
        self.until(lambda: bool(link.state & proton.Endpoint.REMOTE_CLOSED))

    def detach(self, link: Any) -> None:
        """End the link, and not what it stands for."""
        self.detached.discard(link.name)
        link.detach()
        self.until(lambda: link.name in self.detached)
        link.free()

    # messages

    def put(self, link: Any, message: Any, transaction: bytes | None = None) -> Any:
        """Hand over a message, or bytes; the delivery."""
        data = message if isinstance(message, bytes) else proton.Message(**_as_fields(message)).encode()
        delivery = link.delivery(f"t{next(self._tags)}")
        if transaction is not None:
            delivery.local.data = [transaction]
            delivery.update(TRANSACTIONAL)
        link.stream(data)
        link.advance()
        if link.snd_settle_mode == Link.SND_SETTLED:
            delivery.settle()
        return delivery

    def send(self, link: Any, *messages: Any, transaction: bytes | None = None) -> None:
        """Send, and wait for each outcome, which must be accepted."""
        for delivery in [self.put(link, message, transaction) for message in messages]:
            self.outcome(delivery, TRANSACTIONAL if transaction else ACCEPTED)

    def outcome(self, delivery: Any, expected: int) -> Any:
        self.until(lambda: bool(delivery.remote_state or delivery.settled))
        state, condition = delivery.remote_state, delivery.remote.condition
        data = delivery.remote.data if state in (DECLARED, TRANSACTIONAL) else None
        delivery.settle()
        if state == REJECTED != expected:
            raise Refused(condition)
        assert state == expected, hex(state)
        return condition if state == REJECTED else data

    def receive(self, number: int = 1) -> list[tuple[Any, proton.Message]]:
        """The next deliveries with their messages, in order."""
        self.until(lambda: len(self.received) >= number)
        taken, self.received = self.received[:number], self.received[number:]
        return [(delivery, decoded(data)) for _, delivery, data in taken]

    def one(self) -> tuple[Any, proton.Message]:
        return self.receive()[0]

    def settle(self, delivery: Any, state: int, *, failed: bool = False, undeliverable: bool = False) -> None:
        if state == MODIFIED:
            delivery.local.failed, delivery.local.undeliverable = failed, undeliverable
        delivery.update(state)
        delivery.settle()
        self.flush()

    def reject(self, delivery: Any, name: str, description: str) -> None:
        delivery.local.condition = proton.Condition(name, description)
        self.settle(delivery, REJECTED)

    # transactions

    def coordinator(self) -> Any:
        link: Any = self.session.sender(f"coordinator-{next(_names)}")
        link.target.type = Terminus.COORDINATOR
        self.attach(link)
        self.until(lambda: link.credit > 0)
        return link

    def declare(self, coordinator: Any) -> bytes:
        delivery = self.put(coordinator, {"body": Described(ulong(0x31), [None]), "inferred": True})
        return bytes(self.outcome(delivery, DECLARED)[0])

    def discharge(self, coordinator: Any, transaction: bytes, *, fail: bool = False) -> None:
        body = Described(ulong(0x32), [transaction, fail])
        self.outcome(self.put(coordinator, {"body": body, "inferred": True}), ACCEPTED)

    def enlist(self, delivery: Any, transaction: bytes, *, settled: bool, outcome: Any = None) -> None:
        # proton would append to what an earlier transaction left there
        lib.pn_data_clear(lib.pn_disposition_data(lib.pn_delivery_local(delivery._impl)))
        delivery.local.data = [transaction, outcome or Described(ulong(ACCEPTED), [])]
        delivery.update(TRANSACTIONAL)
        if settled:
            delivery.settle()
        self.flush()

    def bye(self) -> None:
        """Close, and wait for the broker's close."""
        self.connection.close()
        while not self.connection.state & proton.Endpoint.REMOTE_CLOSED and not self.eof:
            assert self.step()
        self.socket.close()

    def drop(self) -> None:
        """Close without a goodbye."""
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.drop()


def decoded(data: bytes) -> proton.Message:
    message = proton.Message()
    message.decode(data)
    return message


def _as_fields(message: Any) -> dict[str, Any]:
    return message if isinstance(message, dict) else {"body": message}


def _put(data: Any, capabilities: tuple[str, ...]) -> None:
    if capabilities:
        data.put_array(False, proton.Data.SYMBOL)
        data.enter()
        for each in capabilities:
            data.put_symbol(each)
        data.exit()


__all__ = ["ACCEPTED", "MODIFIED", "REJECTED", "RELEASED", "Delivery", "Peer", "Refused", "decoded"]
