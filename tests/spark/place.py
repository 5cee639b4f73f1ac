"""An embedded broker, a folder for segments, and what is sent to the one and stands in the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.spark.options import SourceOptions
from redelivery.spark.store import open_store
from redelivery.spark.wal import Wal

QUEUE = "orders"


class Place:
    """``protocol``: stomp or amqp."""

    def __init__(self, broker: EmbeddedBroker, folder: Path, protocol: str) -> None:
        self.broker = broker
        self.folder = folder
        self.url: str = getattr(broker, f"{protocol}_url")

    def options(self, **options: object) -> SourceOptions:
        """Of a source of `QUEUE`, with waits that suit a test."""
        given = {
            "url": self.url,
            "destination": QUEUE,
            "walLocation": str(self.folder),
            "linger": "20 ms",
            "pollInterval": "2 s",
            "availableNowIdle": "300 ms",
            "maxReconnectTime": "5 s",
            **options,
        }
        return SourceOptions.parse({name: str(value) for name, value in given.items()})

    def wal(self) -> Wal:
        """The log, as another process sees it."""
        return Wal.open(open_store(str(self.folder)))

    def send(self, *bodies: Any, queue: str = QUEUE, **headers: Any) -> None:
        """One message each, confirmed."""
        with redelivery.connect(self.broker.vm_url) as connection, connection.session() as session:
            producer = session.producer(queue)
            for body in bodies:
                producer.send(body, **headers)

    def left(self, queue: str = QUEUE) -> list[Any]:
        """The bodies on a queue."""
        return [message.body for message in self.broker.messages(queue)]


def texts(batches: Any) -> list[str]:
    """The bodies of RecordBatches."""
    return [body.decode() for batch in batches for body in batch.column("body").to_pylist()]


def shout(message: redelivery.Message) -> str:
    """A converter that does not like some messages."""
    body: str = message.body
    if body.startswith("bad"):
        raise ValueError(f"no {body}")
    return body.upper()


def nothing_is_good(message: redelivery.Message) -> str:
    """A converter that likes no message."""
    raise ValueError(f"no {message.body}")
