"""Fake peers and real brokers: each gives a queue with messages, and checks afterwards that a client did its work."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, Final, Protocol
from unittest.mock import patch
from uuid import uuid4

import redelivery
from benchmarks.machine import BenchmarkError
from redelivery.testing.brokers.real import RealBroker
from redelivery.transports.dialects import activemq, artemis, hornetq, qpid, rabbitmq
from redelivery.transports.dialects.amqp import AmqpDialect
from redelivery.transports.dialects.dialect import Dialect, StompDialect

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
_DIALECTS: Final[list[Dialect]] = [each.DIALECT for each in (artemis, hornetq, qpid, rabbitmq, activemq)]
COUNTED: Final = {"stomp": ("SEND", "ACK"), "amqp": ("transfers", "accepted")}  # as fake peers call sent, and acked


def stomp_at(broker: str) -> StompDialect:
    """Return how a raw client names a queue over STOMP; a fake peer says that it is ActiveMQ Classic."""
    return next(each.stomp for each in _DIALECTS if each.stomp and each.name in (broker, "activemq"))


def amqp_at(broker: str) -> AmqpDialect:
    """Return the same over AMQP 1.0."""
    return next(each.amqp for each in _DIALECTS if each.amqp and each.name in (broker, "activemq"))


def existing(broker: str) -> str:
    """Return what stands before the name of a queue that is there over AMQP."""
    return amqp_at(broker).existing_queue_prefix or amqp_at(broker).queue_prefix


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

    def __init__(self, protocol: str, process: subprocess.Popen[bytes], scheme: str) -> None:
        self.protocol, self.process = protocol, process
        self.title = "fake peer"
        self.url = f"{scheme}://127.0.0.1:{int(read_line(process, 'the fake peer'))}"

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
def fake_place(protocol: str, *, tls: bool = False) -> Iterator[FakePlace]:
    """Start a fake peer, and stop it. With TLS, this process trusts its certificate meanwhile."""
    command = [sys.executable, "-m", f"benchmarks.peers.{protocol}"]
    with tempfile.TemporaryDirectory() as folder, patch.dict(os.environ):
        if tls:
            os.environ["SSL_CERT_FILE"] = _certificate(folder)
            command.append(os.environ["SSL_CERT_FILE"])
        with subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0) as process:  # noqa: S603  a fixed command
            try:
                yield FakePlace(protocol, process, f"{protocol}+ssl" if tls else protocol)
            finally:
                process.terminate()


def _certificate(folder: str) -> str:
    """Make a self-signed certificate for 127.0.0.1; return the file with it and its key."""
    file, key = f"{folder}/peer.pem", ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    whose = ("-subj", "/CN=fake peer", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2")
    command = ["openssl", "req", "-x509", *key, *whose, "-keyout", file, "-out", file]
    subprocess.run(command, check=True, capture_output=True, timeout=ANSWER_TIMEOUT)  # noqa: S603  # of this module
    return file


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
        with redelivery.connect(self.url) as connection, connection.session() as session:
            producer = session.producer(queue, persistent=False)
            if not messages:  # the same queue for all who send: RabbitMQ makes one that is not durable for qpid-jms
                producer.send("made")
                session.consumer(queue).receive(ANSWER_TIMEOUT)
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
