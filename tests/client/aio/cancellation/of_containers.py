"""Calls of listener containers."""

from __future__ import annotations

import asyncio

from tests.client.aio.cancellation.cancelled import SOON
from tests.client.aio.cancellation.checks import until
from tests.client.aio.cancellation.scenes import Scene

from redelivery import aio

_SHORT = 0.01  # seconds


async def has_a_container(made: Scene) -> None:
    async def handler(message: aio.Message) -> None:
        await asyncio.sleep(0)
        made.seen.append(message.body)

    made.others["container"] = made.connection.listener_container(made.queue, handler, concurrency=2)


async def start_container(made: Scene) -> None:
    await made.others["container"].start()


async def container_block(made: Scene) -> None:
    async with made.others["container"]:
        await asyncio.sleep(0)


async def run_container(made: Scene) -> None:
    """Until it is drained, by a task beside it."""

    async def drain() -> None:
        await asyncio.sleep(_SHORT)
        await made.others["container"].drain(SOON)

    draining = asyncio.create_task(drain())
    try:
        await made.others["container"].run()
    finally:
        await asyncio.wait((draining,))


async def works(made: Scene) -> None:
    """A container, one of whose handlers is inside."""
    entered = asyncio.Event()

    async def handler(message: aio.Message) -> None:
        entered.set()
        await asyncio.sleep(_SHORT)
        made.seen.append(message.body)

    made.others["container"] = container = made.connection.listener_container(made.queue, handler, concurrency=2)
    await container.start()
    await entered.wait()


async def drain_container(made: Scene) -> None:
    await made.others["container"].drain(SOON)


async def stop_container(made: Scene) -> None:
    made.again = True  # a handler that has returned, whose commit is what the stop cancels, is called once more
    await made.others["container"].stop()


async def container_has_ended(made: Scene, _: BaseException | None) -> None:
    """It takes nothing new, and its workers leave by themselves."""
    container = made.others["container"]
    await until(lambda: None if container.counters.workers == 0 else "it works still")


async def container_ends(made: Scene, _: BaseException | None) -> None:
    await made.others["container"].drain(SOON)
    assert made.others["container"].counters.workers == 0
