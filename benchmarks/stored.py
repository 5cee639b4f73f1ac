"""The embedded broker with a store against ActiveMQ Classic: the same client, the same disk, in turns.

Both run as processes of their own (Classic with KahaDB as it comes: each commit is synced) and keep their files in the
folder for temporary files (TMPDIR), which has to be on a disk if a sync is to cost what it costs. Each round does one
step on each of them, so that what else the machine and its disk do meanwhile meets both; the medians are compared. And
a store that holds a million messages is measured: its start, a browser's first hundred, and the memory.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Final
from uuid import uuid4

import redelivery
from benchmarks.machine import in_process
from benchmarks.ours import BODY
from benchmarks.record import Measure, Stored
from benchmarks.senders import fill as fill_queue
from redelivery.broker import EmbeddedBroker

PATIENCE: Final = 30.0  # seconds for a message that must be there
WARM_UP: Final = 40  # steps: a store that is used prepares for more
BATCH: Final = 100
ROUNDS: Final = 100
MESSAGES: Final = 1_000_000
PARTS: Final = 5  # of the rounds of a step: how far they are apart is the spread
PROTOCOLS: Final = ("stomp", "amqp")
FILL: Final = "stored/fill"
NAMES: Final = (*(f"stored/{protocol}" for protocol in PROTOCOLS), FILL)


class Client:
    """A client of one broker, with a session of each mode, and a queue for each."""

    def __init__(self, url: str) -> None:
        self.connection = redelivery.connect(url)
        self._queue = f"bench.stored.{uuid4().hex[:8]}"
        self._sessions = {mode: self.connection.session(mode) for mode in ("auto", "transacted")}
        self._producers = {mode: each.producer(f"{self._queue}.{mode}") for mode, each in self._sessions.items()}
        self._consumers: dict[str, redelivery.Consumer] = {}

    def step(self, mode: str, sends: bool, messages: int) -> None:
        """Send or receive so many messages, and commit them."""
        if not sends and mode not in self._consumers:
            self._consumers[mode] = self._sessions[mode].consumer(f"{self._queue}.{mode}")
        for _ in range(messages):
            if sends:
                self._producers[mode].send(BODY)
            else:
                assert self._consumers[mode].receive(timeout=PATIENCE) is not None
        if mode == "transacted":
            self._sessions[mode].commit()


# By their titles: mode, whether it sends, and how many messages. Those that receive take what was sent before them.
STEPS: Final = {
    "AUTO, send": ("auto", True, 1),
    "AUTO, receive": ("auto", False, 1),
    "TRANSACTED, send, commit each": ("transacted", True, 1),
    "TRANSACTED, receive, commit each": ("transacted", False, 1),
    f"TRANSACTED, send, commit every {BATCH}": ("transacted", True, BATCH),
    f"TRANSACTED, receive, commit every {BATCH}": ("transacted", False, BATCH),
}


@contextmanager
def embedded(folder: Path) -> Iterator[dict[str, str]]:
    """Run `redelivery broker` with a store; its URLs."""
    command = [sys.executable, "-c", "from redelivery.cli.main import main; main()", "broker", "--json"]
    command += ["--store", str(folder / "store.db"), "--stomp", "0", "--amqp", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603  # ours
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())
        finally:
            process.terminate()


def compare(protocol: str, classic: str, ours: str, rounds: int = ROUNDS) -> Iterator[Stored]:
    """Do each step on Classic and on ours in turn; ``rounds``: of the steps that move one message."""
    clients = [Client(classic), Client(ours)]
    for title, (mode, sends, messages) in STEPS.items():
        times: list[list[float]] = [[], []]
        skipped, total = (WARM_UP, WARM_UP + rounds) if messages == 1 else (2, max(10, rounds // 5))
        for number in range(total):
            for which in (0, 1) if number % 2 else (1, 0):
                began = perf_counter()
                clients[which].step(mode, sends, messages)
                times[which].append(perf_counter() - began)
        yield stored(protocol, title, *(each[skipped:] for each in times))
    for client in clients:
        client.connection.close()


def stored(protocol: str, title: str, theirs: Sequence[float], ours: Sequence[float]) -> Stored:
    """Return the result of the seconds of each round."""
    messages, length, median = STEPS[title][2], max(1, len(ours) // PARTS), statistics.median
    ratios = [
        median(theirs[at : at + length]) / median(ours[at : at + length])
        for at in range(0, len(ours) - length + 1, length)
    ]
    return Stored(protocol, title, messages / median(theirs), messages / median(ours), ratios)


def memory() -> float:
    """Return the MiB that this process has in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / (1 << 20)


def fill(path: Path, messages: int = MESSAGES) -> Iterator[tuple[str, Measure]]:
    """Fill a store, in a process of its own because its memory is measured, and say what it takes to use it."""
    found = in_process(f"stored.fill_and_use({str(path)!r}, {messages})", timeout=900)
    titles = {
        "file": ("the file", "MiB"),
        "start": ("start", "s"),
        "browse": (f"a browser's first {BATCH}", "ms"),
        "receive": (f"received, commit every {BATCH}", "msg/s"),
        "memory": ("memory of the process", "MiB"),
    }
    for key, (title, unit) in titles.items():
        yield f"stored-{key}", Measure(f"{messages:,} messages of 1 KiB: {title}", found[key], unit)


def fill_and_use(name: str, messages: int) -> dict[str, float]:
    """Return what it took."""
    path = Path(name)
    with EmbeddedBroker("fill", store=path) as broker, redelivery.connect(broker.vm_url) as connection:
        fill_queue(connection, "q", (BODY for _ in range(messages)), commit=1000)
    found = {"file": path.stat().st_size / (1 << 20)}
    began = perf_counter()
    with EmbeddedBroker("fill", store=path) as broker:
        assert broker.queue_depth("q") == messages
        found["start"] = perf_counter() - began
        with redelivery.connect(broker.vm_url) as connection, connection.session() as session:
            began = perf_counter()
            with session.browser("q") as browser:
                assert sum(1 for _ in zip(range(BATCH), browser, strict=False)) == BATCH
            found["browse"] = (perf_counter() - began) * 1000
            began, taken = perf_counter(), min(20_000, messages)
            consuming = connection.session("transacted")
            consumer = consuming.consumer("q")
            for number in range(1, taken + 1):
                assert consumer.receive(timeout=PATIENCE) is not None
                if number % BATCH == 0:
                    consuming.commit()
            found |= {"receive": taken / (perf_counter() - began), "memory": memory()}
    return found
