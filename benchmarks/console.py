"""Measures how long the console takes for its first page, with a long dead-letter queue on the embedded broker."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from starlette.testclient import TestClient

import redelivery
from benchmarks.record import Measure
from benchmarks.senders import fill
from redelivery.broker import EmbeddedBroker
from redelivery.web.application import console
from redelivery.web.asked import ConsoleSettings
from redelivery.web.sites import sites_of

LETTERS: Final = 100_000
_QUEUE: Final = "ActiveMQ.DLQ"
_CAUSE: Final = "Delivery[7] exceeds redelivery policy limit, cause:ValueError: order {} has no price"


def first_page(rounds: int, scale: float) -> Iterator[tuple[str, Measure]]:
    """Measure the first page: the median, over each protocol, with a connection of its own for each."""
    letters = max(1000, int(LETTERS * scale))
    with EmbeddedBroker("console-bench", stomp_port=0, amqp_port=0) as broker, tempfile.TemporaryDirectory() as folder:
        with redelivery.connect(broker.vm_url) as connection:
            fill(connection, _QUEUE, map(_letter, range(letters)))
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


def _letter(number: int) -> redelivery.Message:
    said = {"dlqDeliveryFailureCause": _CAUSE.format(number), "originalDestination": "queue://orders"}
    return redelivery.Message(f'{{"order": {number}}}', properties=said)
