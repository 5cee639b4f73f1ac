"""On uvloop, where it is installed (the extra loop-test, in CI): the same programs, in debug mode."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from typing import Any, TypeAlias

import pytest
from tests.client.aio.cancellation.cancelled import SOON, soon
from tests.client.gated import QUICK, Site

from redelivery import aio

Run: TypeAlias = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture
def run() -> Run:
    try:
        import uvloop
    except ImportError:
        assert not os.environ.get("CI"), "not installed: uvloop; the extra `loop-test` has it"
        pytest.skip("not installed: uvloop (the extra loop-test)")

    def run(work: Coroutine[Any, Any, None]) -> None:
        problems: list[dict[str, Any]] = []

        async def main() -> None:
            loop = asyncio.get_running_loop()
            assert isinstance(loop, uvloop.Loop)
            loop.set_exception_handler(lambda _, context: problems.append(context))
            async with asyncio.timeout(60):
                await work

        with asyncio.Runner(loop_factory=uvloop.new_event_loop, debug=True) as runner:
            runner.run(main())
        assert problems == []

    return run


def test_messages_transactions_listeners_and_requests(url: str, run: Run) -> None:
    async def work() -> None:
        async with aio.connect(url) as connection, aio.connect(url) as service:

            async def answer(message: aio.Message) -> None:
                async with service.session() as session, session.producer(message.reply_to) as producer:
                    await producer.send(f"{message.body}!", correlation_id=message.correlation_id)

            async with connection.session("transacted") as session:
                producer, consumer = await session.producer("orders"), await session.consumer("orders")
                await producer.send("a")
                await session.commit()
                assert (await soon(consumer)).body == "a"
                await session.rollback()
                assert (await soon(consumer)).delivery_count == 2
                await session.commit()
            async with service.session() as session:
                await (await session.consumer("questions")).listen(answer)
                replies = (connection.request("questions", str(number), SOON) for number in range(20))
                assert [each.body for each in await asyncio.gather(*replies)] == [f"{n}!" for n in range(20)]

    run(work())


def test_a_cancelled_receive_leaves_the_message_and_its_count(url: str, run: Run) -> None:
    async def work() -> None:
        async with aio.connect(url) as connection, connection.session("individual") as session:
            consumer = await session.consumer("orders")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.02):
                    await consumer.receive()
            task = asyncio.create_task(consumer.receive())
            async with connection.publisher() as publisher:
                await publisher.send("a", "orders")
            task.cancel()
            await asyncio.wait({task})
            message = await soon(consumer) if task.cancelled() else await task
            assert message is not None
            assert (message.body, message.delivery_count) == ("a", 1)
            await message.acknowledge()

    run(work())


@pytest.mark.parametrize("protocol", ["stomp", "amqp"])
def test_a_connection_that_is_lost_comes_back(protocol: str, run: Run) -> None:
    if protocol == "amqp":
        pytest.importorskip("proton")

    async def work(site: Site) -> None:
        async with aio.connect(site.url, reconnect=QUICK) as connection, connection.session() as session:
            consumer, producer = await session.consumer("orders"), await session.producer("orders")
            for number in range(5):
                site.gate.shut(0.01)
                async with asyncio.timeout(SOON):
                    while connection.connected:
                        await asyncio.sleep(0.001)
                await producer.send(str(number))
                while (await soon(consumer)).body != str(number):
                    pass  # one whose acknowledgement was lost

    with ExitStack() as opened:
        run(work(Site(protocol, opened)))
