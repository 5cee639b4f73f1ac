"""Queues and topics, and their texts."""

from __future__ import annotations

from typing import Any

import pytest

from redelivery.model.destinations import (
    Destination,
    Queue,
    TemporaryQueue,
    TemporaryTopic,
    Topic,
    destination,
    read_destination,
)
from redelivery.model.errors import InvalidDestinationError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("orders", Queue("orders")),
        ("queue://orders", Queue("orders")),
        ("topic://news", Topic("news")),
        ("orders.eu.new", Queue("orders.eu.new")),
        ("queue://a://b", Queue("a://b")),
        ("q?consumer.prefetchSize=1", Queue("q?consumer.prefetchSize=1")),
    ],
)
def test_texts(text: str, expected: Destination) -> None:
    assert destination(text) == expected
    assert destination(str(expected)) == expected
    assert destination(expected) is expected


@pytest.mark.parametrize(
    "value",
    [
        "",
        " ",
        " orders",
        "orders ",
        "queue://",
        "topic:// ",
        "file://x",
        "Queue://x",
        "://x",
        "a\0b",
        "a b",
        "two\nlines",
        "queue://a b",
        None,
        5,
        b"orders",
    ],
)
def test_what_is_no_destination_is_refused(value: Any) -> None:
    with pytest.raises(InvalidDestinationError):
        destination(value)


def test_the_error_says_what_to_write() -> None:
    with pytest.raises(InvalidDestinationError, match="'queue://' or 'topic://', not 'file://'"):
        destination("file://x")
    with pytest.raises(ValueError, match="give a Queue, a Topic or a str"):
        destination(5)  # type: ignore[arg-type]  # the point of the test


@pytest.mark.parametrize(
    ("text", "spelling"),
    [
        ("/queue/orders", "'/queue/orders': write 'orders' or 'queue://orders'"),
        ("queue:///queue/orders", "'/queue/orders': write 'orders' or 'queue://orders'"),
        ("/topic/news.eu", "'/topic/news.eu': write 'topic://news.eu'"),
        ("/dsub/mine", "'/dsub/mine': write 'topic://mine'"),
        ("jms.queue.orders", "write 'orders' or 'queue://orders'; if .* begins so, pass Queue\\('jms.queue.orders'\\)"),
        ("jms.topic.news", "write 'topic://news'; if .* begins so, pass Topic\\('jms.topic.news'\\)"),
        ("topic:news", "'topic:news': write 'topic://news'; if .* begins so, pass Topic\\('topic:news'\\)"),
        ("queue:orders", "'queue:orders': write 'orders' or 'queue://orders'; if .* pass Queue\\('queue:orders'\\)"),
        ("queue://queue:orders", "'queue:orders': write 'orders' or 'queue://orders'"),
        ("/amq/queue/orders", "'/amq/queue/orders': write 'orders' or 'queue://orders'; if .* pass Queue"),
        ("amq/queue/orders", "'amq/queue/orders': write 'orders' or 'queue://orders'"),
        ("/queues/orders", "'/queues/orders': write 'orders' or 'queue://orders'"),
        ("dynamicTopics/news", "write 'topic://news'"),
        ("/exchange/amq.topic/news.eu", "write 'topic://news.eu'"),
        ("/exchange/shop/orders", "names an exchange, .* write 'topic://KEY' for a key of amq.topic, or bind a queue"),
        ("/temp-queue/x", "'/temp-queue/x': a temporary queue is made by session.temporary_queue\\(\\)"),
        ("temp-topic://x", "not 'temp-topic://'"),
        ("/temp-topic/x", "a temporary topic is made by session.temporary_topic"),
        ("a b", "'a b' has a space .* pass Queue"),
        ("topic://a b", "'topic://a b' has a space .* pass Topic"),
    ],
)
def test_how_others_write_a_destination_is_refused_with_the_right_spelling(text: str, spelling: str) -> None:
    with pytest.raises(InvalidDestinationError, match=spelling):
        destination(text)


def test_a_class_takes_any_name_that_a_broker_could_have_but_no_prefix_of_stomp() -> None:
    for name in ("a b", "jms.queue.orders", "two\nlines", "topic:news", "/exchange/a/b", "/amq/queue/x", "amq/queue/x"):
        assert Queue(name).name == name
        assert read_destination(f"topic://{name}") == Topic(name)  # as it travels in a header
    with pytest.raises(InvalidDestinationError, match="write 'orders'"):
        Queue("/queue/orders")


@pytest.mark.parametrize(
    "name", ["orders:eu", "a/b", "ID:host-1:2", "queue:", "exchange/a", "/a", "queued:x", "amq.queue.x"]
)
def test_other_names_are_names(name: str) -> None:
    assert destination(name) == Queue(name)


def test_a_long_body_in_the_wrong_place_is_cut() -> None:
    with pytest.raises(InvalidDestinationError) as caught:
        destination("secret, " * 100 + "end")
    assert len(str(caught.value)) < 300


def test_a_queue_is_no_topic() -> None:
    queue: Destination = Queue("a")
    topic: Destination = Topic("a")
    assert queue != topic
    assert len({queue, topic, Queue("a"), destination("a")}) == 2


@pytest.mark.parametrize(
    ("name", "pattern"), [("a.*", True), ("a.>", True), ("#", True), ("a.b", False), ("a*", False), ("a>.b", False)]
)
def test_patterns_are_whole_words(name: str, pattern: bool) -> None:
    assert Topic(name).is_pattern is pattern


def test_names_do_not_change() -> None:
    queue: Any = Queue("a")
    with pytest.raises(AttributeError):
        queue.name = "b"
    assert repr(queue) == "Queue('a')"


@pytest.mark.parametrize(
    ("temporary", "kind", "text"),
    [
        (TemporaryQueue("a1b2"), Queue, "temp-queue://a1b2"),
        (TemporaryTopic("a1b2"), Topic, "temp-topic://a1b2"),
        (TemporaryQueue("temp-queue://ID:1"), Queue, "temp-queue://ID:1"),  # as Classic names them
        (TemporaryTopic("temp-topic://ID:1"), Topic, "temp-topic://ID:1"),
    ],
)
def test_temporary_destinations_are_the_brokers_own(temporary: Destination, kind: type[Destination], text: str) -> None:
    assert str(temporary) == text
    assert isinstance(temporary, kind)
    assert temporary != kind(temporary.name)
    assert temporary == type(temporary)(temporary.name)
    assert destination(temporary) is temporary
    with pytest.raises(InvalidDestinationError):
        destination(text)  # nobody but the broker can name one
    with pytest.raises(InvalidDestinationError):
        type(temporary)("")


@pytest.mark.parametrize("name", [None, 5, b"orders"])
def test_a_name_that_is_no_str_is_refused_as_that(name: Any) -> None:
    with pytest.raises(InvalidDestinationError, match=rf"^the name of a destination must be a str, not {name!r}$"):
        Queue(name)
