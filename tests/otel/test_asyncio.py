"""Spans of tasks' sessions: the same, in the context of the task that calls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from uuid import uuid4

from tests.client.shell import SOON
from tests.otel.collected import Collected, context, parent

from redelivery import RedeliveryPolicy, aio
from redelivery.broker import EmbeddedBroker

FAST = RedeliveryPolicy(initial_redelivery_delay=0.01, redelivery_delay=0.01)


def run(seen: Collected, work: Callable[[aio.Connection], Awaitable[None]]) -> None:
    async def main(url: str) -> None:
        async with aio.connect(url, observer=seen.observer, redelivery_policy=FAST) as connection:
            await work(connection)

    with EmbeddedBroker(f"otel-{uuid4().hex}", stomp_port=0) as broker:
        asyncio.run(main(broker.stomp_url), debug=True)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(SOON):
        while not holds():
            await asyncio.sleep(0.005)


def test_calls_of_several_tasks_belong_to_the_spans_of_their_tasks() -> None:
    seen = Collected()

    async def work(connection: aio.Connection) -> None:
        async def order(number: int) -> None:
            async with connection.session("transacted") as session:
                producer = await session.producer(f"orders-{number}")
                consumer = await session.consumer(f"orders-{number}")
                with seen.tracer.start_as_current_span(f"task {number}"):
                    await producer.send("two chairs")
                    await session.commit()
                    message = await consumer.receive(timeout=SOON)
                    assert message is not None
                    await session.rollback()
                    assert await consumer.receive(timeout=SOON)
                    await session.commit()

        await asyncio.gather(*(order(number) for number in range(3)))

    run(seen, work)
    for number in range(3):
        mine = seen.span(f"task {number}")
        names = [each.name for each in seen.spans if parent(each) == context(mine).span_id]
        orders = f"orders-{number}"
        assert names == [
            f"send {orders}",
            "commit",
            *(f"receive {orders}", f"rollback {orders}", f"receive {orders}", f"commit {orders}"),
        ]


def test_a_cancelled_handler_ends_its_span() -> None:
    seen, entered = Collected(), asyncio.Event()

    async def handler(_: aio.Message) -> None:
        entered.set()
        await asyncio.sleep(SOON)

    async def work(connection: aio.Connection) -> None:
        async with connection.session() as session:
            await (await session.producer("orders")).send("two chairs")
        container = connection.listener_container("orders", handler)
        await container.start()
        await entered.wait()
        await container.stop()

    run(seen, work)
    cancelled = seen.span("process orders")
    assert (cancelled.attributes or {})["error.type"] == "asyncio.exceptions.CancelledError"
