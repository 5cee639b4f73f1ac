"""The rules of the STOMP transport on a real ActiveMQ Classic."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from tests.transports.live import Place, bodies, held, numbers
from tests.transports.scripted import TIMEOUT

from redelivery import AckMode
from redelivery.model import errors
from redelivery.testing.brokers.real import RealBroker


@pytest.fixture
def place(activemq: RealBroker) -> Iterator[Place]:
    with ExitStack() as opened:
        yield Place(activemq.stomp_url, opened)


def test_native_poison_is_in_the_dead_letter_queue_at_once(place: Place) -> None:
    queue = f"individual.{place.queue}"
    place.fill(*numbers(3), queue=queue)
    session = place.client().session(AckMode.TRANSACTED)
    session.attach(queue, window=2)
    first, second = held(session, 2)
    session.do(session.channel.rollback())
    session.channel.dispatched(first)
    session.do(session.channel.poison(second, "why", None))
    session.do(session.channel.commit([first]))
    assert bodies(place.left(f"DLQ.{queue}", at_least=1)) == ["1"]
    session.do(session.channel.close())
    assert bodies(place.left(queue, at_least=1)) == ["2"]


def test_batched_acknowledgements_leave_by_themselves(place: Place) -> None:
    place.fill(*numbers(5))
    session = place.client().session(AckMode.INDIVIDUAL)
    session.attach(place.queue, window=1)
    for _ in range(5):  # each comes only after the one before was acknowledged
        session.channel.accept([session.receive()], batched=True)
    session.do(session.channel.close())
    assert place.left() == []


def test_a_second_acknowledgement_is_reported_and_harms_nobody(place: Place) -> None:
    place.fill(*numbers(2))
    client = place.client()
    session = client.session()
    session.attach(place.queue)
    first, second = session.receive_many(2)
    session.channel.accept([first], batched=False)
    session.channel.accept([first], batched=False)
    session.channel.accept([second], batched=False)
    session.do(session.channel.close())
    assert client.error_event.wait(TIMEOUT)
    assert "Unexpected ACK" in str(client.errors[0])
    assert client.lost == []


def test_a_commit_of_one_delivery_is_its_ack_and_a_refused_one_is_rolled_back(place: Place) -> None:
    place.fill(*numbers(2))
    client = place.client()
    session = client.session(AckMode.TRANSACTED)
    session.attach(place.queue)
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
    assert len(place.left()) in (0, 1)
