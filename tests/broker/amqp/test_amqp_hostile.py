"""What the AMQP server makes of clients that are broken, slow or ill-meaning: others never notice."""

from __future__ import annotations

import os
import random
import socket
import struct
from collections.abc import Iterator
from random import Random
from urllib.parse import urlsplit

import proton
import pytest
from tests.broker.amqp.amqp_client import ACCEPTED, Peer, Refused

from redelivery.broker import EmbeddedBroker
from redelivery.broker.servers.amqp.links.incoming import LARGEST
from redelivery.broker.servers.amqp.session import MOST_LINKS
from redelivery.broker.servers.amqp.socket import MAX_FRAME

_NOISE = Random(64).randbytes(64)  # noqa: S311  # the same in every process: its bytes are the names of tests

AMQP, SASL = b"AMQP\x00\x01\x00\x00", b"AMQP\x03\x01\x00\x00"


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker("amqp-hostile", amqp_port=0) as broker:
        yield broker
        with Peer(broker.amqp_url) as other:  # whatever happened, it serves the next one
            other.send(other.sender("after"), "x")
            assert broker.queue_depth("after") == 1


def raw(broker: EmbeddedBroker) -> socket.socket:
    port = urlsplit(broker.amqp_url).port
    assert port is not None
    return socket.create_connection(("127.0.0.1", port), 20)


def all_of(sock: socket.socket) -> bytes:
    """What the broker says up to its end."""
    said = b""
    try:
        while data := sock.recv(1 << 16):
            said += data
    except ConnectionResetError:
        pass
    return said


def frame(performative: bytes, channel: int = 0, kind: int = 0) -> bytes:
    return struct.pack(">IBBH", len(performative) + 8, 2, kind, channel) + performative


OPEN = frame(b"\x00\x53\x10\xc0\x04\x01\xa1\x01x")
BEGIN = frame(b"\x00\x53\x11\xc0\x07\x04\x40\x43\x52\x64\x52\x64")


@pytest.mark.parametrize(
    "data",
    [
        b"CONNECT\naccept-version:1.2\nhost:x\n\n\0",
        b"STOMP\n",
        b"GET / HTTP/1.1\r\nhost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
        b"\x00\x00\x01\x2f\x01ActiveMQ",
        b"AMQP\x00\x00\x09\x01",
        b"AMQP\x02\x01\x00\x00",
        b"A\x00",
        _NOISE.replace(b"A", b"B"),
    ],
)
def test_another_protocol_is_answered_with_the_one_that_is_spoken(broker: EmbeddedBroker, data: bytes) -> None:
    with raw(broker) as sock:
        sock.sendall(data)
        assert all_of(sock) == SASL


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff\xff\x02\x01\x00\x00",
        b"\x00\x00\x00\x00",
        frame(b"", kind=1),
        frame(b"\x00\x53\x41", kind=1),
        frame(b"\x00\x53\x41\x45", kind=1),
        frame(b"\x00\x53\x41\xc0\x02\x01\x40", kind=1),
        frame(b"\x00\x53\x43\xc0\x03\x01\xa0\x00", kind=1),
        frame(b"\x00\x53\x41\xc0\x0c\x01\xa3\x09ANONYMOUS", kind=0),
        frame(b"\x00\x53\x41\xc0\x0b\x01\xa3\x08EXTERNAL", kind=1),
        frame(b"\x00\x53\x41\xc0\x0e\x02\xa3\x05PLAIN\xa0\x03a\0b", kind=1),
        b"\x00\x00\x00\x09\xff\x01\x00\x00\x00",
        _NOISE,
    ],
)
def test_a_login_that_is_none_ends(broker: EmbeddedBroker, data: bytes) -> None:
    with raw(broker) as sock:
        sock.sendall(SASL + data)
        sock.shutdown(socket.SHUT_WR)
        assert all_of(sock).startswith(SASL)


def test_plain_may_come_in_two_steps_and_byte_by_byte(broker: EmbeddedBroker) -> None:
    first = SASL + frame(b"\x00\x53\x41\xc0\x08\x01\xa3\x05PLAIN", kind=1)
    with raw(broker) as sock:
        for byte in first + frame(b"\x00\x53\x43\xc0\x08\x01\xa0\x05\0a\0bc", kind=1):
            sock.sendall(bytes((byte,)))
        sock.sendall(AMQP + OPEN)
        said = b""
        while b"redelivery" not in said:
            said += sock.recv(4096)
    assert b"\x00\x53\x42" in said
    assert b"\x00\x53\x44\xc0\x03\x01\x50\x00" in said


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff\xff" + bytes(100),
        b"\x00\x00\x00\x04",
        struct.pack(">IBBH", MAX_FRAME + 1, 2, 0, 0) + bytes(100),
        frame(b"garbage"),
        frame(b"\x00\x53\x10\x45"),
        frame(b"\x00\x53\x99\x45"),
        OPEN + OPEN,
        OPEN + frame(b"\x00\x53\x14\xc0\x03\x01\x52\x05"),
        OPEN + BEGIN + frame(b"\x00\x53\x14\xc0\x03\x01\x52\x05"),
        OPEN + BEGIN + frame(b"\x00\x53\x12\x45"),
        OPEN + frame(b"\x00\x53\x11\x45", channel=65535),
        OPEN + BEGIN + frame(b"\x00\x53\x15" + b"\xc0\x04\x01" * 2000 + b"\x45"),
    ],
)
def test_frames_that_break_the_protocol_end_their_connection(broker: EmbeddedBroker, data: bytes) -> None:
    with raw(broker) as sock:
        sock.sendall(AMQP + data + os.urandom(32))
        sock.shutdown(socket.SHUT_WR)
        assert all_of(sock).startswith(AMQP)


def test_the_reason_is_said_in_a_close(broker: EmbeddedBroker) -> None:
    with raw(broker) as sock:
        sock.sendall(AMQP + OPEN + b"\xff\xff\xff\xff" + bytes(8 << 20))
        assert b"amqp:connection:framing-error" in all_of(sock)


@pytest.mark.parametrize("seed", range(40))
def test_a_session_with_broken_bytes_harms_nobody(broker: EmbeddedBroker, seed: int) -> None:
    """What a good client says, with bytes of it changed: attaches, filters, messages, outcomes, transactions."""
    recorded = recorded_session(broker)
    chance = random.Random(seed)  # noqa: S311  # for a test that can be repeated
    for _ in range(8):
        data = bytearray(recorded)
        for _ in range(chance.randint(1, 6)):
            data[chance.randrange(16, len(data))] = chance.choice((0, 0x40, 0x45, 0xC1, 0xFF, chance.randrange(256)))
        with raw(broker) as sock:
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
            all_of(sock)
    assert broker.core.connections <= 1


def recorded_session(broker: EmbeddedBroker) -> bytes:
    """All bytes of a client that uses everything."""
    said = bytearray()
    with Peer(broker.amqp_url, sasl=None, container="mé", desired=["sole-connection-for-container"]) as client:
        said += AMQP
        client.socket = Recorder(client.socket, said)  # type: ignore[assignment]  # it has what the client calls
        coordinator = client.coordinator()
        transaction = client.declare(coordinator)
        no_local = {"no-local": proton.Described(proton.ulong(0x0000468C00000003), [])}
        client.receiver("topic://t", "topic", filters=no_local)
        sender, receiver = client.sender("q", "queue"), client.receiver("q")
        client.send(sender, {"body": {"deep": [1]}, "properties": {"n": 1}, "durable": True, "ttl": 60, "id": "i"}, "b")
        client.send(client.sender(None), {"body": "m", "address": "queue://q"}, transaction=transaction)
        (first, _), (second, _) = client.receive(2)
        client.enlist(first, transaction, settled=True)
        client.reject(second, "my:poison", "why")
        client.discharge(coordinator, transaction)
        client.end(receiver)
        client.bye()
    opening = frame(b"\x00\x53\x10\xc0\x05\x01\xa1\x02m\xc3")
    return bytes(AMQP + opening + said[len(AMQP) :])


class Recorder:
    """A socket that keeps what is sent."""

    def __init__(self, sock: socket.socket, kept: bytearray) -> None:
        self._sock = sock
        self._kept = kept

    def sendall(self, data: bytes) -> None:
        self._kept += data
        self._sock.sendall(data)

    def __getattr__(self, name: str) -> object:
        return getattr(self._sock, name)


def test_a_message_that_never_ends_is_cut_off(broker: EmbeddedBroker) -> None:
    with Peer(broker.amqp_url) as client:
        sender = client.sender("q")
        delivery = sender.delivery("endless")
        part = bytes(1 << 20)
        for _ in range((LARGEST >> 20) + 8):
            sender.stream(part)
            client.flush()
            if sender.state & proton.Endpoint.REMOTE_CLOSED:
                break
            client.socket.settimeout(0.001)
            client.step(0.001)
        client.until(lambda: bool(sender.state & proton.Endpoint.REMOTE_CLOSED))
        assert sender.remote_condition.name == "amqp:link:message-size-exceeded"
        assert delivery.remote_state == 0
        client.send(client.sender("q"), "the session goes on")
    assert [message.body for message in broker.messages("q")] == ["the session goes on"]


def test_a_message_that_is_aborted_never_was(broker: EmbeddedBroker) -> None:
    with Peer(broker.amqp_url) as client:
        sender = client.sender("q")
        delivery = sender.delivery("aborted")
        sender.stream(bytes(1 << 20))
        client.flush()
        delivery.abort()
        client.send(sender, "whole")
    assert [message.body for message in broker.messages("q")] == ["whole"]


def test_a_connection_that_is_lost_within_a_message_leaves_nothing(broker: EmbeddedBroker) -> None:
    with Peer(broker.amqp_url) as client:
        sender = client.sender("q")
        sender.delivery("half")
        sender.stream(bytes(1 << 20))
        client.flush()
    assert broker.queue_depth("q") == 0


def test_a_client_that_reads_nothing_does_not_stop_the_others(broker: EmbeddedBroker) -> None:
    body = os.urandom(100_000)
    with Peer(broker.amqp_url, receive_buffer=4096) as slow, Peer(broker.amqp_url) as fast:
        slow.receiver("topic://t", credit=1000)
        assert slow.quiet()
        fast.receiver("topic://t", credit=1000)
        sender = fast.sender("topic://t")
        for _ in range(100):  # more than the system takes for the slow one
            fast.send(sender, {"body": body, "inferred": True})
            assert fast.one()[1].body == body
        assert [len(message.body) for _, message in slow.receive(100)] == [len(body)] * 100


@pytest.mark.short_form
def test_a_client_that_reads_no_answers_is_read_no_more(broker: EmbeddedBroker) -> None:
    """Its answers would otherwise pile up in the broker without a limit."""
    with raw(broker) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.sendall(AMQP + OPEN + BEGIN)
        sock.settimeout(2.0)
        with pytest.raises(TimeoutError):
            flood(sock)


def flood(sock: socket.socket) -> None:
    session = frame(b"\x00\x53\x11\xc0\x07\x04\x40\x43\x52\x64\x52\x64", channel=1) + frame(
        b"\x00\x53\x17\x45", channel=1
    )
    for _ in range(20_000):
        sock.sendall(session * 100)  # 2 million sessions, were they taken


def test_links_are_not_without_number(broker: EmbeddedBroker) -> None:
    with Peer(broker.amqp_url) as client:
        for number in range(MOST_LINKS + 1):
            client.session.sender(f"link-{number}").open()
        with pytest.raises(Refused, match="amqp:resource-limit-exceeded"):
            client.until(lambda: False)


def test_large_messages_pass_and_larger_ones_than_allowed_are_named(broker: EmbeddedBroker) -> None:
    body = os.urandom(1 << 20) * 16
    with Peer(broker.amqp_url) as client:
        sender = client.sender("q")
        assert sender.remote_max_message_size == LARGEST
        client.send(sender, {"body": body, "inferred": True})
        client.receiver("q")
        delivery, message = client.one()
        assert message.body == body
        client.settle(delivery, ACCEPTED)


def test_what_is_unsent_when_a_link_ends_is_not_counted(broker: EmbeddedBroker) -> None:
    body = os.urandom(1 << 20)
    with Peer(broker.amqp_url) as producer:
        sender = producer.sender("q")
        producer.send(sender, *({"body": body, "inferred": True} for _ in range(20)))
    with Peer(broker.amqp_url, receive_buffer=4096) as client:
        receiver = client.session.receiver("slow")
        receiver.source.address = "q"
        client.attach(receiver)
        receiver.flow(20)
        client.end(receiver)
        sent = len(client.received)
    with Peer(broker.amqp_url) as again:
        again.receiver("q", credit=20)
        counts = [message.delivery_count for _, message in again.receive(20)]
    counted = counts.count(1)
    assert sent <= counted < 20
    assert counts == [1] * counted + [0] * (20 - counted)


def test_fifty_clients_at_once(broker: EmbeddedBroker) -> None:
    clients = [Peer(broker.amqp_url) for _ in range(50)]
    for client in clients:
        client.receiver("topic://all")
    clients[0].send(clients[0].sender("topic://all"), "hello")
    for client in clients:
        assert client.one()[1].body == "hello"
        client.drop()


def test_addresses_with_broken_characters_are_refused(broker: EmbeddedBroker) -> None:
    source = b"\x00\x53\x28\xc0\x05\x01\xa1\x02\xff\xfe"
    target = b"\x00\x53\x29\x45"
    fields = b"\xa1\x01n\x43\x41\x40\x40" + source + target
    with raw(broker) as sock:
        attach = frame(b"\x00\x53\x12\xc0%c\x07%b" % (len(fields) + 1, fields))
        sock.sendall(AMQP + OPEN + BEGIN + attach + frame(b"\x00\x53\x18\x45"))
        sock.shutdown(socket.SHUT_WR)
        assert all_of(sock).startswith(AMQP)


def test_a_sender_past_its_credit_is_bounded_by_the_broker(broker: EmbeddedBroker) -> None:
    with Peer(broker.amqp_url) as client:
        sender = client.sender("q")
        for number in range(5000):  # proton keeps what there is no credit for
            client.put(sender, str(number))
        client.send(sender, "last")
    assert broker.queue_depth("q") == 5001


def test_what_is_refused_does_not_use_up_the_credit(broker: EmbeddedBroker) -> None:
    with Peer(broker.amqp_url) as client:
        sender = client.sender("q")
        for _ in range(1500):
            with pytest.raises(Refused):
                client.send(sender, b"\xff\xff")
        client.send(sender, "fine")
