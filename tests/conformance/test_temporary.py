"""Temporary destinations: the broker makes them, and removes them with the connection."""

from __future__ import annotations

from contextlib import suppress

import pytest
from tests.conformance.stage import Stage, nothing_comes, receive

from redelivery import AckMode, InvalidDestinationError, JMSError, TemporaryQueue, TemporaryTopic, UnsupportedError

pytestmark = pytest.mark.needs("temporary destinations", refused=UnsupportedError)


def test_a_reply_comes_by_a_temporary_queue(stage: Stage) -> None:
    asking, answering = stage.session(AckMode.AUTO), stage.session(AckMode.AUTO)
    replies = asking.temporary_queue()
    consumer = asking.consumer(replies)
    asking.producer(stage.queue).send("question", reply_to=replies)
    question = receive(answering.consumer(stage.queue))
    assert isinstance(question.reply_to, TemporaryQueue)
    answering.producer().send("answer", question.reply_to, correlation_id=question.message_id)
    answer = receive(consumer)
    assert (answer.body, answer.correlation_id) == ("answer", question.message_id)


def test_two_temporary_queues_are_two(stage: Stage) -> None:
    session = stage.session(AckMode.AUTO)
    one, other = session.temporary_queue(), session.temporary_queue()
    assert one != other
    session.producer(one).send("one")
    assert nothing_comes(session.consumer(other))
    assert receive(session.consumer(one)).body == "one"


@pytest.mark.needs("temporary topics", refused=UnsupportedError)
def test_a_temporary_topic_reaches_every_consumer(stage: Stage) -> None:
    session = stage.session(AckMode.AUTO)
    topic = session.temporary_topic()
    assert isinstance(topic, TemporaryTopic)
    consumers = [session.consumer(topic) for _ in range(2)]
    session.producer(topic).send("news")
    assert [receive(consumer).body for consumer in consumers] == ["news", "news"]


def test_only_its_own_connection_consumes_it(stage: Stage) -> None:
    session, other = stage.session(AckMode.AUTO), stage.session(AckMode.AUTO)
    queue = session.temporary_queue()
    with pytest.raises(InvalidDestinationError, match="only the connection that made it"):
        other.consumer(queue)
    if stage.pair.can("browsing"):
        with pytest.raises(InvalidDestinationError, match="only the connection that made it"):
            list(other.browser(queue))
    other.producer(queue).send("to its owner")
    assert receive(session.consumer(queue)).body == "to its owner"


def test_a_second_session_of_the_connection_consumes_it(stage: Stage) -> None:
    connection = stage.connect()
    with connection.session() as session, connection.session() as other:
        queue = session.temporary_queue()
        if stage.pair.kind.name == "stomp-activemq6":  # each session has a socket there: to it, another connection
            with pytest.raises(InvalidDestinationError, match="the session that made it is the one that consumes it"):
                other.consumer(queue)
            return
        consumer = other.consumer(queue)
        session.producer(queue).send("across", reply_to=queue)
        message = receive(consumer)
        assert (message.body, message.destination, message.reply_to) == ("across", queue, queue)


def test_what_is_sent_to_one_whose_connection_is_gone_is_not_delivered(stage: Stage) -> None:
    with stage.connect() as connection, connection.session() as session:
        queue = session.temporary_queue()
    session = stage.session(AckMode.AUTO)
    with suppress(InvalidDestinationError):  # some brokers accept it, and drop it
        session.producer(queue).send("late")
    session.producer(stage.queue).send("the session goes on")
    assert stage.left_bodies(at_least=1) == ["the session goes on"]


def test_a_temporary_queue_outlives_its_session_and_ends_with_its_connection(stage: Stage) -> None:
    connection = stage.connect()
    with connection.session() as session:
        queue = session.temporary_queue()
    with connection.session() as session:
        producer = session.producer(queue)
        producer.send("still there")
        assert receive(session.consumer(queue)).body == "still there"
        producer.send("left behind")
    connection.close()
    with suppress(JMSError):  # some brokers would make an empty queue of that name, others refuse
        assert nothing_comes(stage.session(AckMode.AUTO).consumer(queue))
