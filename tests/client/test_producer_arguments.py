"""What a producer refuses, by name, and what it sets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.client.shell import SOON, Bench, receive

from redelivery import (
    AckMode,
    ConfigError,
    IllegalStateError,
    InvalidDestinationError,
    Message,
    MessageFormatError,
    Queue,
    Topic,
)

BAD = [
    ("priority", 10),
    ("priority", -1),
    ("priority", True),
    ("priority", "4"),
    ("priority", 4.0),
    ("persistent", 1),
    ("persistent", "yes"),
    ("ttl", -1),
    ("ttl", "10"),
    ("ttl", timedelta(seconds=-1)),
    ("ttl", float("nan")),
    ("delivery_delay", -0.5),
    ("delivery_delay", float("inf")),
]


@pytest.mark.parametrize(("name", "value"), BAD)
def test_a_bad_option_names_itself(bench: Bench, name: str, value: Any) -> None:
    session = bench.connect().session()
    with pytest.raises(ConfigError, match=f"{name}="):
        session.producer("q", **{name: value})
    producer = session.producer("q")
    for send in (producer.send, producer.send_async):
        with pytest.raises(ConfigError, match=f"{name}="):
            send("x", **{name: value})
    assert bench.broker.queue_depth("q") == 0


def test_an_unknown_keyword_is_pythons_own_error(bench: Bench) -> None:
    producer = bench.connect().session().producer("q")
    with pytest.raises(TypeError, match="time_to_live"):
        producer.send("x", time_to_live=5)  # type: ignore[call-arg]  # that is the test


@pytest.mark.parametrize(
    ("given", "meant"), [("headers", "properties"), ("expiration", "ttl"), ("prioriti", "priority")]
)
def test_an_unknown_keyword_says_which_one_was_meant(bench: Bench, given: str, meant: str) -> None:
    producer = bench.connect().session().producer("q")
    options: Any = {given: {}}
    for send in (producer.send, producer.send_async):
        with pytest.raises(TypeError, match=f"'{given}'; did you mean '{meant}'"):
            send("x", **options)


@pytest.mark.parametrize(
    "swapped", ["two chairs", '{"a":1}', "a\nb", "<order/>", b"bytes", {"a": 1}, ["a"], "x" * 9 + " y"]
)
def test_a_destination_that_looks_like_a_body_shows_the_right_order(bench: Bench, swapped: Any) -> None:
    session = bench.connect().session()
    for producer in (session.producer(), session.producer("orders")):
        for send in (producer.send, producer.send_async):
            with pytest.raises(InvalidDestinationError, match=r"the body comes first: send\(body, destination\)"):
                send("orders", swapped)
    with pytest.raises(InvalidDestinationError, match="the body comes first"):
        session.producer().send(Queue("orders"), "body")


def test_a_body_of_a_megabyte_in_the_wrong_place_is_not_repeated_in_the_error(bench: Bench) -> None:
    with pytest.raises(InvalidDestinationError) as caught:
        bench.connect().session().producer().send("orders", "secret " * 200_000)
    assert len(str(caught.value)) < 300


def test_a_queue_whose_name_has_a_space_is_named_by_its_class(bench: Bench) -> None:
    session = bench.connect().session()
    session.producer().send("x", Queue("two words"))
    assert receive(session.consumer(Queue("two words"))).destination == Queue("two words")


def test_a_second_body_says_that_the_destination_may_be_left_out(bench: Bench) -> None:
    with pytest.raises(IllegalStateError, match="sends to queue://orders only, not to queue://chairs: leave the dest"):
        bench.connect().session().producer("orders").send("orders", "chairs")


@pytest.mark.parametrize("body", [5, 1.5, object(), {1: "key"}, {"nested": {}}, [[1]], {"a": object()}, {1, 2}])
def test_a_body_that_jms_has_no_kind_for(bench: Bench, body: Any) -> None:
    with pytest.raises(MessageFormatError):
        bench.connect().session().producer("q").send(body)


@pytest.mark.parametrize("properties", [{"a": b"bytes"}, {"a": 1 << 63}, {"a": []}, {"": 1}, {5: 1}])
def test_a_property_that_jms_has_no_type_for(bench: Bench, properties: Any) -> None:
    with pytest.raises(MessageFormatError):
        bench.connect().session().producer("q").send("x", properties=properties)


class TestDestination:
    def test_none_at_all(self, bench: Bench) -> None:
        with pytest.raises(InvalidDestinationError, match="name one in send"):
            bench.connect().session().producer().send("x")

    def test_two_different_ones(self, bench: Bench) -> None:
        producer = bench.connect().session().producer("q")
        with pytest.raises(IllegalStateError, match="sends to queue://q only"):
            producer.send("x", "other")
        producer.send("x", "queue://q")

    @pytest.mark.parametrize("pattern", ["orders.>", "orders.*", "orders.#", "topic://>"])
    def test_a_pattern(self, bench: Bench, pattern: str) -> None:
        session = bench.connect().session()
        with pytest.raises(InvalidDestinationError, match="pattern"):
            session.producer(pattern)
        with pytest.raises(InvalidDestinationError, match="pattern"):
            session.producer().send("x", pattern)

    @pytest.mark.parametrize("name", ["", " q", "tcp://q", "q\0", 5])
    def test_no_name(self, bench: Bench, name: Any) -> None:
        session = bench.connect().session()
        with pytest.raises(InvalidDestinationError):
            session.producer(name)
        with pytest.raises(InvalidDestinationError):
            session.producer().send("x", name)

    def test_one_per_send(self, bench: Bench) -> None:
        producer = bench.connect().session().producer()
        assert producer.destination is None
        producer.send("a", "qa")
        producer.send("b", Queue("qb"))
        assert [bench.broker.queue_depth(name) for name in ("qa", "qb")] == [1, 1]


@pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.TRANSACTED], ids=lambda mode: mode.name)
def test_a_closed_producer(bench: Bench, mode: AckMode) -> None:
    producer = bench.connect().session(mode).producer("q")
    producer.close()
    producer.close()
    assert producer.closed
    with pytest.raises(IllegalStateError, match="the producer was closed"):
        producer.send("x")


def test_after_the_send_the_message_has_its_headers(bench: Bench) -> None:
    """JMS: what the application cannot set is overwritten and readable after send returns."""
    before = datetime.now(UTC)
    sent = bench.connect().session().producer("orders", priority=7, ttl=60).send("x", type="t", group_id="g")
    assert sent.destination == Queue("orders")
    assert (sent.priority, sent.persistent, sent.type, sent.group_id) == (7, True, "t", "g")
    assert sent.timestamp is not None
    assert before - timedelta(milliseconds=1) <= sent.timestamp <= datetime.now(UTC)
    assert sent.expiration == sent.timestamp + timedelta(seconds=60)
    assert sent.message_id


def test_a_send_overrides_its_producer(bench: Bench) -> None:
    producer = bench.connect().session().producer("orders", persistent=False, priority=1, ttl=60)
    plain = producer.send("a")
    other = producer.send("b", persistent=True, priority=9, ttl=None)
    assert (plain.persistent, plain.priority, plain.expiration is None) == (False, 1, False)
    assert (other.persistent, other.priority, other.expiration) == (True, 9, None)


def test_a_received_message_is_sent_on_as_a_copy(bench: Bench) -> None:
    bench.send("m")
    session, consumer = bench.consuming()
    received = receive(consumer)
    sent = session.producer("elsewhere").send(received, properties={"hop": 2}, reply_to="topic://answers")
    assert sent is not received
    assert (sent.body, sent.properties["hop"], sent.reply_to) == ("m", 2, Topic("answers"))
    assert "hop" not in received.properties


def test_ones_own_message_is_sent_and_stamped(bench: Bench) -> None:
    message = Message("m", properties={"a": 1})
    assert bench.connect().session().producer("orders").send(message, properties={"b": 2}) is message
    assert dict(message.properties) == {"a": 1, "b": 2}


def test_send_async_gives_the_message_when_it_is_confirmed(bench: Bench) -> None:
    session = bench.connect().session()
    future = session.producer("orders").send_async("m")
    message = future.result(SOON)
    assert message.message_id
    assert future.done()
    assert future.exception(0) is None
    assert bench.left == ["m"]
