"""Calls of sessions, and of browsers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.client.aio.cancellation import of_consumers
from tests.client.aio.cancellation.cancelled import SOON
from tests.client.aio.cancellation.scenes import ALL, Scene, consumes

from redelivery import InDoubtError, TransactionRolledBackError, UnsupportedError

_SHORT = 0.01  # seconds


@contextmanager
def undone_by_a_loss(made: Scene) -> Iterator[None]:
    """Of the connection."""
    try:
        yield
    except TransactionRolledBackError:
        assert made.lost


async def commit(made: Scene) -> None:
    with undone_by_a_loss(made):
        await made.producer.send("x")
        await made.session.commit()


async def whole_or_not(made: Scene, error: BaseException | None) -> None:
    """All of it, or nothing; and the error says which, where it can."""
    outcome = None if error is None else error.__cause__
    await made.session.close()
    assert made.session not in made.connection._core._sessions
    pair = made.left(made.target), made.left(made.queue)
    assert pair in ((["x"], list(ALL[len(made.seen) :])), ([], list(ALL))), "all of it, or nothing"
    if not (isinstance(outcome, InDoubtError) or made.lost):
        assert bool(pair[0]) == (error is None), "it says so"


async def rollback(made: Scene) -> None:
    await made.producer.send("x")
    await made.session.rollback()


async def undone(made: Scene, _: BaseException | None) -> None:
    await made.session.close()
    assert made.session not in made.connection._core._sessions
    assert (made.left(made.target), made.left(made.queue)) == ([], list(ALL))


async def transaction(made: Scene) -> None:
    with undone_by_a_loss(made):
        async with made.session.transaction():
            await made.producer.send("x")
            await asyncio.sleep(0)


async def recover(made: Scene) -> None:
    await made.session.recover()


async def acknowledge(made: Scene) -> None:
    await of_consumers.holds(made)
    await made.session.acknowledge()


async def acknowledged_or_held(made: Scene, error: BaseException | None) -> None:
    await made.session.recover()
    await made.session.close()
    left = made.left(made.queue)
    assert left in (list(ALL), ["a", "c", "d"], ["b", "c", "d"], ["c", "d"])
    assert made.lost or error is not None or left != list(ALL)


async def close_session(made: Scene) -> None:
    await made.session.close()


async def close_until(made: Scene) -> None:
    await made.session._close_until(asyncio.get_running_loop().time() + SOON)


async def session_is_closed(made: Scene, _: BaseException | None) -> None:
    assert made.session.closed


async def wait_until_idle(made: Scene) -> None:
    assert await made.session._wait_until_idle(SOON)


async def make_consumer(made: Scene) -> None:
    await (await made.session.consumer(made.queue)).close()


async def make_consumer_block(made: Scene) -> None:
    async with made.session.consumer(made.queue):
        await asyncio.sleep(0)


async def make_producer(made: Scene) -> None:
    await made.session.producer(made.target)


async def durable_consumer(made: Scene) -> None:
    await (await made.session.durable_consumer(f"topic://{made.name}", "durable")).close()


async def shared_consumer(made: Scene) -> None:
    await (await made.session.shared_consumer(f"topic://{made.name}", "shared")).close()


async def shared_durable_consumer(made: Scene) -> None:
    await (await made.session.shared_durable_consumer(f"topic://{made.name}", "both")).close()


async def can_be_made_again(made: Scene, _: BaseException | None) -> None:
    """The name of the subscription is free."""
    made_again = await made.session.durable_consumer(f"topic://{made.name}", "durable")
    await made_again.close()


async def subscribes(made: Scene) -> None:
    await consumes(made)
    await durable_consumer(made)


async def unsubscribe(made: Scene) -> None:
    await made.session.unsubscribe("durable")


async def declare(made: Scene) -> None:
    with pytest.raises(UnsupportedError):  # the embedded broker makes a queue when it is used
        await made.session.declare(made.name)


async def delete(made: Scene) -> None:
    with pytest.raises(UnsupportedError):
        await made.session.delete(made.name)


async def temporary_queue(made: Scene) -> None:
    await made.session.temporary_queue()


async def temporary_topic(made: Scene) -> None:
    await made.session.temporary_topic()


async def browse(made: Scene) -> None:
    async with made.session.browser(made.queue) as browser:
        found = [message async for message in browser]
        await found[0].acknowledge()
        assert len(found) >= 2


async def begins_to_browse(made: Scene) -> None:
    await consumes(made)
    browser = await made.session.browser(made.queue)
    async for _ in browser:
        break
    made.others["browser"] = browser


async def close_browser(made: Scene) -> None:
    await made.others["browser"].close()
