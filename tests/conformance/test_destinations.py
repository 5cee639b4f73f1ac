"""Topics, wildcards, competing consumers, selectors, and names that are not to be had."""

from __future__ import annotations

import pytest
from tests.conformance.stage import Stage, bodies, nothing_comes, numbered, receive, receive_all

from redelivery import AckMode, ConfigError, InvalidDestinationError, Topic, UnsupportedError


def test_every_subscriber_of_a_topic_gets_each_message(stage: Stage) -> None:
    topic = Topic(stage.queue)
    consumers = [stage.session(AckMode.AUTO).consumer(topic) for _ in range(2)]
    producer = stage.session(AckMode.AUTO).producer(f"topic://{stage.queue}")
    for body in ("a", "b"):
        producer.send(body)
    for consumer in consumers:
        message = receive(consumer)
        assert (message.body, message.destination) == ("a", topic)
        assert receive(consumer).body == "b"


def test_each_consumer_of_a_topic_acknowledges_its_own_in_one_session_too(stage: Stage) -> None:
    session = stage.session(AckMode.CLIENT)
    consumers = [session.consumer(Topic(stage.queue)) for _ in range(2)]
    for number in range(12):  # more than a window of 10 KiB
        stage.send(f"{number} {'x' * 1000}", queue=f"topic://{stage.queue}")
    for number in range(12):
        assert [receive(each).body.split()[0] for each in consumers] == [str(number)] * 2
        session.acknowledge()


def test_topic_messages_are_redelivered_too(stage: Stage) -> None:
    session = stage.session(AckMode.TRANSACTED)
    consumer = session.consumer(Topic(stage.queue))
    stage.send("a", queue=f"topic://{stage.queue}")
    assert receive(consumer).delivery_count == 1
    session.rollback()
    message = receive(consumer)
    assert (message.body, message.delivery_count) == ("a", 2)
    session.commit()
    assert nothing_comes(consumer)


def test_topic_and_queue_of_one_name_are_two(stage: Stage) -> None:
    consumer = stage.session(AckMode.AUTO).consumer(Topic(stage.queue))
    stage.send("to the queue")
    assert nothing_comes(consumer)
    assert stage.left_bodies(at_least=1) == ["to the queue"]


@pytest.mark.needs("queue patterns", refused=UnsupportedError)
def test_wildcard_consumer_gets_from_every_queue_that_matches(stage: Stage) -> None:
    consumer = stage.session(AckMode.AUTO).consumer(f"{stage.queue}.>")
    for word in ("x", "y.z"):
        stage.send(word, queue=f"{stage.queue}.{word}")
    messages = receive_all(consumer, 2)
    assert {message.body: str(message.destination) for message in messages} == {
        "x": f"queue://{stage.queue}.x",
        "y.z": f"queue://{stage.queue}.y.z",
    }


@pytest.mark.needs("queue patterns", refused=UnsupportedError)
def test_wildcard_consumer_gets_the_backlog_of_every_queue(stage: Stage) -> None:
    for word in ("x", "y", "z"):
        stage.send(*numbered(30), queue=f"{stage.queue}.{word}")
    for _ in range(5):
        session = stage.session(AckMode.CLIENT)
        received = bodies(receive_all(session.consumer(f"{stage.queue}.*"), 90))
        assert sorted(received) == sorted([*numbered(30)] * 3)
        session.close()


def test_competing_consumers_get_each_message_once(stage: Stage) -> None:
    stage.send(*numbered(100))
    consumers = [stage.session(AckMode.AUTO).consumer(stage.queue, prefetch=1) for _ in range(3)]
    taken: list[str] = []
    while len(taken) < 100:
        for consumer in consumers:
            if (message := consumer.receive(timeout=0.05)) is not None:
                taken.append(message.body)
    assert sorted(taken) == numbered(100)
    assert all(nothing_comes(consumer) for consumer in consumers)


def test_selector_takes_what_it_wants_and_leaves_the_rest(stage: Stage) -> None:
    for colour in ("red", "blue", "red"):
        stage.send(colour, properties={"colour": colour})
    session = stage.session(AckMode.AUTO)
    if not stage.pair.can("selectors"):
        with pytest.raises(UnsupportedError, match="selectors"):
            session.consumer(stage.queue, selector="colour = 'red'")
        return
    consumer = session.consumer(stage.queue, selector="colour = 'red'")
    assert consumer.selector == "colour = 'red'"
    assert bodies(receive_all(consumer, 2)) == ["red", "red"]
    session.close()
    assert stage.left_bodies(at_least=1) == ["blue"]


@pytest.mark.everywhere_in_long_form
@pytest.mark.parametrize("name", ["", " ", "ftp://x"])
def test_bad_name_is_refused(stage: Stage, name: str) -> None:
    session = stage.session(AckMode.AUTO)
    with pytest.raises(InvalidDestinationError):
        session.consumer(name)
    with pytest.raises(InvalidDestinationError):
        session.producer(name)


@pytest.mark.everywhere_in_long_form
def test_bad_arguments_are_named(stage: Stage) -> None:
    session = stage.session(AckMode.AUTO)
    producer = session.producer(stage.queue)
    with pytest.raises(ConfigError, match="priority"):
        producer.send("a", priority=10)
    with pytest.raises(ConfigError, match="ttl"):
        producer.send("a", ttl=-1)
    with pytest.raises(ConfigError, match="prefetch"):
        session.consumer(stage.queue, prefetch=-1)
    assert stage.left() == []


def test_metadata_reports_who_answers(stage: Stage) -> None:
    metadata = stage.connect().metadata
    assert metadata.provider_name
    assert metadata.provider_version
    assert "JMSXDeliveryCount" in metadata.jmsx_property_names
    assert metadata.capabilities.transactions == stage.pair.can("transactions")
    assert metadata.capabilities.exact_counts == stage.pair.can("exact counts")
    assert metadata.capabilities.selectors == stage.pair.can("selectors")
    assert ("stream" in metadata.capabilities.body_kinds) == stage.pair.can("stream")


@pytest.mark.needs("selectors", refused=UnsupportedError)
def test_a_subscriber_of_a_topic_gets_what_it_selects(stage: Stage) -> None:
    session = stage.session(AckMode.AUTO)
    topic = f"topic://{stage.under('news')}"
    red, all_of_them = session.consumer(topic, selector="colour = 'red'"), session.consumer(topic)
    for body in "aAbB":
        session.producer(topic).send(body, properties={"colour": "red" if body.isupper() else "blue"})
    assert bodies(receive_all(all_of_them, 4)) == ["a", "A", "b", "B"]
    assert bodies(receive_all(red, 2)) == ["A", "B"]
    assert nothing_comes(red)
