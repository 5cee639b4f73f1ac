"""Calls of producers, publishers and connections."""

from __future__ import annotations

from tests.client.aio.cancellation.cancelled import SOON
from tests.client.aio.cancellation.checks import until
from tests.client.aio.cancellation.scenes import Scene, consumes

from redelivery import ConnectError, InDoubtError, ResourceAllocationError, aio

_SHORT = 0.01  # seconds


async def send(made: Scene) -> None:
    await made.producer.send("x")


async def send_unconfirmed(made: Scene) -> None:
    await made.producer.send("x", persistent=False)


async def in_doubt(made: Scene, error: BaseException | None) -> None:
    if error is not None and error.__cause__ is not None:
        assert isinstance(error.__cause__, (InDoubtError, ResourceAllocationError))
        if isinstance(error.__cause__, ResourceAllocationError):  # AMQP gave no credit yet
            assert made.left(made.target) == [], "nothing was sent"
    await until(lambda: None if error is not None or made.left(made.target) == ["x"] else "it did not come")
    assert made.left(made.target) in (["x"], [])


async def close_producer(made: Scene) -> None:
    producer = await made.session.producer(made.target)
    await producer.close()


async def makes_a_publisher(made: Scene) -> None:
    await consumes(made)
    made.others["publisher"] = await made.connection.publisher()


async def publish(made: Scene) -> None:
    await made.others["publisher"].send("x", made.target)


async def can_publish(made: Scene, error: BaseException | None) -> None:
    await in_doubt(made, error)
    await made.others["publisher"].send("last", made.target)
    await made.others["publisher"].send("later", made.target)
    assert made.left(made.target)[-2:] == ["last", "later"]
    assert len(made.others["publisher"]._sessions) == 1, "one send at a time needs one session"


async def make_publisher(made: Scene) -> None:
    async with made.connection.publisher() as publisher:
        await publisher.send("x", made.target)


async def has_published(made: Scene) -> None:
    await makes_a_publisher(made)
    await made.others["publisher"].send("x", made.target)


async def close_publisher(made: Scene) -> None:
    await made.others["publisher"].close()


async def serves(made: Scene) -> None:
    """Beside it somebody answers requests."""
    await consumes(made)
    served = await aio.connect(made.broker.vm_url)
    session = await served.session()
    consumer, producer = await session.consumer(f"requests.{made.name}"), await session.producer()

    async def answer(message: aio.Message) -> None:
        await producer.send("answer", message.reply_to, correlation_id=message.correlation_id)

    await consumer.listen(answer)
    made.others["server"] = served


async def request(made: Scene) -> None:
    reply = await made.connection.request(f"requests.{made.name}", "question", SOON)
    assert reply.body == "answer"


async def can_ask_again(made: Scene, _: BaseException | None) -> None:
    await request(made)
    await made.others["server"].close()


async def connect(made: Scene) -> None:
    try:
        await (await aio.connect(made.url)).close()
    except ConnectError:
        assert made.lost


async def connect_block(made: Scene) -> None:
    try:
        async with aio.ConnectionFactory(made.url).create_connection() as connection:
            assert connection.connected
    except ConnectError:
        assert made.lost


async def make_session(made: Scene) -> None:
    await made.connection.session("client")


async def start(made: Scene) -> None:
    await made.connection.start()


async def is_stopped(made: Scene) -> None:
    await consumes(made)
    await made.connection.stop()


async def is_started(made: Scene, _: BaseException | None) -> None:
    await made.connection.start()


async def stop(made: Scene) -> None:
    await made.connection.stop()


async def wait(made: Scene) -> None:
    assert not await made.connection.wait(_SHORT)


async def await_connection(made: Scene) -> None:
    await made.connection._core.await_connection("it")


async def close_connection(made: Scene) -> None:
    await made.connection.close()


async def connection_is_closed(made: Scene, _: BaseException | None) -> None:
    assert made.connection.closed
