"""A STOMP broker on a port that is asked in AMQP, and the other way round: named, also where it says nothing."""

from __future__ import annotations

import socket
import threading

import pytest
from tests.transports import amqp_sessions, scripted
from tests.transports.scripted import TIMEOUT

from redelivery.model.errors import ConnectError, ProtocolError
from redelivery.testing.brokers.real import RealBroker
from redelivery.transports.seam import Flow
from redelivery.transports.wire import peek
from redelivery.transports.wire.clock import monotonic
from redelivery.transports.wire.peek import AMQP_HELLO, STOMP_HELLO, answers_in
from redelivery.transports.wire.threads.opening import fulfil

CLIENTS = {"amqp": amqp_sessions.Client, "stomp": scripted.Client}
BROKERS = ["activemq", "artemis", "rabbitmq", "hornetq"]


class Silent:
    """A port that says nothing to what is not its own, as Artemis does."""

    def __init__(self, own: bytes, answer: bytes) -> None:
        self.own, self.answer = own, answer
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        self._open: list[socket.socket] = []

    def _serve(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            sock.settimeout(TIMEOUT)
            self._open.append(sock)
            if sock.recv(1000) == self.own:
                sock.sendall(self.answer)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(TIMEOUT)
        for sock in self._open:
            sock.close()


@pytest.mark.parametrize(
    ("scheme", "own", "answer", "named"),
    [
        (
            "amqp",
            STOMP_HELLO,
            b"CONNECTED\nversion:1.2\n\n\0",
            "does not speak AMQP 1.0, it speaks STOMP: use stomp://",
        ),
        ("amqp", STOMP_HELLO, b"ERROR\nmessage:no\n\n\0", "does not speak AMQP 1.0, it speaks STOMP: use stomp://"),
        ("stomp", AMQP_HELLO, b"AMQP\x03\x01\x00\x00", "does not speak STOMP, it speaks AMQP: use amqp://"),
    ],
)
def test_a_silent_port_of_the_other_protocol_is_named(scheme: str, own: bytes, answer: bytes, named: str) -> None:
    peer = Silent(own, answer)
    try:
        began = monotonic()
        with pytest.raises(ProtocolError, match=named):
            CLIENTS[scheme](peer.port, connect_timeout=0.3)
        assert monotonic() - began < 2
    finally:
        peer.close()


@pytest.mark.parametrize("scheme", ["amqp", "stomp"])
def test_a_port_that_is_silent_to_both_is_only_that(scheme: str) -> None:
    peer = Silent(b"neither", b"")
    try:
        with pytest.raises(ConnectError, match=r"did not answer.* within connect_timeout=0.3 s"):
            CLIENTS[scheme](peer.port, connect_timeout=0.3)
    finally:
        peer.close()


def test_a_port_where_nobody_listens_any_more_answers_in_nothing() -> None:
    peer = Silent(b"", b"")
    peer.close()
    said: list[str | None] = []

    def asking() -> Flow[None]:
        said.append((yield from answers_in("127.0.0.1", peer.port, STOMP_HELLO)))

    for wish in asking():
        fulfil(wish)  # type: ignore[arg-type]  # it waits for nothing else
    assert said == [None]


@pytest.mark.parametrize("broker", BROKERS)
@pytest.mark.parametrize(("scheme", "other"), [("amqp", "stomp"), ("stomp", "amqp")])
def test_a_real_broker_s_port_of_the_other_protocol_is_named(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, broker: str, scheme: str, other: str
) -> None:
    monkeypatch.setattr(peek, "_PATIENCE", 10.0)  # of a broker on a busy machine
    real: RealBroker = request.getfixturevalue(broker)
    url = getattr(real, f"{other}_url")
    port = int(url.rpartition(":")[2])
    with pytest.raises(ProtocolError, match=f"does not speak {scheme.upper()}.*{other.upper()}"):
        CLIENTS[scheme](port, connect_timeout=1.5)
