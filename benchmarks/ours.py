"""redelivery by its public API, as a user would write it: the loops of all cases, with threads and with asyncio.

A case is ``auto``, ``unread`` (AUTO, nothing of the message is read), ``auto-many``, ``individual``, ``dups-ok``,
``commit-N``, ``send`` (one by one), ``send-N`` (N unanswered at a time) or ``send-N-properties``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Final

import redelivery
from benchmarks.machine import BenchmarkError, Spent, Stopwatch
from benchmarks.places import Place
from redelivery import AckMode

PATIENCE: Final = 120.0  # seconds
BODY: Final = "x" * 1024
MANY: Final = 100  # messages that are received at once
LATE: Final = BenchmarkError(f"a message did not come within {PATIENCE:.0f} s")
_PROPERTIES: Final = {"colour": "blue", "number": 1}


def mode_and_size(case: str) -> tuple[AckMode, int]:
    """Return the mode of a case, and its messages of a commit or window of a sender; 0 where there is none."""
    name, *rest = case.split("-")
    modes = {"individual": AckMode.INDIVIDUAL, "dups": AckMode.DUPS_OK, "commit": AckMode.TRANSACTED}
    return modes.get(name, AckMode.AUTO), int(rest[0]) if name in ("commit", "send") and rest else 0


def run(place: Place, queue: str, count: int, *, case: str) -> Spent:
    """Connect, do the case with so many messages, and return what they took."""
    with redelivery.connect(place.url) as connection:
        watch = Stopwatch()
        prepared(connection, queue, case)(count)
        return watch.stop()


def prepared(connection: redelivery.Connection, queue: str, case: str) -> Callable[[int], None]:
    """Return what does the case with so many messages, a number of batches."""
    mode, size = mode_and_size(case)
    session = connection.session(mode)
    if case.startswith("send"):
        properties = _PROPERTIES if case.endswith("properties") else None
        return partial(_sending, session.producer(queue), size, properties)
    consumer = session.consumer(queue)
    if case == "auto-many":
        return partial(_receiving_many, consumer)
    return partial(_receiving, session, consumer, mode, size, case != "unread")


def _receiving(
    session: redelivery.Session, consumer: redelivery.Consumer, mode: AckMode, batch: int, read: bool, messages: int
) -> None:
    receive = consumer.receive
    for number in range(1, messages + 1):
        message = receive(PATIENCE)
        if message is None:
            raise LATE
        if read:
            _ = message.message_id, message.body
        if mode is AckMode.INDIVIDUAL:
            message.acknowledge()
        elif batch and number % batch == 0:
            session.commit()


def _receiving_many(consumer: redelivery.Consumer, messages: int) -> None:
    while messages:
        found = consumer.receive_many(min(MANY, messages), PATIENCE)
        if not found:
            raise LATE
        for message in found:
            _ = message.message_id, message.body
        messages -= len(found)


def _sending(
    producer: redelivery.Producer, window: int, properties: Mapping[str, object] | None, messages: int
) -> None:
    flying: deque[Future[redelivery.Message]] = deque()
    for _ in range(messages):
        if not window:
            producer.send(BODY, properties=properties)
            continue
        if len(flying) == window:
            flying.popleft().result(PATIENCE)
        flying.append(producer.send_async(BODY, properties=properties))
    for future in flying:
        future.result(PATIENCE)


async def prepared_loop(
    connection: redelivery.aio.Connection, queue: str, case: str
) -> Callable[[int], Awaitable[None]]:
    """Return the same with asyncio, whose producers have no ``send_async``: there are no windows."""
    mode, batch = mode_and_size(case)
    session = await connection.session(mode)
    if case == "send":
        return partial(_sending_loop, await session.producer(queue))
    consumer = await session.consumer(queue)
    if case == "auto-many":
        return partial(_receiving_many_loop, consumer)
    return partial(_receiving_loop, session, consumer, mode, batch)


async def _receiving_loop(
    session: redelivery.aio.Session, consumer: redelivery.aio.Consumer, mode: AckMode, batch: int, messages: int
) -> None:
    for number in range(1, messages + 1):
        message = await consumer.receive(PATIENCE)
        if message is None:
            raise LATE
        _ = message.message_id, message.body
        if mode is AckMode.INDIVIDUAL:
            await message.acknowledge()
        elif batch and number % batch == 0:
            await session.commit()


async def _receiving_many_loop(consumer: redelivery.aio.Consumer, messages: int) -> None:
    while messages:
        found = await consumer.receive_many(min(MANY, messages), PATIENCE)
        if not found:
            raise LATE
        for message in found:
            _ = message.message_id, message.body
        messages -= len(found)


async def _sending_loop(producer: redelivery.aio.Producer, messages: int) -> None:
    for _ in range(messages):
        await producer.send(BODY)
