"""The rules of the STOMP transport on a real ActiveMQ Classic."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from tests.transports.live import bodies, held
from tests.transports.scripted import TIMEOUT, Client, text

from redelivery.model import errors
from redelivery.model.destinations import Queue
from redelivery.model.messages import Message
from redelivery.model.modes import AckMode
from redelivery.testing.brokers.real import RealBroker
from redelivery.transports.seam import Pending
from redelivery.transports.wire.clock import monotonic, utc_now

Connect = Any  # a function that opens a Client with the options given


@pytest.fixture
def connect(activemq: RealBroker) -> Iterator[Connect]:
    port = urlsplit(activemq.stomp_url).port
    assert port is not None
    clients: list[Client] = []

    def open_one(**options: Any) -> Client:
        clients.append(Client(port, **{"username": "admin", "password": "admin", "heartbeat": 10.0, **options}))
        return clients[-1]

    yield open_one
    for client in clients:
        client.close()


@pytest.fixture
def queue() -> str:
    return f"transport.{uuid4().hex}"


def fill(client: Client, queue: str, number: int) -> None:
    session = client.session()
    answers = [Pending(session.waiter) for _ in range(number)]
    for at, answer in enumerate(answers):
        session.channel.send(text(str(at), queue), transacted=False, pending=answer)
    for answer in answers:
        while not answer.done:
            client.transport.wait(session.waiter, TIMEOUT)
        assert answer.error is None


def left(connect: Connect, queue: str, *, at_least: int = 0, **options: Any) -> list[Any]:
    """What another consumer gets of a queue, in order; it takes nothing. ``at_least``: as many are waited for."""
    client: Client = connect()
    session = client.session()
    session.attach(queue, **options)
    found: list[Any] = []
    while (delivery := session.receive(TIMEOUT if len(found) < at_least else 0.5)) is not None:
        found.append(delivery)
    client.transport.abort()
    return found


def until_free(connect: Connect, client_id: str) -> None:
    """Until the broker knows that a connection is lost: who consumes before that may get what it held in any order."""
    until = monotonic() + TIMEOUT
    while True:
        try:
            connect(client_id=client_id).close()
        except errors.InvalidClientIDError:
            assert monotonic() < until
        else:
            return


@pytest.mark.parametrize(
    "body", ["tëxt \U0001f600", "", b"by\0tes", b"", None, {"a": 1, "t": "007", "f": 1.5, "n": None, "y": True}]
)
def test_a_body_comes_back_as_it_was_sent(connect: Connect, queue: str, body: object) -> None:
    session = connect().session()
    session.attach(queue)
    properties = {"plain": "v", "od:d\nname": "a\\b:c\r\n", "empty": "", "space": " x "}
    message = Message(body, properties=properties, correlation_id="c:1", reply_to="topic://r", type="ty")
    assert session.send(text(message, queue, priority=7)) is None
    got = Message.received(session.receive(), 0, None)
    assert (got.body, type(got.body)) == (body, type(body))
    assert got.properties == properties
    assert (got.correlation_id, str(got.reply_to), got.type, got.priority) == ("c:1", "topic://r", "ty", 7)
    assert (got.persistent, got.destination, got.redelivered) == (True, Queue(queue), False)


@pytest.mark.parametrize("mode", [AckMode.TRANSACTED, AckMode.CLIENT])
@pytest.mark.parametrize("number", [101, 201, 401, 1000])
def test_a_batch_larger_than_the_window_does_not_stall(
    connect: Connect, queue: str, mode: AckMode, number: int
) -> None:
    client = connect()
    fill(client, queue, number)
    session = client.session(mode)
    session.attach(queue)
    first = held(session, number)
    assert bodies(first) == [str(at) for at in range(number)]
    session.do(session.channel.rollback())
    for delivery in first:  # they are still ours: dispatched again, and committed
        session.channel.dispatched(delivery)
    session.do(session.channel.commit(first))
    session.do(session.channel.close())
    assert left(connect, queue) == []


def test_what_is_enlisted_comes_back_when_the_connection_drops(connect: Connect, queue: str) -> None:
    client = connect(client_id=queue)
    fill(client, queue, 120)
    session = client.session(AckMode.TRANSACTED)
    session.attach(queue)
    held(session, 120)
    client.transport.abort()
    until_free(connect, queue)
    again = left(connect, queue, window=500, at_least=120)
    assert bodies(again) == [str(at) for at in range(120)]
    assert {each.wire_count() for each in again} == {2}


def test_sends_and_acks_are_one(connect: Connect, queue: str) -> None:
    client = connect()
    fill(client, queue, 1)
    session = client.session(AckMode.TRANSACTED)
    session.attach(queue)
    (delivery,) = held(session, 1)
    session.channel.send(text("sent", queue + ".out"), transacted=True, pending=None)
    session.do(session.channel.rollback())
    assert left(connect, queue + ".out") == []
    session.channel.send(text("sent", queue + ".out"), transacted=True, pending=None)
    session.do(session.channel.commit([delivery]))
    session.do(session.channel.close())
    assert (bodies(left(connect, queue + ".out", at_least=1)), left(connect, queue)) == (["sent"], [])


def test_a_refused_send_commits_nothing(connect: Connect, queue: str) -> None:
    fill(connect(), queue, 1)
    session = connect(username="restricted", **{"password": "restricted"}).session(AckMode.TRANSACTED)
    session.attach(queue)
    (delivery,) = held(session, 1)
    session.channel.send(text("yes", f"allowed.{queue}"), transacted=True, pending=None)
    session.channel.send(text("no", queue), transacted=True, pending=None)
    session.channel.send(text("yes", f"allowed.{queue}"), transacted=True, pending=None)
    with pytest.raises(errors.TransactionRolledBackError) as caught:
        session.do(session.channel.commit([delivery]))
    assert isinstance(caught.value.__cause__, errors.SecurityError)
    assert left(connect, f"allowed.{queue}") == []
    session.do(session.channel.commit([delivery]))  # still ours
    session.do(session.channel.close())
    assert left(connect, queue) == []


def test_native_poison_is_in_the_dead_letter_queue_at_once(connect: Connect, queue: str) -> None:
    queue = f"individual.{queue}"
    client = connect()
    fill(client, queue, 3)
    session = client.session(AckMode.TRANSACTED)
    session.attach(queue, window=2)
    first, second = held(session, 2)
    session.do(session.channel.rollback())
    session.channel.dispatched(first)
    session.do(session.channel.poison(second, "why", None))
    session.do(session.channel.commit([first]))
    assert bodies(left(connect, f"DLQ.{queue}", at_least=1)) == ["1"]
    session.do(session.channel.close())
    assert bodies(left(connect, queue, at_least=1)) == ["2"]


def test_a_dead_letter_with_its_cause_and_the_ack_are_one(connect: Connect, queue: str) -> None:
    client = connect()
    fill(client, queue, 2)
    session = client.session()
    session.attach(queue)
    first, second = session.receive_many(2)
    copy = text(Message(first.body(), properties={"dlqDeliveryFailureCause": "why\nso"}), f"{queue}.dead")
    session.do(session.channel.poison(first, "why", copy))
    (dead,) = left(connect, f"{queue}.dead", at_least=1)
    assert dead.properties() == {"dlqDeliveryFailureCause": "why\nso"}
    session.do(session.channel.close())
    (other,) = left(connect, queue, at_least=1)
    assert other.header("message_id") == second.header("message_id")


def test_a_refused_dead_letter_leaves_the_message_where_it_was(connect: Connect, queue: str) -> None:
    fill(connect(), queue, 1)
    session = connect(username="restricted", **{"password": "restricted"}).session()
    session.attach(queue)
    delivery = session.receive()
    with pytest.raises(errors.SecurityError):
        session.do(session.channel.poison(delivery, "why", text("copy", f"{queue}.dead")))
    session.do(session.channel.close())
    assert len(left(connect, queue, at_least=1)) == 1


def test_parked_messages_do_not_stop_the_others_and_come_back_to_us(connect: Connect, queue: str) -> None:
    client = connect()
    fill(client, queue, 30)
    session = client.session(AckMode.TRANSACTED)
    session.attach(queue, window=4)
    parked: list[Any] = []
    for _ in range(30):
        delivery = session.receive()
        assert delivery is not None, f"no message after {len(parked)}"
        session.channel.park([delivery])
        parked.append(delivery)
    assert left(connect, queue) == []
    session.channel.unpark(parked)
    for delivery in parked:
        session.channel.dispatched(delivery)
    session.do(session.channel.commit(parked))
    session.do(session.channel.close())
    assert left(connect, queue) == []


def test_parked_messages_are_the_broker_s_again_when_the_session_ends(connect: Connect, queue: str) -> None:
    client = connect()
    fill(client, queue, 3)
    session = client.session(AckMode.TRANSACTED)
    session.attach(queue, window=1)
    session.channel.park([session.receive()])
    session.channel.park([session.receive()])
    session.do(session.channel.close())
    assert bodies(left(connect, queue, at_least=3)) == ["0", "1", "2"]


def test_batched_acknowledgements_leave_by_themselves(connect: Connect, queue: str) -> None:
    client = connect()
    fill(client, queue, 5)
    session = client.session(AckMode.INDIVIDUAL)
    session.attach(queue, window=1)
    for _ in range(5):  # each comes only after the one before was acknowledged
        session.channel.accept([session.receive()], batched=True)
    session.do(session.channel.close())
    assert left(connect, queue) == []


def test_a_second_acknowledgement_is_reported_and_harms_nobody(connect: Connect, queue: str) -> None:
    client = connect()
    fill(client, queue, 2)
    session = client.session()
    session.attach(queue)
    first, second = session.receive_many(2)
    session.channel.accept([first], batched=False)
    session.channel.accept([first], batched=False)
    session.channel.accept([second], batched=False)
    session.do(session.channel.close())
    assert client.error_event.wait(TIMEOUT)
    assert "Unexpected ACK" in str(client.errors[0])
    assert client.lost == []


def test_the_broker_s_refusals_are_errors_of_ours(connect: Connect, queue: str) -> None:
    session = connect(client_id=queue).session()
    with pytest.raises(errors.InvalidSelectorError):
        session.attach(queue, selector="a = = b")
    with pytest.raises(errors.InvalidClientIDError):
        connect(client_id=queue)
    with pytest.raises(errors.SecurityError):
        connect(**{"password": "wrong"})
    refused = connect(username="restricted", **{"password": "restricted"}).session()
    assert isinstance(refused.send(text("x", queue)), errors.SecurityError)


def test_a_selector_and_no_local_are_the_broker_s(connect: Connect, queue: str) -> None:
    session = connect().session()
    session.attach(queue, selector="colour = 'red'")
    for colour in ("blue", "red"):
        assert session.send(text(Message(colour, properties={"colour": colour}), queue)) is None
    assert session.receive().body() == "red"
    assert session.receive(0.3) is None


def test_a_delayed_message_comes_later(connect: Connect, queue: str) -> None:
    session = connect().session()
    session.attach(queue)
    assert session.send(text("later", queue, delivery_time=utc_now() + timedelta(seconds=0.5))) is None
    began = monotonic()
    delivery = session.receive()
    assert monotonic() - began > 0.3
    assert delivery.properties() == {}


def test_confirmations_come_to_callbacks_though_nobody_reads(connect: Connect, queue: str) -> None:
    session = connect().session()
    answers: list[errors.JMSError | None] = []
    done = threading.Event()

    def answered(pending: Pending) -> None:
        answers.append(pending.error)
        if len(answers) == 200:
            done.set()

    for _ in range(200):
        session.channel.send(text("x", queue), transacted=False, pending=Pending(on_done=answered), batched=True)
    assert done.wait(TIMEOUT)
    assert set(answers) == {None}


def test_a_large_body_survives(connect: Connect, queue: str) -> None:
    session = connect().session()
    session.attach(queue)
    for body in (bytes(range(256)) * (4 << 12), "é" * (2 << 20)):
        assert session.send(text(body, queue)) is None
        delivery = session.receive(30)
        assert delivery.body() == body
        session.channel.accept([delivery], batched=False)


def test_a_commit_of_one_delivery_is_its_ack_and_a_refused_one_is_rolled_back(connect: Connect, queue: str) -> None:
    client = connect()
    fill(client, queue, 2)
    session = client.session(AckMode.TRANSACTED)
    session.attach(queue)
    first, second = held(session, 2)
    session.do(session.channel.commit([first]))
    with pytest.raises(errors.TransactionRolledBackError, match="Unexpected ACK received"):
        session.do(session.channel.commit([first]))
    flow = session.channel.commit([second])
    next(flow)  # the ACK is written
    client.transport.abort()
    with pytest.raises(errors.InDoubtError) as caught:
        flow.send(None)
    assert caught.value.transaction_id is None
    assert len(left(connect, queue)) in (0, 1)


def test_a_commit_whose_answer_is_cut_off_happened_or_did_not(connect: Connect, queue: str) -> None:
    client = connect()
    fill(client, queue, 2)
    session = client.session(AckMode.TRANSACTED)
    session.attach(queue)
    flow = session.channel.commit(held(session, 2))
    next(flow)  # COMMIT is written
    client.transport.abort()
    with pytest.raises(errors.InDoubtError) as caught:
        flow.send(None)
    assert caught.value.transaction_id
    assert len(left(connect, queue)) in (0, 2)
