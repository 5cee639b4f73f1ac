"""A connection over a real socket: peers that fall silent, stop reading, talk nonsense; threads, fork and TLS."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.transports.scripted import SHARING, TIMEOUT, BrokerEnd, Client, ScriptedBroker, text

from redelivery.model.errors import ConnectionLostError, ProtocolError
from redelivery.model.modes import AckMode
from redelivery.transports.seam import Pending


def test_nonsense_in_the_middle_ends_the_connection() -> None:
    def script(end: BrokerEnd) -> None:
        end.log_in(SHARING)
        end.take("SEND")
        end.write(b"RECEIPT\n\n\0")
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        client.session().channel.send(text(), transacted=False, pending=None)
        with pytest.raises(ConnectionLostError, match="without the header receipt-id"):
            client.session().receive()
        assert len(client.lost) == 1


@pytest.mark.parametrize("frame", [b"SEND\ndestination:x\n\n\0", b"MESSAGE\nack:1\n\nx\0"])
def test_frames_that_no_server_sends_end_the_connection(frame: bytes) -> None:
    def script(end: BrokerEnd) -> None:
        end.log_in(SHARING)
        end.take("SEND")
        end.write(frame)
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        client.session().channel.send(text(), transacted=False, pending=None)
        with pytest.raises(ConnectionLostError):
            client.session().receive()


def test_nonsense_right_after_the_login_fails_the_opening() -> None:
    def script(end: BrokerEnd) -> None:
        end.take("CONNECT")
        end.write(b"CONNECTED\nversion:1.2\n\n\0MESSAGE\n\n\0")
        end.goodbye()

    with ScriptedBroker(script) as broker, pytest.raises(ProtocolError, match="without the header subscription"):
        Client(broker.port)


def test_a_body_beyond_the_limit_of_the_url_ends_the_connection() -> None:
    def script(end: BrokerEnd) -> None:
        end.log_in()
        end.message(end.subscribed(), 1, b"x" * 2000)
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port, params={"wireFormat.maxDataLength": "1000"}) as client:
        session = client.session()
        session.attach()
        with pytest.raises(ConnectionLostError, match="larger than 1000 bytes"):
            session.receive()


def test_two_full_pipes_do_not_wait_for_each_other() -> None:
    size = 48 << 20

    def script(end: BrokerEnd) -> None:
        end.log_in()
        subscription = end.subscribed()
        end.message(subscription, 1, b"y" * size)  # before it reads anything
        assert len(end.take("SEND").body) == size
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        session = client.session()
        session.attach()
        session.channel.send(text(b"x" * size), transacted=False, pending=None)
        assert len(session.receive().body()) == size


@pytest.mark.parametrize("waiting", [False, True], ids=["nobody waits", "somebody waits"])
def test_batched_sends_leave_together(waiting: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def script(end: BrokerEnd) -> None:
        end.log_in()
        for each in [end.take("SEND") for _ in range(3)]:
            end.answer(each)
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        session = client.session()
        outbox = session.channel._outbox  # type: ignore[attr-defined]  # nothing public tells
        later, kept = outbox.later, list[bytes]()

        def keep(data: bytes, done: list[None]) -> None:
            kept.append(data)
            later(data, done)

        monkeypatch.setattr(outbox, "later", keep)
        sends = [Pending(session.waiter if waiting else None) for _ in range(3)]
        for pending in sends[:2]:
            session.channel.send(text(), transacted=False, pending=pending, batched=True)
        assert len(kept) == 2
        session.channel.send(text("at once"), transacted=False, pending=sends[2])
        assert len(kept) == 2
        deadline = time.monotonic() + TIMEOUT
        while not all(each.done for each in sends):
            assert time.monotonic() < deadline, "no answer came"
            client.transport.wait(session.waiter, 0.05)
        assert not any(each.error for each in sends)


@pytest.mark.parametrize("batched", [True, False])
def test_a_large_flow_of_messages_and_acks(batched: bool) -> None:
    number = 3000
    got: list[str] = []

    def script(end: BrokerEnd) -> None:
        end.log_in()
        subscription = end.subscribed()
        for each in range(number):
            end.message(subscription, each, b"x" * (each % 300))
        got.extend(end.take("ACK").headers["id"] for _ in range(number))
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        session = client.session(AckMode.INDIVIDUAL)
        session.attach()
        for each in range(number):
            delivery = session.receive()
            assert (delivery.header("message_id"), len(delivery.body())) == (f"m{each}", each % 300)
            session.channel.accept([delivery], batched=batched)
    assert got == [f"a:{each}" for each in range(number)]


def test_sessions_share_a_connection_and_get_what_is_theirs(pool: ThreadPoolExecutor) -> None:
    rounds = 100

    def script(end: BrokerEnd) -> None:
        end.log_in(SHARING)
        ids = {}
        for _ in range(3):
            frame = end.answer(end.take("SUBSCRIBE"))
            ids[frame.headers["destination"]] = frame.headers["id"]
        for each in range(rounds):
            for name in ("/queue/0", "/queue/1", "/queue/2"):
                end.message(ids[name], each, name.encode())
        for _ in range(rounds * 3):
            end.take("ACK")
        end.goodbye()

    def consume(client: Client, name: str) -> None:
        session = client.session()
        session.attach(name)
        for each in range(rounds):
            delivery = session.receive()
            assert (delivery.body(), delivery.header("message_id")) == (f"/queue/{name}", f"m{each}")
            session.channel.accept([delivery], batched=each % 2 == 0)

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        for each in [pool.submit(consume, client, str(number)) for number in range(3)]:
            each.result(TIMEOUT)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool
