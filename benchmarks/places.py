"""Fake peers and real brokers: each gives a queue with messages, and checks afterwards that a client did its work."""

from __future__ import annotations

import json
import select
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from typing import Any, Final, NamedTuple, Protocol
from uuid import uuid4

import redelivery
from benchmarks.machine import BenchmarkError
from redelivery.testing.brokers.real import RealBroker

ANSWER_TIMEOUT: Final = 60.0  # seconds
PATIENCE: Final = 0.2  # seconds in which what was not acknowledged would be redelivered
CHUNK: Final = 1000  # messages on their way to a queue
FAKE: Final = "fake"
PAIRS: Final = (
    ("activemq", ("stomp", "amqp")),
    ("artemis", ("stomp", "amqp")),
    ("qpid", ("amqp",)),
    ("rabbitmq", ("stomp", "amqp")),
    ("hornetq", ("stomp",)),
)
COUNTED: Final = {"stomp": ("SEND", "ACK"), "amqp": ("transfers", "accepted")}  # as fake peers call sent, and acked


class Names(NamedTuple):
    """The names of a queue for a raw client.

    ``prefix``: of a destination; ``existing``: of one that is there already, where that differs. ``capability``: of an
    AMQP terminus. ``send``, ``subscribe``: headers of STOMP; ``host``: of its CONNECT.
    """

    prefix: str = ""
    existing: str | None = None
    capability: str | None = None
    send: Mapping[str, str] = {}
    subscribe: Mapping[str, str] = {}
    host: str | None = None

    def there(self, queue: str) -> str:
        """Return the address of a queue that exists."""
        return (self.prefix if self.existing is None else self.existing) + queue


_NAMES: Final = {
    "stomp/artemis": Names(send={"destination-type": "ANYCAST"}, subscribe={"subscription-type": "ANYCAST"}),
    "stomp/rabbitmq": Names("/queue/", host="/"),
    "stomp/hornetq": Names("jms.queue."),
    "amqp/activemq": Names(capability="queue"),
    "amqp/artemis": Names(capability="queue"),
    "amqp/rabbitmq": Names("/queue/", "/amq/queue/"),
}


def names(protocol: str, broker: str) -> Names:
    """Return how a raw client names a queue there."""
    return _NAMES.get(f"{protocol}/{broker}", Names("/queue/" if protocol == "stomp" else ""))


class Place(Protocol):
    """A peer that a contender is let loose on; ``broker`` is `FAKE` or a name of `PAIRS`."""

    protocol: str
    broker: str
    title: str
    url: str

    def prepare(self, messages: int, size: int = 1024, kind: str = "text") -> str:
        """Return the name of a queue that holds so many messages; 0 for one to send to."""

    def finish(self, queue: str, *, sent: int | None = None, acked: int | None = None) -> None:
        """After the client has left, check what arrived and leave nothing behind. Raises BenchmarkError."""


def key(place: Place) -> str:
    """Return a name as ``amqp/artemis``."""
    return f"{place.protocol}/{place.broker}"


def read_line(process: subprocess.Popen[bytes], what: str) -> str:
    """Return the next line that a child writes, waited for at most ANSWER_TIMEOUT."""
    assert process.stdout is not None, "started with a pipe"
    if not select.select([process.stdout], [], [], ANSWER_TIMEOUT)[0]:
        raise BenchmarkError(f"{what} wrote nothing for {ANSWER_TIMEOUT:.0f} s")
    line = process.stdout.readline()
    if not line:
        raise BenchmarkError(f"{what} has ended with code {process.wait()}")
    return line.decode()


class FakePlace:
    """A module of `benchmarks.peers` in its own process."""

    broker = FAKE

    def __init__(self, protocol: str, process: subprocess.Popen[bytes]) -> None:
        self.protocol, self.process = protocol, process
        self.title = "fake peer"
        self.url = f"{protocol}://127.0.0.1:{int(read_line(process, 'the fake peer'))}"

    def prepare(self, messages: int, size: int = 1024, kind: str = "text") -> str:
        return f"bench.{messages}.{size}.{kind}"

    def counts(self) -> dict[str, Any]:
        """Return what came over the connection that has ended."""
        found: dict[str, Any] = json.loads(read_line(self.process, "the fake peer"))
        return found

    def finish(self, queue: str, *, sent: int | None = None, acked: int | None = None) -> None:
        counts = self.counts()
        for name, wanted in zip(COUNTED[self.protocol], (sent, acked), strict=True):
            if wanted is not None and counts[name] != wanted:
                raise BenchmarkError(f"{queue}: the peer counted {name} {counts[name]} times instead of {wanted}")


@contextmanager
def fake_place(protocol: str) -> Iterator[FakePlace]:
    """Start a fake peer, and stop it."""
    command = [sys.executable, "-m", f"benchmarks.peers.{protocol}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0) as process:  # noqa: S603  a fixed command
        try:
            yield FakePlace(protocol, process)
        finally:
            process.terminate()


class BrokerPlace:
    """A running broker by one protocol; this library fills and empties its queues, outside the measured time."""

    def __init__(self, protocol: str, broker: RealBroker) -> None:
        self.protocol, self.broker, self.title = protocol, broker.name, broker.title
        self.url = broker.urls[protocol]
        self._prefix = f"redelivery.bench.{uuid4().hex[:8]}"
        self._numbers = count()

    def prepare(self, messages: int, size: int = 1024, kind: str = "text") -> str:
        assert kind == "text", "a real broker is given texts only"
        queue = f"{self._prefix}.{next(self._numbers)}"
        if messages:
            with redelivery.connect(self.url) as connection, connection.session() as session:
                producer = session.producer(queue, persistent=False)
                for first in range(0, messages, CHUNK):
                    sent = [producer.send_async("x" * size) for _ in range(first, min(messages, first + CHUNK))]
                    for each in sent:
                        each.result(ANSWER_TIMEOUT)
        return queue

    def finish(self, queue: str, *, sent: int | None = None, acked: int | None = None) -> None:
        with redelivery.connect(self.url) as connection, connection.session("dups_ok") as session:
            consumer = session.consumer(queue)
            if acked is not None and consumer.receive(PATIENCE) is not None:
                raise BenchmarkError(f"{queue}: messages were not acknowledged")
            for _ in range(sent or 0):
                if consumer.receive(ANSWER_TIMEOUT) is None:
                    raise BenchmarkError(f"{queue}: not all of {sent} messages arrived")
