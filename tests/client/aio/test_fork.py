"""A child after fork() with connections of asyncio: they are the parent's, and say so."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable

import pytest

from redelivery import ConnectionLostError, aio


def failures(calls: list[Callable[[], Awaitable[object]]]) -> int:
    """How many of them say that the connection is the parent's; no loop runs them."""
    found = 0
    for call in calls:
        awaiting = call().__await__()
        try:
            next(awaiting)
        except ConnectionLostError as error:
            found += "made before fork() and is the parent's" in str(error)
    return found


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_child_learns_that_the_connection_is_the_parents(url: str) -> None:
    async def work() -> None:
        async with aio.connect(url) as connection, connection.session() as session:
            consumer, producer = await session.consumer("orders"), await session.producer("orders")
            calls: list[Callable[[], Awaitable[object]]] = [
                consumer.receive,
                lambda: producer.send("of the child"),
                lambda: connection.session(),
                lambda: session.consumer("invoices"),
                connection.start,
            ]
            child = os.fork()
            if not child:  # no test's code may go on here
                os._exit(failures(calls))
            status = await asyncio.to_thread(os.waitpid, child, 0)
            assert os.waitstatus_to_exitcode(status[1]) == len(calls)
            await producer.send("of the parent")
            message = await consumer.receive(timeout=10)
            assert message is not None
            assert message.body == "of the parent"

    asyncio.run(work())
