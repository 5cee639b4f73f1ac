"""Subscriptions, patterns and several queues as sources over the real brokers, of our senders and of others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.conformance.foreign import Foreign, section, sequence, string
from tests.spark.place import texts
from tests.spark.streams import ALL, drained

import redelivery
from redelivery import AckMode, UnsupportedError
from redelivery.spark.options.query import SourceOptions
from redelivery.spark.read.driver import DriverStreamReader
from redelivery.spark.read.executor import ExecutorStreamReader
from redelivery.spark.read.inspect.capable import check_broker

ALL_PAIRS = (
    *("stomp-activemq", "amqp-activemq", "stomp-artemis", "amqp-artemis", "amqp-qpid"),
    *("stomp-rabbitmq", "amqp-rabbitmq", "stomp-rabbitmq4", "amqp-rabbitmq4"),
)
DURABLE = ALL_PAIRS[:5]
SHARED = ("stomp-artemis", "amqp-artemis", "amqp-qpid")
SHORT = {"stomp-activemq", "amqp-artemis", "stomp-rabbitmq"}
_READERS: dict[str, type[Any]] = {
    "driver": DriverStreamReader,
    "lanes": DriverStreamReader,
    "executor": ExecutorStreamReader,
}
_OF_RECEIVER = {
    "driver": {"linger": "20 ms"},
    "lanes": {"linger": "20 ms", "lanes": "2"},
    "executor": {"receiver": "executor", "numPartitions": "2"},
}


@dataclass
class At:
    """A real broker over one protocol, and names of this test's own."""

    protocol: str
    broker: str
    url: str
    amqp: str
    folder: Path

    def __post_init__(self) -> None:
        self.own = f"s{uuid4().hex[:8]}"
        self.foreign = Foreign(self.protocol, self.broker, self.url)

    def options(self, receiver: str, **given: str) -> SourceOptions:
        waits = {"availableNowIdle": "1 s", "pollInterval": "1 s", "maxReconnectTime": "20 s"}
        place = {"url": self.url, "walLocation": str(self.folder)}
        return SourceOptions.parse({**place, **waits, **_OF_RECEIVER[receiver], **given})

    @contextmanager
    def reader(self, receiver: str, **given: str) -> Iterator[Any]:
        made = _READERS[receiver](self.options(receiver, **given))
        try:
            yield made
        finally:
            made.stop()

    def raw(self, *bodies: str) -> list[bytes]:
        """As others write them: no id, no time."""
        if self.protocol == "amqp":
            return [section(0x70, sequence(b"\x41")) + section(0x77, string(each.encode())) for each in bodies]
        return [f"persistent:true\n\n{each}".encode() for each in bodies]

    def send(self, destination: str, *bodies: str) -> None:
        with redelivery.connect(self.url) as connection, connection.session() as session:
            for body in bodies:
                session.producer(destination).send(body)

    def make(self, *queues: str) -> None:
        """As a consumer does, where a sender alone makes none."""
        with redelivery.connect(self.url) as connection, connection.session() as session:
            for each in queues:
                session.consumer(each).close()

    def unsubscribe(self, topic: str, client_id: str | None) -> None:
        given: Any = {} if client_id is None else {"client_id": client_id}
        with redelivery.connect(self.url, **given) as connection, connection.session() as session:
            if client_id is None:
                session.shared_durable_consumer(topic, self.own).close()
            session.unsubscribe(self.own)

    def empty(self, *queues: str) -> None:
        """Raises AssertionError where something is left."""
        with redelivery.connect(self.url) as connection, connection.session(AckMode.AUTO) as session:
            left = [each.body for queue in queues for each in session.consumer(queue).receive_many(100, 0.3)]
        assert left == []


@pytest.fixture
def at(request: pytest.FixtureRequest, tmp_path: Path) -> At:
    protocol, _, name = request.param.partition("-")
    real = request.getfixturevalue(f"redelivery_{name}")
    return At(protocol, name, getattr(real, f"{protocol}_url"), real.amqp_url if name != "hornetq" else "", tmp_path)


def on(*pairs: str, receivers: tuple[str, ...], short: set[tuple[str, str]]) -> Any:
    """Each of them with each receiver, in the form `all` but for ``short``."""
    cases = [
        pytest.param(pair, each, id=f"{pair}-{each}", marks=() if (pair, each) in short else pytest.mark.long_form)
        for pair in pairs
        for each in receivers
    ]
    return lambda test: pytest.mark.parametrize(("at", "receiver"), cases, indirect=["at"])(test)


@on(*DURABLE, receivers=("driver",), short={("stomp-activemq", "driver"), ("amqp-artemis", "driver")})
def test_a_durable_subscription(at: At, receiver: str) -> None:
    """It is there from the first start on, and keeps what comes while no query runs; ours and others'."""
    topic = f"topic://news.{at.own}"
    given = {"destination": topic, "subscription": at.own}
    check_broker(at.options(receiver, **given))
    with at.reader(receiver, **given) as stream:
        found, start = drained(stream, stream.initialOffset())
        at.send(topic, "a", "b")
        more, start = drained(stream, start)
    at.send(topic, "c")
    at.foreign.send_to_topic(f"news.{at.own}", *at.raw("d", "e"))
    with at.reader(receiver, **given) as stream:
        last, _ = drained(stream, start)
    at.unsubscribe(topic, at.own)
    assert (found, more, last) == ([], ["a", "b"], ["c", "d", "e"])


@on(*SHARED, receivers=("driver", "lanes", "executor"), short={("amqp-artemis", "executor")})
def test_a_shared_one(at: At, receiver: str) -> None:
    topic = f"topic://news.{at.own}"
    client_id = f"c-{at.own}" if at.protocol == "stomp" else None
    given = {"destination": topic, "subscription": at.own, "shared": "true"}
    if client_id is not None:
        with pytest.raises(UnsupportedError, match="add the option clientId"):
            check_broker(at.options(receiver, **given))
        given["clientId"] = client_id
    with at.reader(receiver, **given) as stream:
        stream.prepareForTriggerAvailableNow()
        start = stream.initialOffset()
        stream.latestOffset(start, ALL)  # which makes it
    expected = [f"ours {number}" for number in range(20)] + [f"raw {number}" for number in range(20)]
    at.send(topic, *expected[:20])
    at.foreign.send_to_topic(f"news.{at.own}", *at.raw(*expected[20:]))
    with at.reader(receiver, **given) as stream:
        found, start = drained(stream, start)
    at.send(topic, "later")
    with at.reader(receiver, **given) as stream:
        more, _ = drained(stream, start)
    at.unsubscribe(topic, client_id)
    assert (Counter(found), more) == (Counter(expected), ["later"])


@on(*DURABLE, receivers=("driver",), short=set())
def test_a_pattern_of_topics(at: At, receiver: str) -> None:
    given = {"destination": f"topic://{at.own}.>", "subscription": at.own}
    with at.reader(receiver, **given) as stream:
        _, start = drained(stream, stream.initialOffset())
        at.send(f"topic://{at.own}.eu", "a")
        at.send(f"topic://{at.own}.us.west", "b")
        at.send(f"topic://elsewhere.{at.own}", "c")
        found = places(stream, start)
    at.unsubscribe(f"topic://{at.own}.>", at.own)
    assert found == {"a": f"topic://{at.own}.eu", "b": f"topic://{at.own}.us.west"}


@on(*DURABLE[:2], receivers=("driver", "executor"), short=set())
def test_a_pattern_of_queues(at: At, receiver: str) -> None:
    at.send(f"{at.own}.eu", "a")
    at.foreign.send(f"{at.own}.us.west", *at.raw("b"))
    with at.reader(receiver, destination=f"{at.own}.>") as stream:
        stream.prepareForTriggerAvailableNow()
        found = places(stream, stream.initialOffset())
    raw = f"queue://{at.own}.us.west" if at.protocol == "stomp" else None  # which only its sender could have said
    assert found == {"a": f"queue://{at.own}.eu", "b": raw}
    at.empty(f"{at.own}.eu", f"{at.own}.us.west")


@on(
    *ALL_PAIRS,
    receivers=("driver", "lanes", "executor"),
    short={("stomp-activemq", "executor"), ("amqp-artemis", "lanes"), ("stomp-rabbitmq", "driver")},
)
def test_several_queues(at: At, receiver: str) -> None:
    """Of ours and of others: each message is one row, that names its queue."""
    queues = [f"{at.own}.orders", f"{at.own}.invoices"]
    at.make(*queues)
    expected: dict[str, str | None] = {}
    for queue in queues:
        at.send(queue, *(f"ours {queue} {number}" for number in range(10)))
        at.foreign.send(queue, *at.raw(*(f"raw {queue} {number}" for number in range(10))))
        expected |= {f"{who} {queue} {number}": f"queue://{queue}" for who in ("ours", "raw") for number in range(10)}
    if at.broker.startswith("rabbitmq"):
        by_pika(at, queues[0], "pika")
        expected["pika"] = f"queue://{queues[0]}"
    with at.reader(receiver, destinations=",".join(queues)) as stream:
        stream.prepareForTriggerAvailableNow()
        found = places(stream, stream.initialOffset())
    assert found == expected
    at.empty(*queues)


REFUSED = (
    *((pair, "topic", "has no durable subscriptions") for pair in (*ALL_PAIRS[5:], "stomp-hornetq")),
    *((pair, "shared", "has no shared durable subscriptions") for pair in (*DURABLE[:2], *ALL_PAIRS[5:])),
    *((pair, "pattern", "has no consumers of a pattern of queues") for pair in (*ALL_PAIRS[2:], "stomp-hornetq")),
)


@pytest.mark.parametrize(
    ("at", "what", "said"),
    [
        pytest.param(*each, id=f"{each[0]}-{each[1]}", marks=() if each[0] in SHORT else pytest.mark.long_form)
        for each in REFUSED
    ],
    indirect=["at"],
)
def test_what_a_broker_cannot_do_is_refused_with_the_reason(at: At, what: str, said: str) -> None:
    given = {"destination": f"topic://{at.own}", "subscription": at.own, "clientId": at.own}
    receiver = "driver"
    if what == "shared":
        given = {"destination": f"topic://{at.own}", "subscription": at.own, "shared": "true"}
    if what == "pattern":
        given = {"destination": f"{at.own}.>"}
    with pytest.raises(UnsupportedError, match=said):
        check_broker(at.options(receiver, **given))
    with at.reader(receiver, **given) as stream, pytest.raises(UnsupportedError, match=said):
        stream.latestOffset(stream.initialOffset(), ALL)


def places(stream: Any, start: Any) -> dict[str, str | None]:
    """The destination by the body, of all rows until AvailableNow ends. Raises AssertionError: one came twice."""
    found: list[tuple[str, str | None]] = []
    stream.prepareForTriggerAvailableNow()
    while (end := stream.latestOffset(start, ALL)) != start:
        for each in stream.partitions(start, end):
            for batch in stream.read(each):
                found += zip(texts([batch]), batch.column("destination").to_pylist(), strict=True)
        stream.commit(end)
        start = end
    assert len(dict(found)) == len(found)
    return dict(found)


def by_pika(at: At, queue: str, body: str) -> None:
    """As pika publishes when nothing but durability is asked of it."""
    import pika

    with pika.BlockingConnection(pika.URLParameters(at.amqp)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.basic_publish("", queue, body.encode(), pika.BasicProperties(delivery_mode=2), mandatory=True)
