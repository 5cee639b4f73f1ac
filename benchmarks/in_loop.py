"""``python -m benchmarks.in_loop``: processor time per message with asyncio, as a ratio to that with threads.

The peer of `in_thread` acts where the event loop would wait, less its own time; both are measured in turns. As there,
no scheduler decides what is measured; over AMQP one does, as in `in_amqp`. A window of sends is no case of asyncio,
whose producers have no ``send_async``.
"""

from __future__ import annotations

import asyncio
import gc
import selectors
import time
from collections.abc import Awaitable, Callable
from contextlib import closing, nullcontext
from cProfile import Profile
from statistics import median
from typing import Final

import redelivery
from benchmarks import in_amqp, in_thread
from benchmarks.in_thread import _MANY, _SIZE, _WAIT, PARTS, Peer
from benchmarks.places import FakePlace, fake_place

MESSAGES: Final = 20_000
ROUNDS: Final = 5
_STOMP: Final = ("auto", "auto-many", "individual", "dups-ok", "commit-100", "commit-10", "commit-1", "send")
CASES: Final = (*_STOMP, "amqp-auto", "amqp-individual", "amqp-send")
Run = Callable[[int], Awaitable[None]]


class ActingSelector(selectors.DefaultSelector):  # type: ignore[valid-type, misc, unused-ignore]  # the system's
    """Lets the peer act when nothing is there to be read."""

    peer: Peer

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout != 0:  # a loop of its own would look only once
            began = time.thread_time()
            if not super().select(0):
                self.peer.act()
            self.peer.spent += time.thread_time() - began
        return super().select(timeout)


def measure_loop(case: str, messages: int, profiler: Profile | None = None) -> list[float]:
    """Microseconds of processor per message, of each part of the run; as `in_thread.measure`. ``case``: of `CASES`."""
    if case in in_amqp.CASES:
        with fake_place("amqp") as place:
            asyncio.run(_once(place, case, messages // PARTS, None))  # loads what is needed
            return [asyncio.run(_once(place, case, messages // PARTS, profiler)) for _ in range(PARTS)]
    selector = ActingSelector()
    with (
        closing(Peer()) as selector.peer,
        asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner,
    ):
        return runner.run(_measured(case, messages, selector.peer, profiler))


async def _measured(case: str, messages: int, peer: Peer, profiler: Profile | None) -> list[float]:
    url = f"stomp://127.0.0.1:{peer.port}"
    async with redelivery.aio.connect(
        url, dialect="activemq", prefetch=1000, close_timeout=1, heartbeat=0
    ) as connection:
        run = await _prepared(connection, case, "x")
        await run(messages // PARTS)
        found = []
        for _ in range(PARTS):
            gc.collect()
            began, spent = time.process_time(), peer.spent
            with profiler or nullcontext():
                await run(messages // PARTS)
            found.append((time.process_time() - began - (peer.spent - spent)) / (messages // PARTS) * 1e6)
        return found


async def _once(place: FakePlace, case: str, messages: int, profiler: Profile | None) -> float:
    sends = "send" in case
    queue = place.prepare(0 if sends else messages)
    async with redelivery.aio.connect(place.url) as connection:
        run = await _prepared(connection, case.removeprefix("amqp-"), queue)
        gc.collect()
        began = time.process_time()
        with profiler or nullcontext():
            await run(messages)
        spent = time.process_time() - began
    place.finish(queue, **{"sent" if sends else "acked": messages})
    return spent / messages * 1e6


async def _prepared(connection: redelivery.aio.Connection, case: str, queue: str) -> Run:
    if case == "send":
        return await _sending(connection, queue)
    return await (_receiving_many(connection, queue) if case == "auto-many" else _receiving(connection, case, queue))


async def _receiving(connection: redelivery.aio.Connection, case: str, queue: str) -> Run:
    name, _, size = case.partition("-")
    batch = int(size) if name == "commit" else 0
    session = await connection.session("transacted" if batch else case.replace("-", "_"))
    consumer = await session.consumer(queue)

    async def run(messages: int) -> None:
        for number in range(1, messages + 1):
            message = await consumer.receive(_WAIT)
            assert message is not None, "the peer sends for ever"
            _ = message.message_id, message.body
            if case == "individual":
                await message.acknowledge()
            elif batch and number % batch == 0:
                await session.commit()
        if batch:
            await session.commit()

    return run


async def _receiving_many(connection: redelivery.aio.Connection, queue: str) -> Run:
    consumer = await (await connection.session("auto")).consumer(queue)

    async def run(messages: int) -> None:
        left = messages
        while left:
            found = await consumer.receive_many(min(_MANY, left), _WAIT)
            assert found, "the peer sends for ever"
            for message in found:
                _ = message.message_id, message.body
            left -= len(found)

    return run


async def _sending(connection: redelivery.aio.Connection, queue: str) -> Run:
    producer = await (await connection.session()).producer(queue)
    body = "x" * _SIZE

    async def run(messages: int) -> None:
        for _ in range(messages):
            await producer.send(body)

    return run


def main() -> None:
    print(f"{'case':16}{'threads':>10}{'asyncio':>10}{'ratio':>8}   µs of processor per message, {ROUNDS} rounds")
    for case in CASES:
        measure = (in_amqp if case in in_amqp.CASES else in_thread).measure
        threads: list[float] = []
        loops: list[float] = []
        for _ in range(ROUNDS):
            threads.append(median(measure(case, MESSAGES)))
            loops.append(median(measure_loop(case, MESSAGES)))
        print(
            f"{case:16}{median(threads):10.2f}{median(loops):10.2f}{median(loops) / median(threads):8.2f}", flush=True
        )


if __name__ == "__main__":
    main()
