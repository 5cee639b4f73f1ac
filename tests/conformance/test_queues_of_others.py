"""Queues of RabbitMQ's that other programs made, of each kind, with the messages of other programs in them.

Each test is a cell of the page's table of them (`tests/conformance/queues_page.py`). The queues are made over AMQP
0-9-1, and the messages come from there, from a STOMP socket and from proton.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from tests.client.shell import eventually
from tests.conformance.foreign import Foreign, section
from tests.conformance.pairs import PAIRS, Kind, Pair
from tests.conformance.record import refused
from tests.conformance.stage import SOON
from tests.transports.test_rabbitmq_queues_live import KINDS, Site

import redelivery
from redelivery import (
    BrokerDeadLetterStrategy,
    DeadLetterStrategy,
    Queue,
    RedeliveryPolicy,
    RequestTimeoutError,
    SharedDeadLetterStrategy,
    UnsupportedError,
)
from redelivery.operate.management.opening import management_of
from redelivery.testing.brokers.real import RealBroker

pytestmark = pytest.mark.long_form
RABBITS = [kind for kind in PAIRS.values() if kind.broker in ("rabbitmq", "rabbitmq4")]
WRITTEN = {  # by each protocol of the broker; in a BytesMessage, which all of them hand on to one another as it is
    "pika": b"the moon, by pika",
    "stomp": b"the moon, by STOMP",
    "amqp": b"the moon, by proton",
}
TWICE = RedeliveryPolicy(maximum_redeliveries=2, initial_redelivery_delay=0.01, redelivery_delay=0.01)
NEVER = RedeliveryPolicy(maximum_redeliveries=0)
QUIET = 0.3


@pytest.fixture
def broker(request: pytest.FixtureRequest) -> RealBroker:
    kind: Kind = request.node.callspec.params["pair"]
    found: RealBroker = request.getfixturevalue(str(kind.broker))
    return found


@pytest.fixture(params=RABBITS, ids=[kind.name for kind in RABBITS])
def pair(request: pytest.FixtureRequest, broker: RealBroker) -> Pair:
    kind: Kind = request.param
    pytest.importorskip("proton")
    return Pair(kind, getattr(broker, f"{kind.protocol}_url"))


@pytest.fixture
def site(pair: Pair, broker: RealBroker) -> Iterator[Site]:
    made = Site(broker, pair.kind.protocol)
    yield made
    made.close()


@pytest.fixture(params=list(KINDS))
def queue(request: pytest.FixtureRequest, site: Site) -> str:
    return site.make(f"of.others.{uuid4().hex[:8]}", **KINDS[request.param])


@pytest.fixture
def dead(request: pytest.FixtureRequest, site: Site) -> str:
    """A queue for dead letters, of the same kind."""
    return site.make(f"of.others.{uuid4().hex[:8]}.dead", **KINDS[request.node.callspec.params["queue"]])


def write(broker: RealBroker, queue: str, *writers: str) -> list[bytes]:
    """One message by each of these programs: the bodies."""
    for each in writers:
        body = WRITTEN[each]
        if each == "pika":
            Foreign("rabbit", broker.name, broker.amqp_url).publish(queue, body, {"shop": "x"})
        elif each == "stomp":
            head = b"content-type:application/octet-stream\ncontent-length:%d\n\n" % len(body)
            Foreign("stomp", broker.name, broker.stomp_url).send(queue, head + body)
        else:
            encoded = section(0x75, b"\xa0%c%b" % (len(body), body))
            Foreign("amqp", broker.name, broker.amqp_url).send(queue, encoded)
    return [WRITTEN[each] for each in writers]


def connect(pair: Pair, strategy: DeadLetterStrategy | None = None, **options: Any) -> redelivery.Connection:
    return redelivery.connect(pair.url, dead_letter_strategy=strategy, **options)


def undo(session: redelivery.Session) -> None:
    cause = LookupError("no such article")
    session.rollback(cause=cause) if session.transacted else session.recover(cause=cause)


def _raw(message: redelivery.Message | None) -> bytes:
    assert message is not None
    return bytes(message.raw_body or b"")


def test_send(pair: Pair, site: Site, queue: str) -> None:
    """Persistent and not, in a transaction where there are some, and by one producer to it and to another one."""
    other = site.make(f"{queue}.plain", durable=True)
    with connect(pair) as connection, connection.session() as session:
        session.producer(Queue(queue)).send(b"first")
        producer = session.producer()
        for name in (queue, other, queue):
            producer.send(b"then", Queue(name), persistent=False)
    sent = [b"first", b"then", b"then"]
    if pair.can("transactions"):
        with connect(pair) as connection, connection.session("transacted") as session:
            session.producer(Queue(queue)).send(b"last")
            session.commit()
        sent.append(b"last")
    assert site.take(queue, len(sent)) == sent
    assert site.take(other, 1) == [b"then"]


def test_consume(pair: Pair, site: Site, broker: RealBroker, queue: str) -> None:
    bodies = write(broker, queue, *WRITTEN)
    with connect(pair) as connection, connection.session("client") as session:
        consumer = session.consumer(Queue(queue))
        came = [consumer.receive(timeout=SOON) for _ in bodies]
        assert [_raw(each) for each in came] == bodies
        assert [(each.delivery_count, each.destination) for each in came if each] == [(1, Queue(queue))] * len(bodies)
        session.acknowledge()
        assert consumer.receive(timeout=QUIET) is None
    assert site.depth(queue) in (0, None)  # None: deleted with its last consumer


def test_roll_back_to_the_limit(pair: Pair, site: Site, broker: RealBroker, queue: str, dead: str) -> None:
    bodies = write(broker, queue, "pika", "amqp")
    mode = "transacted" if pair.can("transactions") else "client"
    with connect(pair, SharedDeadLetterStrategy(dead), redelivery_policy=TWICE) as connection:
        with connection.session(mode) as session:
            consumer = session.consumer(Queue(queue))
            for count in (1, 2, 3):
                came = [consumer.receive(timeout=SOON) for _ in bodies]
                assert [(_raw(each), each.delivery_count) for each in came if each] == [(one, count) for one in bodies]
                undo(session)
            assert consumer.receive(timeout=QUIET) is None
        assert site.depth(dead) == len(bodies)
    assert site.depth(queue) in (0, None)


def test_dead_letter(pair: Pair, broker: RealBroker, queue: str, dead: str) -> None:
    """Each as it came, with its origin and cause; where the queue has a dead-letter exchange, by the broker, too."""
    bodies = write(broker, queue, *WRITTEN)
    with connect(pair, SharedDeadLetterStrategy(dead), redelivery_policy=NEVER) as connection:
        fail(connection, queue, len(bodies))
        with connection.session("client") as session, session.consumer(Queue(dead)) as consumer:
            letters = [consumer.receive(timeout=SOON) for _ in bodies]
            assert Counter(map(_raw, letters)) == Counter(bodies)
            for letter in letters:
                assert letter is not None
                assert letter.dead_letter is not None
                assert letter.dead_letter.origin == Queue(queue)
                assert "no such article" in str(letter.dead_letter.cause)
            session.acknowledge()


def test_dead_letter_by_the_broker(pair: Pair, site: Site, broker: RealBroker) -> None:
    """Where the queue has a dead-letter exchange, and the application names the broker's own way."""
    queue = f"of.others.{uuid4().hex[:8]}"
    dead = site.bind_dead_letters(queue)
    bodies = write(broker, queue, *WRITTEN)
    with connect(pair, BrokerDeadLetterStrategy(configured=True), redelivery_policy=NEVER) as connection:
        fail(connection, queue, len(bodies))
        with connection.session("client") as session, session.consumer(Queue(dead)) as consumer:
            letters = [consumer.receive(timeout=SOON) for _ in bodies]
            assert Counter(map(_raw, letters)) == Counter(bodies)
            if pair.kind.name != "amqp-rabbitmq":  # there it shows nothing
                for letter in letters:
                    assert letter is not None
                    assert letter.dead_letter is not None
                    assert (letter.dead_letter.origin, letter.dead_letter.cause) == (Queue(queue), "rejected")
            session.acknowledge()


def fail(connection: redelivery.Connection, queue: str, count: int) -> None:
    with connection.session("individual") as session, session.consumer(Queue(queue)) as consumer:
        for _ in range(count):
            assert consumer.receive(timeout=SOON) is not None
            undo(session)
        assert consumer.receive(timeout=QUIET) is None


def test_browse(request: pytest.FixtureRequest, pair: Pair, site: Site, broker: RealBroker, queue: str) -> None:
    """Refused over the protocol itself, and nothing is taken or counted by it."""
    (body,) = write(broker, queue, "pika")
    with connect(pair) as connection, connection.session("client") as session:
        with pytest.raises(UnsupportedError):
            list(session.browser(Queue(queue)))
        assert site.depth(queue) == 1
        message = session.consumer(Queue(queue)).receive(timeout=SOON)
        assert (_raw(message), getattr(message, "delivery_count", None)) == (body, 1)
    refused(request.node, pair.kind.cannot["browsing"])


def test_look_into_by_management(pair: Pair, site: Site, broker: RealBroker, queue: str) -> None:
    """Over HTTP, twice: all that waits, in order, as it would have been received; nothing is taken."""
    http = broker.http_url
    bodies = write(broker, queue, *WRITTEN)
    with connect(pair, management=http) as connection:
        management = management_of(connection)
        assert management is not None
        for _ in range(2):
            assert [_raw(each) for each in management.browse(queue)] == bodies
        eventually(lambda: site.depth(queue) == len(bodies))  # a quorum queue has back a moment later what was shown
        with connection.session("client") as session, session.consumer(Queue(queue)) as consumer:
            assert [_raw(consumer.receive(timeout=SOON)) for _ in bodies] == bodies


@pytest.mark.timeout(600)
def test_no_second_session_of_400_connections_hangs(pair: Pair, site: Site) -> None:
    """Another one follows at once, as in a web application."""
    queue = site.make(f"of.others.{uuid4().hex[:8]}", durable=True)
    hung = 0
    for _ in range(400):
        with redelivery.connect(pair.url, request_timeout=3) as connection:
            with connection.session() as session:
                session.producer(Queue(queue)).send("x")
                session.consumer(Queue(queue))
            try:
                with connection.session() as session:
                    assert session.consumer(Queue(queue)).receive(timeout=SOON) is not None
            except RequestTimeoutError:
                hung += 1
    assert hung == 0
