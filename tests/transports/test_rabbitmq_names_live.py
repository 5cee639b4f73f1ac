"""Destinations in RabbitMQ's own spelling, and queues that are never to be made; on 3 and 4, both protocols."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from tests.run.rabbitmq import OVER_STOMP, SAYS_MORE, SITES, broker_of
from tests.transports.test_rabbitmq_queues_live import KINDS, SOON, Site

import redelivery
from redelivery import (
    BrokerDeadLetterStrategy,
    ConfigError,
    InvalidDestinationError,
    JMSError,
    Queue,
    RedeliveryPolicy,
    Topic,
    UnsupportedError,
)
from redelivery.testing.brokers.real import RealBroker

pytestmark = pytest.mark.in_turns("site")
NO_QUEUES = 0.3  # seconds, for what would come if it were sent


class Place(Site):
    """Exchanges too."""

    def bind(self, queue: str, exchange: str, key: str, kind: str = "direct") -> None:
        channel = self._own.channel()
        channel.exchange_declare(exchange, kind, auto_delete=True)
        channel.queue_bind(queue, exchange, key)

    def close_queue(self, queue: str) -> None:
        self._own.channel().queue_delete(queue)

    def publish(self, exchange: str, key: str, body: str) -> None:
        self._own.channel().basic_publish(exchange, key, body.encode())


@pytest.fixture(params=SITES)
def site(request: pytest.FixtureRequest) -> Iterator[Place]:
    made = Place(*broker_of(request))
    yield made
    made.close()


@pytest.fixture
def queue() -> str:
    return f"names.{uuid4().hex[:8]}"


def body_of(message: redelivery.Message | None) -> str:
    assert message is not None
    return bytes(message.raw_body).decode()


@pytest.mark.parametrize("spelling", ["/amq/queue/{}", "/queues/{}"])
@pytest.mark.parametrize("kind", ["quorum", "not durable"])
def test_a_queue_in_the_broker_s_spelling_is_that_queue(site: Place, queue: str, spelling: str, kind: str) -> None:
    site.make(queue, **KINDS[kind])
    spelled = Queue(spelling.format(queue))
    with redelivery.connect(site.url) as connection, connection.session("client") as session:
        session.producer(spelled).send("one")
        session.producer().send("two", spelled)
        session.producer(Queue(queue)).send("three")
        consumer = session.consumer(spelled)
        messages = [consumer.receive(timeout=SOON) for _ in range(3)]
        assert [body_of(each) for each in messages] == ["one", "two", "three"]
        assert {getattr(each, "destination", None) for each in messages} == {Queue(queue)}
        assert consumer.destination == Queue(queue)
        session.acknowledge()
    assert site.depth(queue) == 0
    assert site.depth(spelled.name) is None, "there is none of that name"


def test_what_is_encoded_is_decoded_as_there(site: Place, queue: str) -> None:
    name = f"{queue}/a b" if site.is_4 else f"{queue}/ab"
    site.make(name, durable=True)
    spelled = [f"/amq/queue/{name.replace('/', '%2F')}", f"/queues/{name.replace('/', '%2F').replace(' ', '%20')}"]
    with redelivery.connect(site.url) as connection, connection.session() as session:
        for each in spelled:
            session.producer(Queue(each)).send("x")
        consumer = session.consumer(Queue(name))
        assert [body_of(consumer.receive(timeout=SOON)) for _ in spelled] == ["x", "x"]


@pytest.mark.parametrize("spelling", ["/exchange/{}/{}", "/exchanges/{}/{}"])
@pytest.mark.parametrize("kind", [Queue, Topic])
def test_an_exchange_and_a_key_are_published_to_and_bound_to(
    site: Place, queue: str, spelling: str, kind: type[Queue | Topic]
) -> None:
    site.make(queue, durable=True)
    site.bind(queue, f"{queue}.x", "red")
    where = kind(spelling.format(f"{queue}.x", "red"))
    with redelivery.connect(site.url) as connection, connection.session() as session:
        consumer = session.consumer(where)
        session.producer(where).send("by the exchange")
        site.publish(f"{queue}.x", "red", "by another")
        site.publish(f"{queue}.x", "blue", "not for it")
        got = {body_of(consumer.receive(timeout=SOON)) for _ in "ab"}
        assert got == {"by the exchange", "by another"}
        assert consumer.receive(timeout=NO_QUEUES) is None
        bound = session.consumer(Queue(queue))
        assert {body_of(bound.receive(timeout=SOON)) for _ in "ab"} == got
    assert site.depth(where.name) is None


def test_an_exchange_without_a_key(site: Place, queue: str) -> None:
    with redelivery.connect(site.url) as connection, connection.session() as session:
        consumer = session.consumer(Topic("/exchange/amq.fanout"))
        session.producer(Topic("/exchange/amq.fanout")).send(queue)
        message = consumer.receive(timeout=SOON)
        while message is not None and body_of(message) != queue:
            message = consumer.receive(timeout=SOON)
        assert message is not None


@pytest.mark.parametrize("spelling", ["/exchange/no.such.{}/k", "/exchanges/no.such.{}/k"])
def test_an_exchange_that_is_not_there_is_an_error(site: Place, queue: str, spelling: str) -> None:
    where = Topic(spelling.format(queue))
    named = rf"no.such.{queue}"
    with redelivery.connect(site.url) as connection, connection.session() as session:
        producer = session.producer(where)
        with pytest.raises(InvalidDestinationError, match=named):
            producer.send("x")
    with redelivery.connect(site.url) as connection:
        session = connection.session()
        with pytest.raises(JMSError, match=named):
            session.consumer(where)


ABSENT: dict[str, Callable[[str], Queue | str]] = {
    "an option": lambda name: f"queue://{name}?declare=false",
    "an option, no scheme": lambda name: f"{name}?declare=false",
    "a Queue": lambda name: Queue(name, declare=False),
    "existing": lambda name: Queue(f"/amq/queue/{name}"),
    "version 2": lambda name: Queue(f"/queues/{name}"),
}


@SAYS_MORE
@pytest.mark.parametrize("how", [*ABSENT, "connect"])
def test_a_queue_that_is_not_there_is_not_made(site: Place, queue: str, how: str) -> None:
    options: dict[str, Any] = {} if how in ABSENT else {"declare": False}
    where = ABSENT[how](queue) if how in ABSENT else queue
    with redelivery.connect(site.url, **options) as connection:
        with (
            connection.session() as session,
            pytest.raises(InvalidDestinationError, match=f"{queue}: there is no such"),
        ):
            session.producer(where).send("lost")
        with connection.session() as session, pytest.raises(InvalidDestinationError, match=queue):
            session.consumer(where)
        with connection.session() as session, pytest.raises(InvalidDestinationError, match=queue):
            session.producer().send("lost", where)
        assert site.depth(queue) is None
        site.make(queue, **KINDS["quorum"])
        with connection.session("client") as session:  # the connection lives
            session.producer(where).send("there")
            assert body_of(session.consumer(where).receive(timeout=SOON)) == "there"
            session.acknowledge()
    assert site.depth(queue) == 0

    async def absent() -> None:
        async with redelivery.aio.connect(site.url, **options) as connection, connection.session() as session:
            other = f"{queue}.other"
            target = ABSENT[how](other) if how in ABSENT else other
            with pytest.raises(InvalidDestinationError, match="there is no such"):
                await (await session.producer(target)).send("lost")
            with pytest.raises(InvalidDestinationError):
                await session.consumer(target)
            assert site.depth(other) is None

    asyncio.run(absent())


def test_where_a_broker_does_not_say_whether_it_is_there_a_send_is_refused(rabbitmq: RealBroker, queue: str) -> None:
    """RabbitMQ 3 over AMQP: the link of a consumer says it itself."""
    pytest.importorskip("proton", reason="AMQP is missing")
    site = Place(rabbitmq, "amqp")
    with redelivery.connect(rabbitmq.amqp_url, declare=False) as connection, connection.session() as session:
        producer = session.producer(queue)
        with pytest.raises(UnsupportedError, match="use stomp://"):
            producer.send("lost")
        with pytest.raises(InvalidDestinationError, match=queue):
            session.consumer(queue)
    assert site.depth(queue) is None
    site.close()


@OVER_STOMP
def test_in_a_transaction_nothing_is_made_either(site: Place, queue: str) -> None:
    with redelivery.connect(site.url, declare=False) as connection, connection.session("transacted") as session:
        with pytest.raises(InvalidDestinationError, match="there is no such"):
            session.producer(queue).send("lost")
        session.rollback()
    assert site.depth(queue) is None


@pytest.mark.parametrize("kind", KINDS)
def test_queues_of_every_kind_are_used_without_being_made(site: Place, queue: str, kind: str) -> None:
    site.make(queue, **KINDS[kind])
    with redelivery.connect(site.url, declare=False) as connection, connection.session("client") as session:
        if site.is_4 or site.protocol == "stomp":
            session.producer(queue).send("there")
        else:
            site.publish("", queue, "there")
        assert body_of(session.consumer(queue).receive(timeout=SOON)) == "there"
        session.acknowledge()


@SAYS_MORE
def test_a_queue_that_is_deleted_is_said_where_it_is_used_next(site: Place, queue: str) -> None:
    site.make(queue, durable=True)
    with redelivery.connect(site.url, declare=False) as connection:
        with connection.session() as session:
            session.producer(queue).send("there")
        site.close_queue(queue)
        with connection.session() as session, pytest.raises(InvalidDestinationError, match=queue):
            session.consumer(queue)
        assert site.depth(queue) is None


def test_dead_letters_of_the_broker_s_own_are_on_queues_made_by_others(site: Place, queue: str) -> None:
    """`BrokerDeadLetterStrategy(configured=True)`, on a queue of each kind that has a dead-letter exchange."""
    dead = site.make(f"{queue}.dead", durable=True)
    for kind in ("classic", "quorum"):
        name = f"{queue}.{kind}"
        arguments = {"x-queue-type": kind, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": dead}
        site.make(name, durable=True, arguments=arguments)
        options: dict[str, Any] = {
            "redelivery_policy": RedeliveryPolicy(maximum_redeliveries=1, initial_redelivery_delay=0.01),
            "dead_letter_strategy": BrokerDeadLetterStrategy(configured=True),
        }
        with redelivery.connect(site.url, **options) as connection, connection.session("client") as session:
            session.producer(Queue(f"/amq/queue/{name}")).send(kind)
            consumer = session.consumer(Queue(name))
            for _ in range(2):
                assert consumer.receive(timeout=SOON) is not None
                session.recover(cause=LookupError("no such article"))
            assert body_of(session.consumer(dead).receive(timeout=SOON)) == kind
            session.acknowledge()
        assert site.depth(name) == 0


@pytest.mark.parametrize("text", ["queue://orders?declare=perhaps", "topic://news?declare=false", "orders?declare="])
def test_an_option_that_is_none_is_named(text: str) -> None:
    connection = redelivery.connect("vm://options")
    session = connection.session()
    with pytest.raises(InvalidDestinationError, match=r"\?declare=false"):
        session.consumer(text)
    connection.close()


def test_where_brokers_make_queues_themselves_the_option_is_refused(activemq: Any, artemis: Any) -> None:
    with pytest.raises(ConfigError, match="declare=False"):
        redelivery.connect("vm://refused", declare=False)
    for url in ("vm://refused", activemq.stomp_url, artemis.stomp_url, activemq.amqp_url, artemis.amqp_url):
        with pytest.raises((UnsupportedError, ConfigError), match="declare=False"):
            redelivery.connect(url, declare=False)
        with redelivery.connect(url) as connection, connection.session() as session:
            name = f"nosuch.{uuid4().hex}?declare=false"
            producer = session.producer(name)
            error: type[JMSError] = UnsupportedError
            says = "declare=False"
            if url == artemis.stomp_url:  # whose management says which queues there are
                error, says = InvalidDestinationError, "there is no such queue"
            with pytest.raises(error, match=says):
                producer.send("x")
            with pytest.raises(error, match=says):
                session.consumer(name)


def test_a_session_s_queue_takes_the_option_too() -> None:
    with redelivery.connect("vm://options") as connection, connection.session() as session:
        for text in ("orders?declare=false", "queue://orders?declare=false"):
            queue = session.queue(text)
            assert (queue.name, queue.declare, repr(queue)) == ("orders", False, "Queue('orders', declare=False)")
        assert session.queue("orders?declare=true").declare
