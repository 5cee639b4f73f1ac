"""The embedded broker with a store against ActiveMQ Classic: the same client, the same disk, in turns.

    .venv/bin/python -m benchmarks.stored [--rounds 100] [--folder /dev/shm] [--fill 1000000]

Both run as processes of their own and keep their files below one folder: by default that for temporary files, which has
to be on a disk if a sync is to cost what it costs; in memory what is left is what both compute. Each round does one
step on each of them, so that what else the machine and its disk do meanwhile meets both; the medians are compared.
``--fill`` measures a store that holds so many messages instead: its start, a browser's first hundred, and the memory.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Final
from uuid import uuid4

import redelivery
from redelivery import Consumer, Session
from redelivery.broker import EmbeddedBroker
from redelivery.testing.brokers.native import NativeBroker
from redelivery.testing.brokers.specs.activemq import SPEC

BODY: Final = "x" * 1024
PATIENCE: Final = 30.0  # seconds for a message that must be there
WARM_UP: Final = 40  # steps: a store that is used prepares for more
BATCH: Final = 100


class Client:
    """What is done on one broker; each method is one step."""

    def __init__(self, url: str) -> None:
        queue = f"bench.stored.{uuid4().hex[:8]}"
        self.connection = redelivery.connect(url)
        self.auto, self.transacted = self.connection.session(), self.connection.session("transacted")
        self._queue = queue
        self._one = self.auto.producer(queue)
        self._many = self.transacted.producer(f"{queue}.t")
        self._consumers: dict[Session, Consumer] = {}

    def send(self) -> None:
        self._one.send(BODY)

    def receive(self) -> None:
        self._take(self.auto, self._queue, 1)

    def send_and_commit(self, batch: int = 1) -> None:
        for _ in range(batch):
            self._many.send(BODY)
        self.transacted.commit()

    def receive_and_commit(self, batch: int = 1) -> None:
        self._take(self.transacted, f"{self._queue}.t", batch)
        self.transacted.commit()

    def _take(self, session: Session, queue: str, messages: int) -> None:
        consumer = self._consumers.get(session) or session.consumer(queue)
        self._consumers[session] = consumer
        for _ in range(messages):
            assert consumer.receive(timeout=PATIENCE) is not None


# A step by its title: what it does, and how many messages it moves. Those that receive take what was sent before them.
STEPS: Final[dict[str, tuple[Callable[[Client], None], int]]] = {
    "AUTO, send": (Client.send, 1),
    "AUTO, receive": (Client.receive, 1),
    "transacted, send 1": (Client.send_and_commit, 1),
    "transacted, receive 1": (Client.receive_and_commit, 1),
    f"transacted, send {BATCH}": (lambda client: client.send_and_commit(BATCH), BATCH),
    f"transacted, receive {BATCH}": (lambda client: client.receive_and_commit(BATCH), BATCH),
}


@contextmanager
def classic(folder: Path) -> Iterator[dict[str, str]]:
    """ActiveMQ Classic with its store (KahaDB as it comes: each commit is synced); its URLs."""
    broker = NativeBroker(SPEC, folder)
    try:
        broker.start()
        yield {protocol: f"{protocol}://{broker.host}:{broker.ports[protocol]}" for protocol in ("stomp", "amqp")}
    finally:
        broker.close()


@contextmanager
def embedded(folder: Path) -> Iterator[dict[str, str]]:
    """`redelivery broker` with a store; its URLs."""
    command = [sys.executable, "-c", "from redelivery.cli.main import main; main()", "broker", "--json"]
    command += ["--store", str(folder / "store.db"), "--stomp", "0", "--amqp", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603  # ours
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())
        finally:
            process.terminate()


def compare(classic: str, ours: str, rounds: int) -> Iterator[tuple[str, float, float]]:
    """For each step its title, and the messages a second of both."""
    clients = [Client(classic), Client(ours)]
    for title, (step, messages) in STEPS.items():
        times: list[list[float]] = [[], []]
        total = WARM_UP + rounds if messages == 1 else max(10, rounds // 5)
        for number in range(total):
            for which in (0, 1) if number % 2 else (1, 0):
                began = perf_counter()
                step(clients[which])
                times[which].append(perf_counter() - began)
        measured = [each[WARM_UP:] if messages == 1 else each[2:] for each in times]
        yield title, messages / statistics.median(measured[0]), messages / statistics.median(measured[1])
    for client in clients:
        client.connection.close()


def memory() -> float:
    """MiB that this process has in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / (1 << 20)


def fill(path: Path, messages: int) -> None:
    """Fill a store, in a process of its own, and print what it takes to use it."""
    with EmbeddedBroker("fill", store=path) as broker, redelivery.connect(broker.vm_url) as connection:
        session = connection.session("transacted")
        producer = session.producer("q")
        for number in range(1, messages + 1):
            producer.send(BODY)
            if number % 1000 == 0 or number == messages:
                session.commit()
    print(f"{messages} messages: {path.stat().st_size / (1 << 20):.0f} MiB; {memory():.0f} MiB in memory after filling")
    before, began = memory(), perf_counter()
    with EmbeddedBroker("fill", store=path) as broker:
        assert broker.queue_depth("q") == messages
        print(f"start: {perf_counter() - began:.2f} s, {memory() - before:.0f} MiB more in memory")
        with redelivery.connect(broker.vm_url) as connection, connection.session() as session:
            began = perf_counter()
            with session.browser("q") as browser:
                assert sum(1 for _ in zip(range(BATCH), browser, strict=False)) == BATCH
            print(f"browse of the first {BATCH}: {(perf_counter() - began) * 1000:.0f} ms")
            began, taken = perf_counter(), min(20_000, messages)
            consuming = connection.session("transacted")
            consumer = consuming.consumer("q")
            for number in range(1, taken + 1):
                assert consumer.receive(timeout=PATIENCE) is not None
                if number % BATCH == 0:
                    consuming.commit()
            print(f"receive: {taken / (perf_counter() - began):.0f} a second; {memory():.0f} MiB in memory")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--folder", type=Path, help="where both keep their files")
    parser.add_argument("--fill", type=int, metavar="MESSAGES")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-stored-", dir=arguments.folder) as name:
        folder = Path(name)
        if arguments.fill:
            fill(folder / "store.db", arguments.fill)
            return
        with classic(folder) as theirs, embedded(folder) as ours:
            print("| protocol | step | Classic, messages/s | embedded, messages/s | ratio |\n|---|---|---|---|---|")
            for protocol in ("stomp", "amqp"):
                for title, before, now in compare(theirs[protocol], ours[protocol], arguments.rounds):
                    print(f"| {protocol} | {title} | {before:.0f} | {now:.0f} | {now / before:.2f} |", flush=True)


if __name__ == "__main__":
    main()
