"""RabbitMQ 4 hangs up on a STOMP frame of 4 MiB without a word: that is said before it is sent."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

import redelivery
from redelivery import ConfigError, ConnectionLostError, InDoubtError, ResourceAllocationError
from redelivery.testing.brokers.real import RealBroker

MOST = 4 << 20
SOON = 5.0


@pytest.fixture
def queue() -> str:
    return f"frames.{uuid4().hex[:8]}"


@pytest.mark.parametrize("transacted", [False, True], ids=["at once", "in a transaction"])
@pytest.mark.parametrize("body", ["x" * MOST, b"x" * MOST, "ü" * (MOST // 2)], ids=["text", "bytes", "two bytes each"])
def test_a_frame_that_the_broker_would_hang_up_on_is_refused_before_it_is_sent(
    rabbitmq4: RealBroker, queue: str, body: str | bytes, transacted: bool
) -> None:
    with (
        redelivery.connect(rabbitmq4.stomp_url) as connection,
        connection.session("transacted" if transacted else "client") as session,
    ):
        producer = session.producer(queue)
        producer.send("before")
        with pytest.raises(ResourceAllocationError, match=r"stomp\.max_frame_size") as refused:
            producer.send(body)
        assert "4194304" in str(refused.value)
        assert "nothing was sent" in str(refused.value)
        producer.send("after")
        if transacted:
            session.commit()
        consumer = session.consumer(queue)
        assert [getattr(consumer.receive(timeout=SOON), "body", None) for _ in "ab"] == ["before", "after"]
        session.commit() if transacted else session.acknowledge()


def test_the_largest_frame_is_sent_and_comes_back(rabbitmq4: RealBroker, queue: str) -> None:
    """Also where it is large by a header; by asyncio as well."""
    body = b"x" * (MOST - 1024)
    with redelivery.connect(rabbitmq4.stomp_url) as connection, connection.session() as session:
        session.producer(queue).send(body)
        with pytest.raises(ResourceAllocationError):
            session.producer(queue).send(body, properties={"long": "y" * 1024})
        message = session.consumer(queue).receive(timeout=2 * SOON)
        assert message is not None
        assert message.body == body

    async def refused() -> None:
        async with redelivery.aio.connect(rabbitmq4.stomp_url) as connection, connection.session() as session:
            producer = await session.producer(queue)
            with pytest.raises(ResourceAllocationError, match="nothing was sent"):
                await producer.send(b"x" * MOST)
            await producer.send("after")
            message = await (await session.consumer(queue)).receive(timeout=SOON)
            assert message is not None
            assert message.body == "after"

    asyncio.run(refused())


def test_who_knows_that_more_is_taken_may_say_so(rabbitmq4: RealBroker, queue: str) -> None:
    """This one does not take it, and says no word."""
    url = f"{rabbitmq4.stomp_url}?wireFormat.maxFrameSize={MOST + 1000}"
    with redelivery.connect(url) as connection, connection.session() as session:
        with pytest.raises(ResourceAllocationError, match=str(MOST + 1000)):
            session.producer(queue).send(b"x" * (MOST + 1000))
        with pytest.raises((ConnectionLostError, InDoubtError)):
            session.producer(queue).send(b"x" * (MOST + 100))


def test_rabbitmq_3_has_no_such_limit(rabbitmq: RealBroker, queue: str) -> None:
    with redelivery.connect(rabbitmq.stomp_url) as connection, connection.session() as session:
        session.producer(queue).send(b"x" * (MOST + 1000))
        message = session.consumer(queue).receive(timeout=2 * SOON)
        assert message is not None
        assert len(message.raw_body) == MOST + 1000


@pytest.mark.parametrize("size", ["0", "-1", "4M", "", "99999999999"])
def test_a_size_that_is_none_is_named(size: str) -> None:
    with pytest.raises(ConfigError, match=r"wireFormat\.maxFrameSize"):
        redelivery.connect(f"stomp://127.0.0.1:1?wireFormat.maxFrameSize={size}")
