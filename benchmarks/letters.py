"""Measures what an operator of dead letters waits for.

`dlq groups`, `dlq replay` with its receipt beside a session's bare loop over the same letters, and the first page of
the console on the embedded broker.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from uuid import uuid4

from starlette.testclient import TestClient
from typer.testing import CliRunner

import redelivery
from benchmarks.machine import BenchmarkError
from benchmarks.record import Measure
from benchmarks.senders import fill
from redelivery.broker import EmbeddedBroker
from redelivery.cli.app import app
from redelivery.web.application import console
from redelivery.web.asked import ConsoleSettings
from redelivery.web.sites import sites_of

LETTERS: Final = 5000
MANY: Final = 100_000  # of the console
PAIRS: Final = {"activemq": ("stomp", "amqp"), "artemis": ("amqp",)}
_BATCH: Final = 50  # letters of a transaction of the bare loop
_CAUSE: Final = "Delivery[1] exceeds redelivery policy limit:RedeliveryPolicy, cause:"
_ERRORS: Final = ("TimeoutError: bank", "TypeError: order {} has no price", "LookupError: no {}", "PermissionError: no")


def commands(key: str, title: str, url: str, rounds: int, scale: float) -> Iterator[tuple[str, Measure]]:
    """Measure them: the medians, and of the rounds the median ratio."""
    letters, names = max(100, int(LETTERS * scale)), [f"letters.{uuid4().hex[:8]}.{each}" for each in "abc"]
    grouped, rates, ratios = list[float](), list[float](), list[float]()
    with tempfile.TemporaryDirectory() as folder, redelivery.connect(url) as connection:
        for _ in range(rounds):
            fill(connection, names[0], (_letter(number, names[2]) for number in range(letters)))
            bare = _moved(connection, names[0], names[1], letters)
            grouped.append(_run(url, folder, "groups", names[1]))
            replayed = _run(url, folder, "replay", names[1])
            with connection.session() as session, session.consumer(names[2]) as consumer:
                back = len(consumer.receive_many(letters, 30))
            if back != letters:
                raise BenchmarkError(f"{back} of {letters} letters were replayed")
            rates.append(letters / replayed)
            ratios.append(bare / replayed)
    said = f"{letters:,} letters, {title}"
    yield f"groups-{key}", Measure(f"dlq groups, {said}", statistics.median(grouped), "s")
    yield f"replay-{key}", Measure(f"dlq replay, {said}", statistics.median(rates), "letters/s")
    title = f"dlq replay beside a bare loop of {_BATCH} a commit, {said}"
    yield f"replay-ratio-{key}", Measure(title, statistics.median(ratios), "times as fast")


def first_page(rounds: int, scale: float) -> Iterator[tuple[str, Measure]]:
    """Measure the first page: the median, over each protocol, with a connection of its own for each."""
    letters = max(1000, int(MANY * scale))
    with EmbeddedBroker("console-bench", stomp_port=0, amqp_port=0) as broker, tempfile.TemporaryDirectory() as folder:
        with redelivery.connect(broker.vm_url) as connection:
            fill(connection, "ActiveMQ.DLQ", (_letter(number, "orders") for number in range(letters)))
        urls = {"vm": broker.vm_url, "stomp": broker.stomp_url, "amqp": broker.amqp_url}
        settings = ConsoleSettings(sites_of((url, {}) for url in urls.values()), Path(folder), Path(folder))
        with TestClient(console(settings), base_url="http://127.0.0.1") as client:
            for (protocol, _), site in zip(urls.items(), settings.sites, strict=True):
                took = []
                for _ in range(max(3, rounds) + 1):
                    began = time.perf_counter()
                    page = client.get(f"/{site}/")
                    took.append(time.perf_counter() - began)
                    assert page.status_code == 200, page.text
                title = f"console, first page with {letters:,} letters, {protocol}"
                yield f"console-{protocol}", Measure(title, statistics.median(took[1:]) * 1000, "ms")


def _run(url: str, folder: str, command: str, queue: str) -> float:
    began = time.perf_counter()
    done = CliRunner(env={"REDELIVERY_URL": url, "REDELIVERY_RECEIPTS": folder}).invoke(
        app, ["dlq", command, queue, "--yes"]
    )
    if done.exit_code:
        raise BenchmarkError(f"dlq {command}: {done.output}")
    return time.perf_counter() - began


def _letter(number: int, origin: str) -> redelivery.Message:
    cause = _CAUSE + _ERRORS[number % len(_ERRORS)].format(number)
    said = {"originalDestination": f"queue://{origin}", "dlqDeliveryFailureCause": cause}
    return redelivery.Message(f'{{"order": {number}}}', properties=said)


def _moved(connection: redelivery.Connection, source: str, target: str, letters: int) -> float:
    """Return the seconds of the bare loop."""
    with connection.session("transacted") as session:
        consumer, producer = session.consumer(source, prefetch=_BATCH), session.producer(target)
        began = time.perf_counter()
        for number in range(letters):
            if (letter := consumer.receive(timeout=30)) is None:
                raise BenchmarkError(f"{number} of {letters} letters came")
            producer.send(letter.copy())
            if number % _BATCH == _BATCH - 1:
                session.commit()
        session.commit()
        return time.perf_counter() - began
