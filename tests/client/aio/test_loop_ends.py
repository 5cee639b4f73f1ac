"""The loop ends while a connection is open: its tasks end with it, and nothing of it serves another loop."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.client.aio.cancellation.cancelled import POLICY, SOON, soon
from tests.client.aio.looped import run

from redelivery import IllegalStateError, aio
from redelivery.broker import EmbeddedBroker


@pytest.mark.parametrize("busy", [False, True], ids=["waits", "in its callback"])
def test_a_listener_ends_with_its_loop_and_its_message_is_redelivered(url: str, busy: bool) -> None:
    """As `asyncio.run` ends: it cancels every task, and waits for them without a bound."""

    async def work() -> None:
        entered = asyncio.Event()

        async def callback(_: aio.Message) -> None:
            entered.set()
            await asyncio.sleep(3600)

        ours = asyncio.all_tasks()
        async with aio.connect(url, redelivery_policy=POLICY) as beside:
            connection = await aio.connect(url, redelivery_policy=POLICY)
            session = await connection.session()
            await (await session.consumer("in")).listen(callback)
            async with beside.publisher() as publisher:
                if busy:
                    await publisher.send("a", "in")
                    await asyncio.wait_for(entered.wait(), SOON)
                for _ in range(2):  # the second time for what the first one may have begun
                    tasks = asyncio.all_tasks() - ours
                    for task in tasks:
                        task.cancel()
                    if tasks:
                        assert (await asyncio.wait(tasks, timeout=SOON))[1] == set()
                assert asyncio.all_tasks() == ours
                if not busy:
                    await publisher.send("a", "in")
            await connection.close()
            async with beside.session() as other, other.consumer("in") as consumer:
                assert (await soon(consumer)).body == "a"

    run(work())


def test_a_callback_that_raises_a_cancellation_of_its_own_has_failed_and_listening_goes_on(url: str) -> None:
    async def work() -> None:
        counts: asyncio.Queue[int] = asyncio.Queue()

        async def callback(message: aio.Message) -> None:
            counts.put_nowait(message.delivery_count)
            if message.delivery_count == 1:
                gone = asyncio.get_running_loop().create_future()
                gone.cancel()
                await gone

        async with aio.connect(url, redelivery_policy=POLICY) as connection, connection.session() as session:
            await (await session.consumer("in")).listen(callback)
            async with connection.publisher() as publisher:
                await publisher.send("a", "in")
            assert [await asyncio.wait_for(counts.get(), SOON) for _ in range(2)] == [1, 2]

    run(work())


def test_a_connection_of_a_loop_that_is_closed_says_so_in_another(url: str) -> None:
    kept: list[Any] = []

    async def first() -> None:
        connection = await aio.connect(url)
        session = await connection.session()
        kept.extend((connection, session, await session.consumer("in"), await session.producer("in")))

    async def listener(_: aio.Message) -> None: ...

    async def second() -> None:
        connection, session, consumer, producer = kept
        calls: tuple[Callable[[], Awaitable[object]], ...] = (
            lambda: producer.send("a"),
            lambda: consumer.receive(0),
            lambda: consumer.receive(1),
            lambda: consumer.listen(listener),
            lambda: session.consumer("in"),
            lambda: session.browser("in"),
            lambda: connection.session(),
            lambda: connection.request("in", "a", 1),
            lambda: connection.stop(),
            lambda: consumer.close(),
            lambda: session.close(),
            lambda: connection.close(),
        )
        for call in calls:
            with pytest.raises(IllegalStateError, match=r"event loop is closed; close each connection before"):
                await call()
        assert not consumer.closed

    run(first())
    run(second())
    kept.clear()
    with pytest.warns(ResourceWarning, match="dropped without close"):
        gc.collect()


def test_a_broker_ends_when_the_loop_of_its_listener_has_ended(broker: EmbeddedBroker) -> None:
    """The task waits still: nobody has cancelled it."""
    kept: list[Any] = []

    async def listener(_: aio.Message) -> None: ...

    async def work() -> None:
        kept.append(await aio.connect(broker.vm_url))
        session = await kept[0].session()
        await (await session.consumer("in")).listen(listener)
        await asyncio.sleep(0.01)

    loop = asyncio.new_event_loop()
    loop.run_until_complete(work())
    loop.close()
    broker.close()
    kept.clear()
    gc.collect()
