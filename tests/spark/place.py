"""An embedded broker, a folder for segments, and what is sent to the one and stands in the other."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import pytest

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.spark.log.store.opening import open_store
from redelivery.spark.log.wal import Wal
from redelivery.spark.options.query import SourceOptions

QUEUE = "orders"


class Place:
    """``protocol``: stomp or amqp."""

    def __init__(self, broker: EmbeddedBroker, folder: Path, protocol: str) -> None:
        self.broker = broker
        self.folder = folder
        self.url: str = getattr(broker, f"{protocol}_url")

    def options(self, **options: object) -> SourceOptions:
        """Of a source of `QUEUE`, with waits that suit a test."""
        given: dict[str, object] = {
            "url": self.url,
            "destination": QUEUE,
            "walLocation": str(self.folder),
            "linger": "20 ms",
            "pollInterval": "2 s",
            "availableNowIdle": "300 ms",
            "maxReconnectTime": "5 s",
            **options,
        }
        if "destinations" in options:
            del given["destination"]
        if given.get("receiver") == "executor":
            del given["linger"]  # which it refuses
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


def print_body(message: redelivery.Message) -> str:
    """A converter that prints, and so does a program that it runs."""
    print("converting", message.body)
    subprocess.run(["/bin/echo", f"a program says {message.body}"], check=True)  # noqa: S603  # a test's
    return str(message.body)


def ask(message: redelivery.Message) -> str:
    """A converter that reads standard input."""
    return f"{message.body}: {sys.stdin.read()!r}"


def leave(message: redelivery.Message) -> str:
    """A converter that ends its process."""
    sys.exit(f"I cannot stand {message.body}")


def damaged(damages: Sequence[Callable[..., None]], short: Collection[tuple[Callable[..., None], int]]) -> Any:
    """Each damage to each of three segments, as ``damage`` and ``which``; but for ``short``, in the form `all`."""
    cases = [
        pytest.param(
            damage,
            which,
            id=f"{damage.__name__}-{place}",
            marks=() if (damage, which) in short else pytest.mark.long_form,
        )
        for damage in damages
        for which, place in enumerate(("first", "middle", "last"))
    ]
    return pytest.mark.parametrize(("damage", "which"), cases)
