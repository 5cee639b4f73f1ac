"""Acknowledgements and sends over AMQP: when they leave, and together with what."""

from __future__ import annotations

import threading

import pytest
from tests.transports.amqp_peer import PeerEnd, ScriptedPeer
from tests.transports.amqp_sessions import Client, with_messages
from tests.transports.scripted import TIMEOUT, text

from redelivery.model.errors import IllegalStateError
from redelivery.transports.seam import Pending
from redelivery.transports.wire.sockets import Stream


def test_an_acknowledgement_leaves_before_accept_returns() -> None:
    taken = threading.Event()

    def script(end: PeerEnd) -> None:
        for number in range(3):
            frame = end.take("disposition")
            assert frame["first"] == number
            assert frame["settled"]
            taken.set()

    with ScriptedPeer(with_messages(3, script)) as peer, Client(peer.port) as client:
        session = client.session()
        session.attach()
        deliveries = session.receive_many(3)
        for delivery in deliveries:
            done: list[None] = []
            session.channel.accept([delivery], batched=False, done=done)
            assert taken.wait(TIMEOUT)
            taken.clear()
            assert done


def test_acknowledgements_that_wait_for_company_leave_before_a_wait() -> None:
    def script(end: PeerEnd) -> None:
        end.log_in()
        link = end.attached()
        for number in range(1, 4):
            end.message(link, number)
        acknowledged: set[int] = set()
        while len(acknowledged) < 3:  # one for all, or more where this took milliseconds
            frame = end.take("disposition")
            assert frame["settled"]
            first, last = frame["first"], frame["last"]
            acknowledged.update(range(first, (first if last is None else last) + 1))
        end.message(link, 4)
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session()
        session.attach()
        deliveries = session.receive_many(3)
        for delivery in deliveries:
            session.channel.accept([delivery], batched=True)
        assert session.receive(TIMEOUT) is not None


def test_what_is_settled_already_is_refused_and_the_connection_goes_on() -> None:
    def script(end: PeerEnd) -> None:
        end.take("disposition")
        end.take("disposition")

    with ScriptedPeer(with_messages(2, script)) as peer, Client(peer.port) as client:
        session = client.session()
        session.attach()
        first, second = session.receive_many(2)
        session.channel.accept([first], batched=False)
        done: list[None] = []
        with pytest.raises(IllegalStateError):
            session.channel.accept([first], batched=False, done=done)
        assert not done
        session.channel.accept([second], batched=False)


def test_a_send_without_credit_leaves_when_there_is_some() -> None:
    asked = threading.Event()

    def script(end: PeerEnd) -> None:
        end.log_in()
        link = end.attached(credit=1)
        end.settle(end.take("transfer"))
        assert asked.wait(TIMEOUT)
        end.nothing()
        end.give(link, 5, 1)
        bodies = [end.settle(end.take("transfer")).payload[-2:] for _ in range(3)]
        assert bodies == [b"b2", b"b3", b"b4"]
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session()
        first = session.post(text("b1"))
        session.until(lambda: first.done)
        rest = [session.post(text(body)) for body in ("b2", "b3", "b4")]
        asked.set()
        session.until(lambda: all(each.done for each in rest))
        assert not any(each.error for each in rest)


@pytest.mark.parametrize("waiting", [False, True], ids=["nobody waits", "somebody waits"])
def test_batched_sends_leave_together(waiting: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    number = 30  # of 1 KiB, twice: more than leave together, once less

    def script(end: PeerEnd) -> None:
        end.log_in()
        end.attached()
        end.settle(end.take("transfer"))
        for each in [end.take("transfer") for _ in range(2 * number + 1)]:  # an answer would have the rest leave
            end.settle(each)
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session()
        first = session.post(text())
        session.until(lambda: first.done)
        protocol = session.channel._protocol  # type: ignore[attr-defined]  # nothing public tells
        send, writes = Stream.send, []

        def counted(stream: Stream, data: bytes | memoryview) -> int:
            writes.append(len(data))
            return send(stream, data)

        monkeypatch.setattr(Stream, "send", counted)
        monkeypatch.setattr(protocol._owner, "flush_soon", lambda: None)  # after milliseconds
        sends = [Pending(session.waiter if waiting else None) for _ in range(2 * number)]
        for pending in sends[:number]:
            session.channel.send(text("x" * 1024), transacted=False, pending=pending, batched=True)
        assert not writes
        protocol.flush_now()
        assert len(writes) == 1
        for pending in sends[number:]:
            session.channel.send(text("x" * 1024), transacted=False, pending=pending, batched=True)
        assert len(writes) == 1
        sends.append(Pending(session.waiter if waiting else None))
        session.channel.send(text("at once"), transacted=False, pending=sends[-1])
        assert len(writes) == 2
        session.until(lambda: all(each.done for each in sends))
        assert not any(each.error for each in sends)


def test_what_the_system_does_not_take_at_once_arrives_whole_and_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    body, number = "x" * 60_000, 300  # more than the two sockets hold
    full = threading.Event()

    def script(end: PeerEnd) -> None:
        end.log_in()
        end.attached()
        assert full.wait(TIMEOUT)
        for each in range(number):
            assert end.settle(end.take("transfer")).payload.endswith(b"%06d%b" % (each, body.encode()))
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session()
        protocol = session.channel._protocol  # type: ignore[attr-defined]  # nothing public tells
        drain = protocol.drain

        def waits() -> bool:
            full.set()
            waited: bool = drain()
            return waited

        monkeypatch.setattr(protocol, "drain", waits)
        sends = [Pending() for _ in range(number)]
        for each, pending in enumerate(sends):
            session.channel.send(text(f"{each:06}{body}"), transacted=False, pending=pending, batched=True)
        full.set()  # where another thread wrote what did not leave at once
        session.until(lambda: all(each.done for each in sends))
        assert not any(each.error for each in sends)
