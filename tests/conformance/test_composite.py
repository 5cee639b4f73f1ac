"""Composite destinations of a send, as ActiveMQ has them: each part gets the message"""

from __future__ import annotations

import pytest
from tests.conformance.stage import Stage, nothing_comes, receive

from redelivery import AckMode, InvalidDestinationError, Queue, SecurityError, Topic, UnsupportedError


@pytest.mark.needs("composite destinations", refused=UnsupportedError)
def test_a_send_to_a_composite_destination_reaches_each_of_them(stage: Stage) -> None:
    one, other = f"{stage.queue}.1", f"{stage.queue}.2"
    session = stage.session(AckMode.AUTO)
    session.producer(f"{one},{other}").send("to both")
    for name in (one, other):
        message = receive(session.consumer(name))
        assert (message.body, message.destination, message.dead_letter) == ("to both", Queue(name), None)


@pytest.mark.needs("composite destinations", refused=UnsupportedError)
def test_topics_can_be_composite_too(stage: Stage) -> None:
    topics = [Topic(f"{stage.queue}.{number}") for number in (1, 2)]
    session = stage.session(AckMode.AUTO)
    producer = session.producer(f"{topics[0]},{topics[1].name}")
    if not stage.pair.can("composite destinations"):
        producer.send("refused")
    consumers = [session.consumer(topic) for topic in topics]
    producer.send("news")
    for topic, consumer in zip(topics, consumers, strict=True):
        message = receive(consumer)
        assert (message.body, message.destination, message.dead_letter) == ("news", topic, None)


@pytest.mark.needs("composite destinations", refused=UnsupportedError)
@pytest.mark.needs("composites of queues and topics", refused=SecurityError)
def test_queues_and_topics_together(stage: Stage) -> None:
    topic = Topic(f"{stage.queue}.t")
    session = stage.session(AckMode.AUTO)
    producer = session.producer(f"{stage.queue},{topic}")
    if not stage.pair.can("composite destinations"):
        producer.send("refused")
    subscriber = session.consumer(topic)
    producer.send("to both")
    assert [receive(each).body for each in (subscriber, session.consumer(stage.queue))] == ["to both", "to both"]


@pytest.mark.needs("composite destinations", refused=UnsupportedError)
def test_in_a_transaction_all_of_them_get_it_or_none(stage: Stage) -> None:
    both = f"{stage.queue},{stage.queue}.2"
    session = stage.session(AckMode.TRANSACTED)
    producer = session.producer()
    producer.send("undone", both)
    session.rollback()
    producer.send("done", both)
    session.commit()
    consumers = [session.consumer(name) for name in both.split(",")]
    assert [receive(consumer).body for consumer in consumers] == ["done", "done"]
    session.commit()
    assert all(nothing_comes(consumer) for consumer in consumers)


@pytest.mark.parametrize("destination", ["a,", "a,,b", "a,b.>", "a,other://b"])
def test_each_part_must_be_a_destination(stage: Stage, destination: str) -> None:
    producer = stage.session(AckMode.AUTO).producer()
    with pytest.raises(InvalidDestinationError):
        producer.send("x", destination)
