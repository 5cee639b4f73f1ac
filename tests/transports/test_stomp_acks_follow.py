"""Where an ACK counts at once it follows the COMMIT of the sends: on the real Artemis, HornetQ and RabbitMQ."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from tests.run.again import may_hide
from tests.transports.live import Place, bodies, exhaust, until_committed
from tests.transports.scripted import TIMEOUT, text

from redelivery import AckMode, SharedDeadLetterStrategy
from redelivery.model.errors import InDoubtError
from redelivery.model.messages import Message

IN_DOUBT = {
    "artemis": "the sends are committed",
    "hornetq": "the sends are committed",
    "rabbitmq": "the sends (are committed|of the transaction were not all confirmed)",  # it confirms each, any time
}


@pytest.fixture(params=["artemis", "hornetq", "rabbitmq"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with ExitStack() as opened:
        yield Place(request.getfixturevalue(request.param).stomp_url, opened)


def test_sends_are_committed_and_then_the_deliveries_acknowledged(place: Place) -> None:
    out = place.name("out")
    _, session, delivery = place.holding()
    session.channel.send(text("sent", out), transacted=True, pending=None)
    session.do(session.channel.rollback())
    assert place.left(out) == []
    session.channel.send(text("sent", out), transacted=True, pending=None)
    session.do(session.channel.commit([delivery]))
    session.do(session.channel.close())
    assert (bodies(place.left(out, at_least=1)), place.left()) == (["sent"], [])


@may_hide
def test_a_crash_between_the_commit_and_the_acks_is_a_duplicate_never_a_loss(place: Place) -> None:
    out = place.name("out")
    client, session, delivery = place.holding()
    session.channel.send(text("sent", out), transacted=True, pending=None)
    flow = session.channel.commit([delivery])
    until_committed(client, session, flow)
    client.transport.abort()  # the COMMIT is confirmed, no ACK is written
    with pytest.raises(InDoubtError, match=IN_DOUBT[client.transport.peer.dialect]):
        flow.send(None)
    assert (bodies(place.left(out, at_least=1)), bodies(place.left(at_least=1))) == (["sent"], ["in"])


def test_poison_is_a_copy_and_then_the_ack(place: Place) -> None:
    place.fill("bad")
    target = place.name("dead")
    exhaust(place, 3, dead_letter_strategy=SharedDeadLetterStrategy(dead_letter_queue=target))
    (letter,) = place.left(target, at_least=1)
    assert letter.body() == "bad"
    assert letter.properties()["originalDestination"] == f"queue://{place.queue}"
    assert "ValueError: no" in str(letter.properties()["dlqDeliveryFailureCause"])
    assert place.left() == []


def test_what_a_frame_said_is_not_said_again(place: Place) -> None:
    """The broker keeps receipt, transaction and ack as properties; a SEND in a transaction never begun vanishes."""
    session = place.client().session(AckMode.TRANSACTED)
    session.channel.send(text(Message("x", properties={"own": "1"}), place.queue), transacted=True, pending=None)
    session.do(session.channel.commit([]))
    with place.connect() as connection, connection.session() as again:
        got = again.consumer(place.queue).receive(timeout=TIMEOUT)
        assert got is not None
        assert got.properties == {"own": "1"}
        again.producer(place.queue).send(got)
    assert bodies(place.left(at_least=1)) == ["x"]
