"""``python -m benchmarks.spread``: the costs of sharing a backlog among workers, as a section of docs/benchmarks.md."""

from __future__ import annotations

import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final
from uuid import uuid4

import redelivery
from benchmarks.figures import Figures, read
from benchmarks.places import PAIRS
from benchmarks.targets import TEXT, paragraphs, table
from redelivery.broker import EmbeddedBroker
from redelivery.testing.brokers.real import UnavailableError, running

RESULTS: Final = "docs/spread.json"
TITLE: Final = "What sharing a backlog costs"
MESSAGES, ROUNDS, WORKERS, BACKLOG = 1000, 3, 4, 40
WINDOWS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("as it is", {}),
    ("prefetch=0", {"prefetch": 0}),
    ("prefetch=100", {"prefetch": 100}),
)
PATIENCE: Final = 60.0  # seconds


def places(broker: EmbeddedBroker) -> Iterator[tuple[str, str]]:
    """Yield the name and URL of each pair that can be measured; nobody can set HornetQ's window."""
    yield from (("vm", broker.vm_url), ("stomp-embedded", broker.stomp_url), ("amqp-embedded", broker.amqp_url))
    for name, protocols in PAIRS[:-1]:
        with suppress(UnavailableError), running(name) as real:
            yield from ((f"{protocol}-{name}", real.urls[protocol]) for protocol in protocols)


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
    speeds: dict[str, list[float]] = {label: [] for label, _ in WINDOWS}
    times: dict[str, list[float]] = {label: [] for label, _ in WINDOWS}
    for label, options in WINDOWS * ROUNDS:
        speeds[label].append(MESSAGES / took(url, mode, MESSAGES, lambda: None, options))
        times[label].append(took(url, mode, BACKLOG, lambda: time.sleep(0.02), options))
    quick = (f"{statistics.median(each):,.0f}" for each in speeds.values())
    return name, mode, *quick, *(f"{statistics.median(each):.2f}" for each in times.values())


def section() -> list[str]:
    """Return the section of the page."""
    found = read(RESULTS)
    heads = ["pair", "ack_mode", *(f"{what}, {label}" for what in ("a second", "a backlog") for label, _ in WINDOWS)]
    text = paragraphs(TEXT["spread"], messages=MESSAGES, rounds=ROUNDS, cores=found["cores"], date=found["date"])
    return [f"## {TITLE}", "", *text, *table(heads, found["rows"]), ""]


def take(found: dict[str, Any], _case: str, _url: str) -> object:
    """Measure all pairs."""
    rows = []
    with EmbeddedBroker("benchmark-spread", stomp_port=0, amqp_port=0) as broker:
        for name, url in places(broker):
            for mode in ("transacted", "client"):
                if mode == "client" or name != "amqp-rabbitmq":  # it has no transactions
                    rows.append(row(name, url, mode))
                    print(*rows[-1], file=sys.stderr, flush=True)
    found |= {"date": time.strftime("%Y-%m-%d"), "cores": os.cpu_count(), "rows": rows}
    return found


def text(_found: object, old: str) -> str:
    """Return the page with the section at its end."""
    return "\n".join([old.partition(f"## {TITLE}")[0].rstrip(), "", *section()])


if __name__ == "__main__":
    Figures(RESULTS, "docs/benchmarks.md", ["all"], take, text, urls=False).main(__doc__)
