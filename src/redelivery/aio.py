"""The same for asyncio: same names, same meaning; what speaks to the broker is awaited.

import redelivery

async def work():
    async with redelivery.aio.connect("vm://example") as connection, connection.session("transacted") as session:
        producer = await session.producer("orders")
        await producer.send("one")
        await session.commit()
        async with session.consumer("orders") as consumer:
            async for message in consumer:
                async with session.transaction():
                    ...
"""

from redelivery.client.aio.browser import QueueBrowser
from redelivery.client.aio.consumer import Consumer
from redelivery.client.aio.made import Message
from redelivery.client.aio.producer import Producer
from redelivery.client.aio.publisher import Publisher
from redelivery.client.aio.session import Session
from redelivery.client.containers.aio import ListenerContainer
from redelivery.client.entry.aio import Connection
from redelivery.client.entry.aio_factory import ConnectionFactory, connect

__all__ = [
    "Connection",
    "ConnectionFactory",
    "Consumer",
    "ListenerContainer",
    "Message",
    "Producer",
    "Publisher",
    "QueueBrowser",
    "Session",
    "connect",
]
