"""``python -m benchmarks.spread``: the costs of sharing a backlog among a container's workers, on docs/benchmarks.md.

Each real broker that is to be measured runs already: REDELIVERY_ACTIVEMQ_URL=stomp://…,amqp://… and so on.
"""

from __future__ import annotations

import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final
from uuid import uuid4

import redelivery
from benchmarks.machine import HERE
from benchmarks.places import PAIRS
from benchmarks.targets import TEXT, paragraphs, table
from redelivery.broker import EmbeddedBroker

PAGE: Final = HERE / "docs" / "benchmarks.md"
TITLE: Final = "## What sharing a backlog costs"
MESSAGES, ROUNDS, WORKERS, BACKLOG = 1000, 3, 4, 40
WINDOWS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("as it is", {}),
    ("prefetch=0", {"prefetch": 0}),
    ("prefetch=100", {"prefetch": 100}),
)
PATIENCE: Final = 60.0  # seconds


def places(broker: EmbeddedBroker) -> Iterator[tuple[str, str]]:
    """Yield the name and URL of each pair that can be measured."""
    yield "vm", broker.vm_url
    yield "stomp-embedded", broker.stomp_url
    yield "amqp-embedded", broker.amqp_url
    for name, protocols in PAIRS:
        if name == "hornetq":
            continue  # nobody can set its window
        urls = os.environ.get(f"REDELIVERY_{name.upper()}_URL", "").split(",")
        for protocol in protocols:
            for url in urls:
                if url.startswith(f"{protocol}://"):
                    yield f"{protocol}-{name}", url


def took(url: str, mode: str, messages: int, work: Callable[[], object], options: dict[str, Any]) -> float:
    """Return seconds from the start of the container to the last message; infinity where they did not all come."""
    queue = f"benchmark.spread.{uuid4().hex}"
    left, end = threading.Semaphore(messages - 1), threading.Event()

    def handle(_: redelivery.Message) -> None:
        work()
        if not left.acquire(blocking=False):
            end.set()

    with redelivery.connect(url) as connection:
        with connection.session() as session:
            sent = [session.producer(queue).send_async(f"message {number}") for number in range(messages)]
            for each in sent:
                each.result(PATIENCE)
        container = connection.listener_container(queue, handle, concurrency=WORKERS, ack_mode=mode, **options)
        began = time.perf_counter()
        container.start()
        came = end.wait(PATIENCE)
        seconds = time.perf_counter() - began
        container.drain()
    return seconds if came else float("inf")


def row(name: str, url: str, mode: str) -> tuple[str, ...]:
    """Return the row of one pair and mode of acknowledging."""
    quick: dict[str, list[float]] = {label: [] for label, _ in WINDOWS}
    slow: dict[str, list[float]] = {label: [] for label, _ in WINDOWS}
    for _ in range(ROUNDS):
        for label, options in WINDOWS:
            quick[label].append(took(url, mode, MESSAGES, lambda: None, options))
            slow[label].append(took(url, mode, BACKLOG, lambda: time.sleep(0.02), options))
    speeds = [f"{MESSAGES / statistics.median(quick[label]):,.0f}" for label, _ in WINDOWS]
    times = [f"{statistics.median(slow[label]):.2f}" for label, _ in WINDOWS]
    return name, mode, *speeds, *times


def section(rows: list[tuple[str, ...]]) -> str:
    """Return the section of the page."""
    heads = ("pair", "ack_mode", *(f"a second, {label}" for label, _ in WINDOWS))
    heads += tuple(f"a backlog, {label}" for label, _ in WINDOWS)
    numbers = {"messages": MESSAGES, "rounds": ROUNDS, "cores": os.cpu_count(), "date": time.strftime("%Y-%m-%d")}
    return "\n".join([TITLE, "", *paragraphs(TEXT["spread"], **numbers), *table(heads, rows), ""])


def kept(page: str) -> str:
    """Return the section of a page, to be put behind another one; empty: it has none."""
    _, found, rest = page.partition(TITLE)
    return f"\n{found}{rest}" if found else ""


def main() -> None:
    rows = []
    with EmbeddedBroker("benchmark-spread", stomp_port=0, amqp_port=0) as broker:
        for name, url in places(broker):
            for mode in ("transacted", "client"):
                if mode == "transacted" and name == "amqp-rabbitmq":
                    continue  # it has no transactions
                rows.append(row(name, url, mode))
                print(*rows[-1], file=sys.stderr, flush=True)
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page.removesuffix(kept(page)) + "\n" + section(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
