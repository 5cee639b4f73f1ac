"""What RabbitMQ 4 does not say: that a queue is full or a stream, and that nobody stores what is sent."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest
from tests.transports.test_rabbitmq_queues_live import Site

import redelivery
from redelivery import InDoubtError, InvalidDestinationError, Queue, ReconnectPolicy, ResourceAllocationError
from redelivery.testing.brokers.real import RealBroker


@pytest.fixture(params=["stomp", "amqp"])
def site(request: pytest.FixtureRequest, rabbitmq4: RealBroker) -> Iterator[Site]:
    pytest.importorskip("proton", reason="AMQP is missing")
    made = Site(rabbitmq4, request.param)
    yield made
    made.close()


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_a_full_queue_that_rejects_is_named(site: Site, kind: str) -> None:
    queue = site.make(
        f"full.{uuid4().hex[:8]}",
        durable=True,
        arguments={"x-queue-type": kind, "x-max-length": 2, "x-overflow": "reject-publish"},
    )
    error = InDoubtError if site.protocol == "stomp" else ResourceAllocationError
    with redelivery.connect(site.url) as connection, connection.session() as session:
        producer = session.producer(queue)
        producer.send("one")
        producer.send("two")
        if kind == "quorum":  # which takes one more
            producer.send("three")
        with pytest.raises(error, match=r"reject-publish|exceeded maximum length"):
            producer.send("too many")
    assert site.depth(queue) == (3 if kind == "quorum" else 2)


def test_over_stomp_it_ends_one_connection_for_each_send(site: Site) -> None:
    """A send that is in doubt is not repeated behind the application's back, so there is no storm."""
    if site.protocol == "amqp":
        pytest.skip("over AMQP it is an answer")
    queue = site.make(
        f"full.{uuid4().hex[:8]}", durable=True, arguments={"x-max-length": 1, "x-overflow": "reject-publish"}
    )
    seen: list[str] = []
    with (
        redelivery.connect(
            site.url, reconnect=ReconnectPolicy(), observer=lambda each: seen.append(type(each).__name__)
        ) as connection,
        connection.session() as session,
    ):
        producer = session.producer(queue)
        producer.send("one")
        for _ in range(3):
            with pytest.raises(InDoubtError, match="reject-publish"):
                producer.send("too many")
    assert seen.count("ConnectionLost") == 3


def test_what_no_queue_takes_has_no_destination(site: Site) -> None:
    if site.protocol == "stomp":
        pytest.skip("over STOMP nothing says so")
    with redelivery.connect(site.url) as connection, connection.session() as session:
        producer = session.producer(Queue(f"/exchange/amq.direct/{uuid4().hex}"))
        with pytest.raises(InvalidDestinationError, match="no queue takes what is sent there: it was not stored"):
            producer.send("lost")


def test_a_stream_is_said_to_be_one(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    name = f"full.{uuid4().hex[:8]}"
    for kind in ("stream", "quorum"):
        site.make(f"{name}.{kind}", durable=True, arguments={"x-queue-type": kind})
        with redelivery.connect(site.url) as connection, connection.session("client") as session:
            consumer = session.consumer(f"{name}.{kind}")
            session.producer(f"{name}.{kind}").send("x")
            message = consumer.receive(timeout=5)
            assert message is not None
            message.acknowledge()
    (line,) = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert line.startswith(f"queue://{name}.stream is a stream")
