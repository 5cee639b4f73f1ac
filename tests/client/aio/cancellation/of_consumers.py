"""Calls of consumers, and of what they receive."""

from __future__ import annotations

import asyncio

from tests.client.aio.cancellation.cancelled import SOON
from tests.client.aio.cancellation.scenes import Scene, consumes

from redelivery import aio

_SHORT = 0.01  # seconds


async def receive(made: Scene) -> None:
    await made.receive()


async def receive_nowait(made: Scene) -> None:
    message = await made.consumer.receive_nowait()
    if message is not None:
        made.note(message)


async def receive_many(made: Scene) -> None:
    for message in await made.consumer.receive_many(2, 5 * _SHORT):
        made.note(message)


async def receive_body(made: Scene) -> None:
    made.seen.append(await made.consumer.receive_body(str, SOON))


async def async_for(made: Scene) -> None:
    async for message in made.consumer:
        made.note(message)
        break


async def waits_in_vain(made: Scene) -> None:
    """The time-out of a receive ends it, where nothing cancels it."""
    async with made.session.consumer(f"empty.{made.name}") as consumer:
        assert await consumer.receive(_SHORT) is None


async def listen(made: Scene) -> None:
    await made.consumer.listen(made.listen)


async def begins_to_listen(made: Scene) -> None:
    """With a callback that is inside."""
    await consumes(made)
    entered = asyncio.Event()

    async def callback(message: aio.Message) -> None:
        entered.set()
        await asyncio.sleep(_SHORT)
        made.note(message)

    await made.consumer.listen(callback)
    await entered.wait()
    made.called = True


async def listen_none(made: Scene) -> None:
    await made.consumer.listen(None)


async def listens_no_more(made: Scene, _: BaseException | None) -> None:
    await made.consumer.listen(None)


async def close_consumer(made: Scene) -> None:
    await made.consumer.close()


async def consumer_is_closed(made: Scene, _: BaseException | None) -> None:
    assert made.consumer.closed


async def consumer_block(made: Scene) -> None:
    async with made.consumer:
        await asyncio.sleep(0)


async def holds(made: Scene) -> None:
    """With a prefetch of 0 it has received nothing yet."""
    if not made.messages:
        await made.receive()


async def acknowledge_message(made: Scene) -> None:
    await holds(made)
    await made.messages[-1].acknowledge()
