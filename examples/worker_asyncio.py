"""A worker of an event loop, whose tasks share what is opened for the life of the program, and closed at its end.

python worker_asyncio.py stomp://user:password@localhost:61613 [number of tasks]
"""

import asyncio
import logging
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from redelivery import ReconnectPolicy, RedeliveryPolicy, aio


class Prices:
    """Stands for a pool of connections to a database."""

    async def of(self, article: str) -> float:
        await asyncio.sleep(0.01)
        return {"a chair": 12.5, "a table": 80.0}[article]

    async def close(self) -> None:
        logging.info("the prices are closed")


@asynccontextmanager
async def lifespan() -> AsyncIterator[Prices]:
    prices = Prices()
    try:
        yield prices
    finally:
        await prices.close()


async def main(url: str, tasks: int = 1) -> None:
    async with (
        lifespan() as prices,
        await aio.connect(
            url, reconnect=ReconnectPolicy(), redelivery_policy=RedeliveryPolicy(maximum_redeliveries=3)
        ) as connection,
    ):

        async def handle(order: aio.Message, session: aio.Session) -> None:
            invoice = f"{order.body}: {await prices.of(str(order.body)):.2f}"
            producer = await session.producer("invoices")
            await producer.send(invoice)

        await connection.listener_container("orders", handle, concurrency=tasks, prefetch=10, fatal=KeyError).run()


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    asyncio.run(main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1))
