"""Sends over AMQP: links and the relay, credit that comes late or never, and what the broker says of a message."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

import pytest
from tests.transports.amqp_frames import ACCEPTED, MODIFIED, RELEASED, declared, rejected, state_name
from tests.transports.amqp_peer import PeerEnd, ScriptedPeer
from tests.transports.amqp_sessions import Client
from tests.transports.scripted import TIMEOUT, text

import redelivery
from redelivery.model.destinations import Topic
from redelivery.model.errors import InvalidDestinationError, JMSError, ResourceAllocationError, SecurityError
from redelivery.transports.seam import Pending

ARTEMIS = "apache-activemq-artemis"


def test_a_destination_gets_a_link_that_says_what_it_is() -> None:
    def script(end: PeerEnd) -> None:
        end.log_in(ARTEMIS)
        for kind, name in (("queue", "orders"), ("topic", "news")):
            link = end.attached()
            assert link["target"].value[0] == name
            assert kind in str(link["target"].value[6])
            assert (link["snd_settle_mode"], link["rcv_settle_mode"]) == (0, 0)
            end.settle(end.take("transfer"))
            end.settle(end.take("transfer"))
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session()
        for destination in ("orders", Topic("news")):
            for _ in range(2):
                assert session.send(text(destination=destination)) is None


@pytest.mark.parametrize("relay", [True, False])
def test_many_destinations_share_the_relay_where_there_is_one(relay: bool) -> None:
    number = 20
    addresses: list[str | None] = []

    def script(end: PeerEnd) -> None:
        end.log_in(ARTEMIS, offered=["ANONYMOUS-RELAY"] if relay else [])
        for _ in range(number):
            frame = end.take("attach", "transfer")
            if frame.name == "attach":
                end.confirm(frame)
                end.give(frame, 100)
                addresses.append(frame.address)
                frame = end.take("transfer")
            end.settle(frame)
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session()
        for each in range(number):
            assert session.send(text(destination=f"q{each}")) is None
    assert len(addresses) == (17 if relay else number)
    assert addresses.count(None) == relay


@pytest.mark.parametrize(
    ("state", "kind", "named"),
    [
        (rejected("amqp:resource-limit-exceeded", "queue is full"), ResourceAllocationError, "queue is full"),
        (rejected("amqp:unauthorized-access", "no"), SecurityError, "unauthorized-access: no"),
        (rejected("x:y"), JMSError, "x:y"),
        (rejected("amqp:not-allowed", "too big"), JMSError, "rejected: the broker says: amqp:not-allowed: too big"),
        (RELEASED, JMSError, "did not take the message: released: nobody wanted it, it was not stored"),
        (MODIFIED, JMSError, "did not take the message: modified: it could not be delivered, it was not stored"),
        (declared(b"t1"), JMSError, "did not take the message: declared"),
        (None, JMSError, "did not take the message: no outcome"),
    ],
)
def test_what_is_not_accepted_fails_the_send(state: Any, kind: type[JMSError], named: str) -> None:
    def script(end: PeerEnd) -> None:
        end.log_in()
        end.attached()
        for _ in range(2):
            end.settle(end.take("transfer"), state)
        end.settle(end.take("transfer"))
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session()
        error = session.send(text())
        assert type(error) is kind
        assert named in str(error)
        assert client.errors == []
        session.channel.send(text(), transacted=False, pending=None)  # nobody waits: then it is reported
        assert session.send(text()) is None
        assert client.error_event.wait(TIMEOUT)
        assert named in str(client.errors[0])
    assert state is None or state_name(state) in ("rejected", "released", "modified unchanged", "declared")


def test_an_outcome_that_is_not_settled_is_an_answer_and_settled_by_us() -> None:
    def script(end: PeerEnd) -> None:
        end.log_in()
        end.attached()
        frame = end.take("transfer")
        end.send("disposition", frame.channel, role=True, first=0, settled=False, state=ACCEPTED)
        settled = end.take("disposition")
        assert (settled["role"], settled["first"], settled["settled"]) == (False, 0, True)
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session()
        assert session.send(text()) is None
        session.receive(0.1)


def test_a_refused_destination_fails_its_sends_alone_and_can_be_tried_again() -> None:
    def script(end: PeerEnd) -> None:
        end.log_in(ARTEMIS)
        end.refuse(end.take("attach"), "amqp:unauthorized-access", "not to 'secret'")
        end.gone("detach")
        end.attached()
        end.settle(end.take("transfer"))
        end.attached()
        end.settle(end.take("transfer"))
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session()
        error = session.send(text(destination="secret"))
        assert isinstance(error, SecurityError)
        assert "queue://secret" in str(error)
        assert session.send(text(destination="orders")) is None
        assert session.send(text(destination="secret")) is None
        assert not session.ended


def test_a_link_that_the_broker_ends_fails_what_is_unanswered_and_the_next_send_makes_another() -> None:
    def script(end: PeerEnd) -> None:
        end.log_in(ARTEMIS)
        link = end.attached()
        end.settle(end.take("transfer"))
        end.take("transfer"), end.take("transfer")
        end.detach(link, "amqp:resource-deleted", "queue deleted")
        end.gone("detach")
        end.attached()
        end.settle(end.take("transfer"))
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session()
        pendings = [session.post(text()) for _ in range(3)]
        session.until(lambda: all(each.done for each in pendings))
        assert pendings[0].error is None
        assert [type(each.error) for each in pendings[1:]] == [InvalidDestinationError] * 2
        assert session.send(text()) is None


def test_messages_wait_for_credit_and_leave_in_order() -> None:
    bodies: list[object] = []
    go = threading.Event()

    def script(end: PeerEnd) -> None:
        end.log_in()
        link = end.attached(credit=0)
        go.wait(TIMEOUT)
        for number in range(10):
            end.give(link, 1, delivery_count=number)
            frame = end.take("transfer")
            bodies.append(frame.body)
            end.settle(frame)
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session()
        pendings = [session.post(text(f"{each}")) for each in range(10)]
        session.receive(0.1)
        assert not any(each.done for each in pendings)
        go.set()
        session.until(lambda: all(each.done for each in pendings))
    assert bodies == [f"{each}" for each in range(10)]


def test_a_broker_that_gives_no_credit_holds_the_application_back_for_a_while() -> None:
    def script(end: PeerEnd) -> None:
        end.log_in()
        end.attached(credit=0)
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port, request_timeout=0.3) as client:
        session = client.session()
        began = time.monotonic()
        sent = [session.post(text()) for _ in range(1000)]
        assert not session.channel.congested
        sent.append(session.post(text()))
        assert session.channel.congested
        with suppress(ResourceAllocationError):  # where the first 500 are given up no sooner than the last one
            session.do(session.channel.room())
        assert time.monotonic() - began > 0.29
        session.until(lambda: all(isinstance(each.error, ResourceAllocationError) for each in sent))


def test_an_asynchronous_send_is_held_back_and_one_without_a_confirmation_at_once() -> None:
    def script(end: PeerEnd) -> None:
        end.log_in()
        end.attached(credit=0)
        end.goodbye()

    with ScriptedPeer(script) as peer:
        connection = redelivery.connect(
            f"amqp://127.0.0.1:{peer.port}", request_timeout=0.3, close_timeout=0.3, heartbeat=0
        )
        with connection, connection.session() as session:
            producer = session.producer("orders", persistent=False)
            with pytest.raises(ResourceAllocationError, match="no credit: nothing was sent"):
                producer.send("x")
            futures = [producer.send_async("x") for _ in range(1000)]
            with suppress(ResourceAllocationError):  # as above
                futures.append(producer.send_async("x"))
            assert {type(each.exception(TIMEOUT)) for each in futures} == {ResourceAllocationError}


def test_credit_lets_the_application_go_on() -> None:
    number = 3000

    def script(end: PeerEnd) -> None:
        end.log_in()
        link = end.attached(credit=0)
        time.sleep(0.1)
        for each in range(0, number, 100):
            end.give(link, 100, delivery_count=each)
            for _ in range(100):
                end.settle(end.take("transfer"))
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session()
        answers: SimpleQueue[Pending] = SimpleQueue()
        for _ in range(number):
            session.channel.send(text(), transacted=False, pending=Pending(on_done=answers.put), batched=True)
            if session.channel.congested:
                session.do(session.channel.room())
        assert all(answers.get(timeout=TIMEOUT).error is None for _ in range(number))


def test_a_close_waits_for_the_answers_that_nobody_waits_for() -> None:
    """The end would leave them unanswered: messages that arrived were reported as failed, refused ones not as such."""

    def script(end: PeerEnd) -> None:
        end.log_in()
        end.attached()
        transfers = [end.take("transfer") for _ in range(3)]
        end.nothing()
        for frame, state in zip(transfers, (ACCEPTED, rejected("amqp:not-allowed", "no"), ACCEPTED), strict=True):
            end.settle(frame, state)
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session()
        for _ in range(3):
            session.channel.send(text(), transacted=False, pending=None)
        session.do(session.channel.close())
        assert ["no" in str(each) for each in client.errors] == [True]


def test_a_close_waits_no_longer_than_it_may() -> None:
    def script(end: PeerEnd) -> None:
        end.log_in()
        end.attached()
        end.take("transfer")
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session()
        session.channel.send(text(), transacted=False, pending=None)
        session.do(session.channel.close(), timeout=0.3)
        assert [str(each) for each in client.errors] == ["the session is closed"]


def test_an_interrupted_send_leaves_the_link_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    def script(end: PeerEnd) -> None:
        end.log_in()
        end.attached()
        for _ in range(2):
            end.settle(end.take("transfer"))
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session()
        calls: list[int] = []

        def interrupted(*_: object) -> None:
            calls.append(1)
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(client.transport, "wait", interrupted)  # as a signal would
            with pytest.raises(KeyboardInterrupt):
                session.send(text())
        assert session.send(text()) is None
        assert calls
