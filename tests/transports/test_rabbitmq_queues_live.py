"""Queues of RabbitMQ's as they are: made by others, of every kind, on RabbitMQ 3 and 4, over both protocols."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from uuid import uuid4

import pika
import pytest
from tests.run.rabbitmq import SAYS_MORE, SITES, broker_of, url_of

import redelivery
from redelivery import (
    BrokerDeadLetterStrategy,
    InvalidDestinationError,
    Queue,
    RedeliveryPolicy,
    SharedDeadLetterStrategy,
)
from redelivery.testing.brokers.real import RealBroker

ONCE = RedeliveryPolicy(maximum_redeliveries=1, initial_redelivery_delay=0.01, redelivery_delay=0.01)
SOON = 5.0
pytestmark = pytest.mark.in_turns("site")
KINDS: dict[str, dict[str, Any]] = {
    "quorum": {"durable": True, "arguments": {"x-queue-type": "quorum"}},
    "with a dead-letter exchange": {"durable": True, "arguments": {"x-dead-letter-exchange": "amq.fanout"}},
    "with a time to live": {"durable": True, "arguments": {"x-message-ttl": 600_000}},
    "with a length": {"durable": True, "arguments": {"x-max-length": 100}},
    "with priorities": {"durable": True, "arguments": {"x-max-priority": 5}},
    "lazy": {"durable": True, "arguments": {"x-queue-mode": "lazy"}},
    "with one active consumer": {"durable": True, "arguments": {"x-single-active-consumer": True}},
    "not durable": {"durable": False},
    "deleted with its last consumer": {"durable": True, "auto_delete": True},
}
# In the short form, of the ways in which a queue can differ. tests/conformance/test_queues_of_others.py has them all.
UNLIKE = ("quorum", "not durable", "deleted with its last consumer")


class Site:
    """A broker by one protocol, and a client of the broker's own protocol beside it."""

    def __init__(self, broker: RealBroker, protocol: str) -> None:
        self.url = url_of(broker, protocol)
        self.is_4, self.protocol = broker.name == "rabbitmq4", protocol
        self._own = pika.BlockingConnection(pika.URLParameters(broker.amqp_url))
        self._channel = self._own.channel()
        self._made: list[str] = []

    def make(self, name: str, **how: Any) -> str:
        self._made.append(name)
        self._channel.queue_declare(name, **how)
        return name

    def bind_dead_letters(self, queue: str) -> str:
        """A queue with a limit of its own, whose dead letters come to another one."""
        dead = self.make(f"{queue}.dead", durable=True)
        arguments = {
            "x-queue-type": "quorum",
            "x-delivery-limit": 10,
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": dead,
        }
        self.make(queue, durable=True, arguments=arguments)
        return dead

    def depth(self, name: str) -> int | None:
        """How many messages are on it; None: it is not there."""
        channel = self._own.channel()
        try:
            return int(channel.queue_declare(name, passive=True).method.message_count)
        except pika.exceptions.ChannelClosedByBroker:
            return None

    def take(self, name: str, count: int) -> list[bytes]:
        """The bodies of so many messages, which must be all."""
        channel = self._own.channel()
        taken = [channel.basic_get(name, auto_ack=True)[2] for _ in range(count + 1)]
        assert taken.pop() is None
        return taken

    def close(self) -> None:
        for each in self._made:
            self._own.channel().queue_delete(each)
        self._own.close()


@pytest.fixture(params=SITES)
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    made = Site(*broker_of(request))
    yield made
    made.close()


@pytest.fixture
def queue(site: Site) -> str:
    """Of the test's own; RabbitMQ 3 takes no name over AMQP that is not ASCII."""
    return f"shop/orders.{uuid4().hex[:8]}" + ("ü%" if site.is_4 or site.protocol == "stomp" else "")


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[] if kind in UNLIKE else [pytest.mark.long_form]) for kind in KINDS]
)
def test_a_queue_of_any_kind_is_sent_to_and_consumed_to_the_dead_letter(site: Site, queue: str, kind: str) -> None:
    site.make(queue, **KINDS[kind])
    dead = f"{queue}.letters"
    options: dict[str, Any] = {"redelivery_policy": ONCE, "dead_letter_strategy": SharedDeadLetterStrategy(dead)}
    with redelivery.connect(site.url, **options) as connection, connection.session("client") as session:
        session.producer(Queue(queue)).send("the moon")
        consumer = session.consumer(Queue(queue))
        for count in (1, 2):
            message = consumer.receive(timeout=SOON)
            assert message is not None
            assert (message.body, message.delivery_count, message.destination) == ("the moon", count, Queue(queue))
            session.recover(cause=LookupError("no such article"))
        letter = session.consumer(Queue(dead)).receive(timeout=SOON)
        assert letter is not None
        assert letter.dead_letter is not None
        assert letter.dead_letter.origin == Queue(queue)
        letter.acknowledge()
        assert site.depth(queue) == 0
    for name in (queue, queue.replace("/", "%2F")):
        assert site.depth(f"/amq/queue/{name}") is None
    site.make(dead, durable=True)


def test_what_the_broker_dead_letters_itself_says_so(site: Site, queue: str) -> None:
    """By RabbitMQ 3's AMQP 1.0 it shows nothing."""
    dead = site.bind_dead_letters(queue)
    options: dict[str, Any] = {
        "redelivery_policy": ONCE,
        "dead_letter_strategy": BrokerDeadLetterStrategy(configured=True),
    }
    with redelivery.connect(site.url, **options) as connection, connection.session("client") as session:
        session.producer(Queue(queue)).send("the moon")
        consumer = session.consumer(Queue(queue))
        for _ in range(2):
            assert consumer.receive(timeout=SOON) is not None
            session.recover(cause=LookupError("no such article"))
        message = session.consumer(Queue(dead)).receive(timeout=SOON)
        assert message is not None
        letter = message.dead_letter
        if site.protocol == "amqp" and not site.is_4:
            assert letter is None
        else:
            assert letter is not None
            assert (letter.origin, letter.cause) == (Queue(queue), "rejected")
            assert (letter.at is not None) == (site.protocol == "amqp")
        message.acknowledge()


@pytest.mark.parametrize("kind", ["quorum"])
def test_a_dead_letter_queue_that_is_there_is_taken_as_it_is(site: Site, queue: str, kind: str) -> None:
    dead = site.make(f"{queue}.letters", **KINDS[kind])
    options: dict[str, Any] = {"redelivery_policy": ONCE, "dead_letter_strategy": SharedDeadLetterStrategy(dead)}
    site.make(queue, durable=True)
    with redelivery.connect(site.url, **options) as connection, connection.session("client") as session:
        session.producer(Queue(queue)).send("the moon")
        consumer = session.consumer(Queue(queue))
        for _ in range(2):
            assert consumer.receive(timeout=SOON) is not None
            session.recover(cause=LookupError("no such article"))
        assert site.depth(dead) == 1
    assert site.depth(queue) == 0


@SAYS_MORE
def test_a_quorum_queue_counts_deliveries(site: Site, queue: str) -> None:
    site.make(queue, **KINDS["quorum"])
    with redelivery.connect(site.url) as connection, connection.session() as session:
        session.producer(Queue(queue)).send("the moon")
    for count in (1, 2, 3, 4):  # lost each time
        with redelivery.connect(site.url) as connection, connection.session("client") as session:
            message = session.consumer(Queue(queue)).receive(timeout=SOON)
            assert message is not None
            version = connection.metadata.provider_version
            counts = site.protocol == "amqp" or not version.startswith("4.3")  # there a NACK counts nothing
            assert message.delivery_count == (count if counts else min(count, 2))


def test_a_queue_that_is_not_there_is_made_and_stays(site: Site, queue: str) -> None:
    with redelivery.connect(site.url) as connection, connection.session() as session:
        session.producer(Queue(queue)).send("the moon")
    assert site.depth(queue) == 1
    site.make(queue, durable=True)  # which it is, or this is refused


def test_one_producer_sends_to_many_queues_in_order(site: Site, queue: str) -> None:
    names = [f"{queue}.{number}" for number in range(30)]
    for each in names[::2]:
        site.make(each, **KINDS["with a length"])
    with redelivery.connect(site.url) as connection, connection.session() as session:
        producer = session.producer()
        for body in "ab":
            for name in names:
                producer.send(body, Queue(name))
        consumer = session.consumer(Queue(names[-1]))
        assert [getattr(consumer.receive(timeout=SOON), "body", None) for _ in "ab"] == ["a", "b"]
    assert [site.depth(name) for name in names[:-1]] == [2] * 29
    for each in names[1::2]:
        site.make(each, durable=True)


def test_a_topic_to_which_nobody_listens_may_be_sent_to(site: Site) -> None:
    with redelivery.connect(site.url) as connection, connection.session() as session:
        producer = session.producer()
        for number in range(20):
            producer.send("news", f"topic://nobody.{uuid4().hex}.{number}")


def test_sessions_that_follow_each_other_do_not_hang(site: Site, queue: str) -> None:
    site.make(queue, durable=True)
    for _ in range(20):
        with redelivery.connect(site.url, request_timeout=3) as connection:
            for _ in range(3):
                with connection.session() as session:
                    session.producer(Queue(queue)).send("x", persistent=False)
                    assert session.consumer(Queue(queue)).receive(timeout=SOON) is not None


@SAYS_MORE
def test_a_session_that_follows_one_that_the_broker_ended_does_not_hang(site: Site, queue: str) -> None:
    site.make(queue, durable=True)
    for _ in range(100):  # without care 2 of 100 hang
        with redelivery.connect(site.url) as connection, connection.session() as session:
            gone = session.temporary_queue()
        with redelivery.connect(site.url, request_timeout=3) as connection, connection.session() as session:
            with suppress(InvalidDestinationError):  # over STOMP it is made
                session.producer(gone).send("late")
            session.producer(Queue(queue)).send("x", persistent=False)
