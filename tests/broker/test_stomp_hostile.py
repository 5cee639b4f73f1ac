"""What the STOMP server makes of clients that are broken, slow or ill-meaning: others never notice."""

from __future__ import annotations

import errno
import os
import socket
import threading
from collections.abc import Iterator

import pytest
from tests.broker.raw_stomp import Raw

from redelivery.broker import EmbeddedBroker


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker("stomp-hostile", stomp_port=0) as broker:
        yield broker
        with Raw(broker.stomp_url) as other:  # whatever happened, it serves the next one
            other.ok("SEND", b"x", destination="/queue/after")
            assert broker.queue_depth("after") == 1


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"GET / HTTP/1.1\r\nhost: x\r\n\r\n", "HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500), "TLS"),
        (b"\x00\x00\x01\x2f\x01ActiveMQ\x00\x00\x00\x0c" + bytes(300), "OpenWire"),
        (b"FOO\nreceipt:1\n\n\0", "does not speak STOMP"),
        (b"SEND\ndestination:/queue/q\n\nx\0", "before CONNECT"),
        (b"CONNECT\naccept-version:1.2\nheart-beat:often\n\n\0", "heart-beat"),
        (b"CONNECT\naccept-version:1.2\nno colon\n\n\0", "no colon"),
        (b"CONNECT\naccept-version:1.2\n\xff\xfe:x\n\n\0", "UTF-8"),
        (b"CONNECT\n" + b"x" * 300_000, "longer than"),
    ],
)
def test_what_is_not_a_handshake_gets_an_error_and_is_closed(broker: EmbeddedBroker, data: bytes, text: str) -> None:
    with Raw(broker.stomp_url, connect=False) as client:
        client.socket.sendall(data)
        assert text in client.next("ERROR").headers["message"]
        assert client.closed()


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"CONNECT\naccept-version:1.2\n\n\0", "Already connected"),
        (b"RECEIPT\nreceipt-id:1\n\n\0", "Unknown STOMP action: RECEIPT"),
        (b"SEND\ndestination:/queue/q\ncontent-length:abc\n\nx\0", "content-length"),
        (b"SEND\ndestination:/queue/q\ncontent-length:2\n\nabcdef\0", "content-length"),
        (b"SEND\ndestination:/queue/q\ncontent-length:999999999999\n\nx\0", "content-length"),
        (b"SEND\ndestination:/queue/q\nh:a\\qb\n\nx\0", "escape"),
        (b"SEND\ndestination:/queue/q\nh:" + b"v" * 11_000 + b"\n\nx\0", "maximum header length"),
        (b"SEND\ndestination:/queue/q\n" + b"".join(b"h%d:v\n" % n for n in range(1100)) + b"\nx\0", "maximum number"),
    ],
)
def test_what_breaks_the_protocol_gets_an_error_and_is_closed(broker: EmbeddedBroker, data: bytes, text: str) -> None:
    with Raw(broker.stomp_url) as client:
        client.socket.sendall(data)
        assert text in client.next("ERROR").headers["message"]
        assert client.closed()
    assert broker.queue_depth("q") == 0


def test_a_text_that_is_not_utf_8_is_refused(broker: EmbeddedBroker) -> None:
    with Raw(broker.stomp_url) as client:
        assert "not UTF-8" in client.call("SEND", b"\xff", destination="/queue/q").headers["message"]
        assert client.is_quiet()


def test_a_header_with_nul_reaches_nobody_as_a_broken_frame(broker: EmbeddedBroker) -> None:
    with Raw(broker.stomp_url) as client:
        client.socket.sendall(b"SEND\ndestination:/queue/q\nx:a\0b\ny:kept\n\nbody\0")
        client.subscribe()
        message = client.next()
        assert message.body == b"body"
        assert "x" not in message.headers
        assert message.headers["y"] == "kept"
        assert "transformation-error" in message.headers
        client.socket.sendall(b"ACK\nid:a\0b\nreceipt:r\0r\n\n\0")
        assert client.next("ERROR").headers["receipt-id"] == "r\0r"


def test_frames_may_come_byte_by_byte(broker: EmbeddedBroker) -> None:
    with Raw(broker.stomp_url) as client:
        for byte in b"\n\nSEND\r\ndestination:/queue/q\r\ncontent-length:3\r\n\r\na\0b\0\n":
            client.socket.sendall(bytes((byte,)))
        client.subscribe()
        assert client.next().body == b"a\0b"


def test_a_client_that_reads_nothing_does_not_stop_the_others(broker: EmbeddedBroker) -> None:
    body = os.urandom(100_000)
    with Raw(broker.stomp_url, receive_buffer=4096) as slow, Raw(broker.stomp_url) as fast:
        slow.say("SUBSCRIBE", {"destination": "/topic/t", "id": "s", "ack": "auto"})
        assert slow.is_quiet()
        fast.subscribe("/topic/t", "auto")
        for _ in range(200):
            fast.ok("SEND", body, destination="/topic/t", **{"content-length": str(len(body))})
            assert fast.next().body == body
        slow.socket.settimeout(30)
        assert [len(slow.next().body) for _ in range(200)] == [len(body)] * 200


def test_a_client_that_reads_no_answers_is_read_no_more(broker: EmbeddedBroker) -> None:
    """Its receipts would otherwise pile up in the broker without a limit."""
    frame = b"BEGIN\ntransaction:t\nreceipt:" + b"r" * 9000 + b"\n\n\0ABORT\ntransaction:t\n\n\0"
    with Raw(broker.stomp_url, receive_buffer=4096) as client:
        stop = threading.Event()
        sent = 0

        def flood() -> None:
            nonlocal sent
            client.socket.settimeout(1.0)
            try:
                while not stop.is_set() and sent < 20_000:
                    client.socket.sendall(frame)
                    sent += 1
            except TimeoutError:
                stop.set()

        thread = threading.Thread(target=flood)
        thread.start()
        thread.join()
        assert stop.is_set(), "180 MB of answers were kept for a client that reads nothing"


def test_what_is_unwritten_at_unsubscribe_is_not_sent_any_more(broker: EmbeddedBroker) -> None:
    body = os.urandom(1 << 20)
    with Raw(broker.stomp_url) as producer:
        for _ in range(20):
            producer.ok("SEND", body, destination="/queue/q", **{"content-length": str(len(body))})
    with Raw(broker.stomp_url, receive_buffer=4096) as client:
        client.say("SUBSCRIBE", {"destination": "/queue/q", "id": "s", "ack": "client-individual"})
        client.say("UNSUBSCRIBE", {"id": "s", "receipt": "done"})
        client.say("BEGIN", {"transaction": "t", "receipt": "later"})
        sent = 0
        while client.take().command == "MESSAGE":  # type: ignore[union-attr]  # or it fails
            sent += 1
        assert client.next("RECEIPT").headers["receipt-id"] == "later"
    assert sent < 20
    with Raw(broker.stomp_url) as again:
        again.subscribe()
        flags = ["redelivered" in frame.headers for frame in again.messages(20)]
    assert flags == [True] * sent + [False] * (20 - sent)


def test_the_reason_reaches_a_client_that_goes_on_sending(broker: EmbeddedBroker) -> None:
    """Closing with unread input would reset the connection, and the ERROR would be lost."""
    with Raw(broker.stomp_url) as client:
        client.socket.sendall(b"FOO\n\n\0" + bytes(8 << 20))
        assert "does not speak STOMP" in client.next("ERROR").headers["message"]
        assert client.closed()


def test_a_silent_client_is_closed_and_one_that_sends_hears_the_broker(broker: EmbeddedBroker) -> None:
    with Raw(broker.stomp_url, heart_beat="100,100") as client:
        assert client.connected.headers["heart-beat"] == "100,100"
        client.subscribe()
        client.ok("SEND", b"x", destination="/queue/q")
        client.next()
        assert client.closed()
        assert client.beats >= 3
    assert broker.queue_depth("q") == 1


def test_a_connection_that_is_lost_in_the_middle_of_a_frame_gives_everything_back(broker: EmbeddedBroker) -> None:
    with Raw(broker.stomp_url) as client:
        client.ok("SEND", b"x", destination="/queue/q")
        client.subscribe()
        client.next()
        client.socket.sendall(b"ACK\nid:")
    with Raw(broker.stomp_url) as again:
        again.subscribe()
        assert again.next().headers["redelivered"] == "true"


def test_large_bodies_pass(broker: EmbeddedBroker) -> None:
    body = os.urandom(1 << 20) * 24
    with Raw(broker.stomp_url) as client:
        client.ok("SEND", body, destination="/queue/q", **{"content-length": str(len(body))})
        client.subscribe()
        assert client.next().body == body


def test_fifty_clients_at_once(broker: EmbeddedBroker) -> None:
    clients = [Raw(broker.stomp_url) for _ in range(50)]
    for client in clients:
        client.subscribe("/topic/all", "auto")
    clients[0].ok("SEND", b"hello", destination="/topic/all")
    for client in clients:
        assert client.next().body == b"hello"
        client.drop()


def test_a_heart_beat_of_every_millisecond_is_not_promised(broker: EmbeddedBroker) -> None:
    with Raw(broker.stomp_url, heart_beat="1,1") as client:
        assert client.connected.headers["heart-beat"] == "10,10"


def test_without_file_descriptors_clients_wait_and_are_served_later(
    broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    accept, refusals = socket.socket.accept, [OSError(errno.EMFILE, "Too many open files")] * 2

    def scarce(listener: socket.socket) -> tuple[socket.socket, object]:
        if refusals:
            raise refusals.pop()
        return accept(listener)

    monkeypatch.setattr(socket.socket, "accept", scarce)
    with Raw(broker.stomp_url) as client:
        assert client.is_quiet()
    assert [record.getMessage() for record in caplog.records] == [
        "broker stomp-hostile: no STOMP client can be accepted: [Errno 24] Too many open files"
    ] * 2
