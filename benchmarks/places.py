"""Where a case runs: a fake peer, or a real broker. Both give a queue with messages and check it afterwards."""

from __future__ import annotations

import json
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, Final, Protocol
from uuid import uuid4

from benchmarks.naming import AMQP, STOMP
from benchmarks.plain_amqp import PlainAmqp
from benchmarks.plain_stomp import PlainStomp
from benchmarks.results import BenchmarkError
from redelivery.testing.brokers.real import RealBroker

ANSWER_TIMEOUT = 60.0  # seconds
PATIENCE = 0.2  # seconds in which what was not acknowledged would be redelivered
FAKE: Final = "fake"
PAIRS: Final = (
    ("activemq", ("stomp", "amqp")),
    ("artemis", ("stomp", "amqp")),
    ("qpid", ("amqp",)),
    ("rabbitmq", ("stomp", "amqp")),
    ("hornetq", ("stomp",)),
)
COUNTED: Final = {"stomp": ("SEND", "ACK"), "amqp": ("transfers", "accepted")}  # what a fake peer calls sent, acked


class Place(Protocol):
    """What a contender is let loose on; ``broker`` is `FAKE` or a name of `PAIRS`."""

    protocol: str
    broker: str
    name: str
    url: str

    def prepare(self, messages: int, size: int = 1024, kind: str = "text") -> str:
        """The name of a queue that holds so many messages; 0 for one to send to."""

    def finish(self, queue: str, *, sent: int | None = None, acked: int | None = None) -> None:
        """After the client has left: check what arrived and leave nothing behind. Raises BenchmarkError."""


def key(place: Place) -> str:
    """As in ``amqp/artemis``."""
    return f"{place.protocol}/{place.broker}"


def read_line(process: subprocess.Popen[bytes], what: str) -> str:
    """The next line that a child writes, waited for at most ANSWER_TIMEOUT."""
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
        self.name = f"{protocol.upper()}, fake peer"
        self.url = f"{protocol}://127.0.0.1:{int(read_line(process, 'the fake peer'))}"

    def prepare(self, messages: int, size: int = 1024, kind: str = "text") -> str:
        return f"bench.{messages}.{size}.{kind}"

    def finish(self, queue: str, *, sent: int | None = None, acked: int | None = None) -> None:
        counts: dict[str, Any] = json.loads(read_line(self.process, "the fake peer"))
        for name, wanted in zip(COUNTED[self.protocol], (sent, acked), strict=True):
            if wanted is not None and counts[name] != wanted:
                raise BenchmarkError(f"{queue}: the peer counted {name} {counts[name]} times instead of {wanted}")


@contextmanager
def fake_place(protocol: str) -> Iterator[FakePlace]:
    """A fake peer, started and stopped."""
    command = [sys.executable, "-m", f"benchmarks.peers.{protocol}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0) as process:  # noqa: S603  a fixed command
        try:
            yield FakePlace(protocol, process)
        finally:
            process.terminate()


class BrokerPlace:
    """A running broker by one protocol."""

    def __init__(self, protocol: str, broker: RealBroker) -> None:
        self.protocol, self.broker = protocol, broker.name
        self.name = f"{protocol.upper()}, {broker.title}"
        self.url = broker.urls[protocol]
        self._plain: PlainStomp | PlainAmqp = (
            PlainStomp(self.url, STOMP[broker.name]) if protocol == "stomp" else PlainAmqp(self.url, AMQP[broker.name])
        )
        self._prefix = f"redelivery.bench.{uuid4().hex[:8]}"
        self._numbers = count()

    def prepare(self, messages: int, size: int = 1024, kind: str = "text") -> str:
        assert kind == "text", "a real broker is given texts only"
        queue = f"{self._prefix}.{next(self._numbers)}"
        if messages:
            self._plain.fill(queue, messages, size)
        return queue

    def finish(self, queue: str, *, sent: int | None = None, acked: int | None = None) -> None:
        if acked is not None and not self._plain.is_empty(queue, PATIENCE):
            raise BenchmarkError(f"{queue}: messages were not acknowledged")
        if sent is not None:
            self._plain.empty(queue, sent)
