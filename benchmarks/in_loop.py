"""``python -m benchmarks.in_loop``: processor time per message with asyncio, as a ratio to that with threads.

The peer of `in_thread` acts where the event loop would wait, less its own time; both are measured in turns. As there,
no scheduler decides what is measured.
"""

from __future__ import annotations

import asyncio
import gc
import selectors
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from cProfile import Profile
from statistics import median
from typing import Final

import redelivery
from benchmarks.in_thread import _SIZE, _WAIT, PARTS, Peer, measure

MESSAGES: Final = 20_000
ROUNDS: Final = 5
CASES: Final = ("auto", "individual", "dups-ok", "commit-100", "commit-10", "commit-1", "send")
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
    """Microseconds of processor per message, of each part of the run; as `in_thread.measure`."""
    selector = ActingSelector()
    selector.peer = Peer()
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        return runner.run(_measured(case, messages, selector.peer, profiler))


async def _measured(case: str, messages: int, peer: Peer, profiler: Profile | None) -> list[float]:
    url = f"stomp://127.0.0.1:{peer.port}"
    async with redelivery.aio.connect(
        url, dialect="activemq", prefetch=1000, close_timeout=1, heartbeat=0
    ) as connection:
        run = await (_sending(connection) if case == "send" else _receiving(connection, case))
        await run(messages // PARTS)
        found = []
        for _ in range(PARTS):
            gc.collect()
            began, spent = time.process_time(), peer.spent
            with profiler or nullcontext():
                await run(messages // PARTS)
            found.append((time.process_time() - began - (peer.spent - spent)) / (messages // PARTS) * 1e6)
        return found


async def _receiving(connection: redelivery.aio.Connection, case: str) -> Run:
    name, _, size = case.partition("-")
    batch = int(size) if name == "commit" else 0
    session = await connection.session("transacted" if batch else case.replace("-", "_"))
    consumer = await session.consumer("x")

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


async def _sending(connection: redelivery.aio.Connection) -> Run:
    producer = await (await connection.session()).producer("x")
    body = "x" * _SIZE

    async def run(messages: int) -> None:
        for _ in range(messages):
            await producer.send(body)

    return run


def main() -> None:
    print(f"{'case':12}{'threads':>10}{'asyncio':>10}{'ratio':>8}   µs of processor per message, {ROUNDS} rounds")
    for case in CASES:
        threads: list[float] = []
        loops: list[float] = []
        for _ in range(ROUNDS):
            threads.append(median(measure(case, MESSAGES)))
            loops.append(median(measure_loop(case, MESSAGES)))
        print(
            f"{case:12}{median(threads):10.2f}{median(loops):10.2f}{median(loops) / median(threads):8.2f}", flush=True
        )


if __name__ == "__main__":
    main()
