"""The embedded broker with a store against ActiveMQ Classic: the same client, the same disk, in turns.

    .venv/bin/python -m benchmarks.stored [--rounds 100] [--folder /dev/shm] [--fill 1000000] [--search 100000]

Both run as processes of their own and keep their files below one folder: by default that for temporary files, which has
to be on a disk if a sync is to cost what it costs; in memory what is left is what both compute. Each round does one
step on each of them, so that what else the machine and its disk do meanwhile meets both; the medians are compared.
``--fill`` measures a store that holds so many messages instead: its start, a browser's first hundred, and the memory.
`python -m benchmarks` does both and writes them on docs/benchmarks.md.
``--search`` has a consumer look through so many for the last of them, and another one pass a group whose owner is full;
meanwhile another client sends to another queue, and waits for its answers.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Final, NamedTuple
from uuid import uuid4

import redelivery
from benchmarks.plan import Found, Plan
from benchmarks.results import BenchmarkError, Measure, Stored
from redelivery import Consumer, Session
from redelivery.broker import EmbeddedBroker
from redelivery.testing.brokers.native import NativeBroker
from redelivery.testing.brokers.ports import NotStartedError
from redelivery.testing.brokers.specs.activemq import SPEC

BODY: Final = "x" * 1024
PATIENCE: Final = 30.0  # seconds for a message that must be there
WARM_UP: Final = 40  # steps: a store that is used prepares for more
BATCH: Final = 100
ROUNDS: Final = 100
MESSAGES: Final = 1_000_000
PARTS: Final = 5  # of the rounds of a step: how far they are apart is the spread
PROTOCOLS: Final = ("stomp", "amqp")
NAMES: Final = (*(f"stored/{protocol}" for protocol in PROTOCOLS), "stored/fill")
GROUP: Final = "A store of a million messages"
MEMORY: Final = 100  # MiB of the process, a tenth of the bodies: they stay in the file
_FILLING: Final = 900.0  # seconds, at most


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


class Step(NamedTuple):
    """What it does, how many messages it moves, and how many times as fast as Classic it is to be."""

    run: Callable[[Client], None]
    messages: int
    target: float


# By their titles. Those that receive take what was sent before them.
STEPS: Final[dict[str, Step]] = {
    "AUTO, send": Step(Client.send, 1, 0.5),
    "AUTO, receive": Step(Client.receive, 1, 0.5),
    "TRANSACTED, send, commit each": Step(Client.send_and_commit, 1, 1),
    "TRANSACTED, receive, commit each": Step(Client.receive_and_commit, 1, 1),
    f"TRANSACTED, send, commit every {BATCH}": Step(lambda client: client.send_and_commit(BATCH), BATCH, 1),
    f"TRANSACTED, receive, commit every {BATCH}": Step(lambda client: client.receive_and_commit(BATCH), BATCH, 1),
}


@contextmanager
def classic(folder: Path) -> Iterator[dict[str, str]]:
    """ActiveMQ Classic with its store (KahaDB as it comes: each commit is synced); its URLs."""
    broker = NativeBroker(SPEC, folder)
    try:
        broker.start()
        yield {protocol: f"{protocol}://{broker.host}:{broker.ports[protocol]}" for protocol in PROTOCOLS}
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


def compare(protocol: str, classic: str, ours: str, rounds: int) -> Iterator[Stored]:
    """Each step, on Classic and on ours in turn; ``rounds``: of the steps that move one message."""
    clients = [Client(classic), Client(ours)]
    for title, step in STEPS.items():
        times: list[list[float]] = [[], []]
        skipped, total = (WARM_UP, WARM_UP + rounds) if step.messages == 1 else (2, max(10, rounds // 5))
        for number in range(total):
            for which in (0, 1) if number % 2 else (1, 0):
                began = perf_counter()
                step.run(clients[which])
                times[which].append(perf_counter() - began)
        yield stored(protocol, title, *(each[skipped:] for each in times))
    for client in clients:
        client.connection.close()


def stored(protocol: str, title: str, theirs: Sequence[float], ours: Sequence[float]) -> Stored:
    """Of the seconds of each round."""
    step = STEPS[title]
    length = max(1, len(ours) // PARTS)
    median = statistics.median
    ratios = [
        median(theirs[at : at + length]) / median(ours[at : at + length])
        for at in range(0, len(ours) - length + 1, length)
    ]
    their_speed, our_speed = (step.messages / median(each) for each in (theirs, ours))
    return Stored(protocol, title, their_speed, our_speed, tuple(ratios), step.target)


def memory() -> float:
    """MiB that this process has in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / (1 << 20)


def fill(path: Path, messages: int) -> tuple[Measure, ...]:
    """Fill a store, and say what it takes to use it. Raises BenchmarkError."""
    code = f"from benchmarks.stored import fill_and_use; fill_and_use({str(path)!r}, {messages})"
    done = subprocess.run(  # noqa: S603  # ourselves
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, timeout=_FILLING, check=False
    )
    if done.returncode:
        raise BenchmarkError(f"a store of {messages} messages: its process ended with {done.returncode}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    name = f"{messages:,} messages of 1 KiB"
    return (
        Measure("stored-file", f"{name}: the file", found["file"], "MiB", None, group=GROUP),
        Measure("stored-start", f"{name}: start", found["start"], "s", 10, group=GROUP),
        Measure("stored-browse", f"{name}: a browser's first {BATCH}", found["browse"], "ms", 50, group=GROUP),
        Measure("stored-receive", f"{name}: received, commit every {BATCH}", found["rate"], "msg/s", None, group=GROUP),
        Measure("stored-memory", f"{name}: memory of the process", found["memory"], "MiB", MEMORY, group=GROUP),
    )


def fill_and_use(name: str, messages: int) -> None:
    """Print it as JSON; in a process of its own, because its memory is measured."""
    path = Path(name)
    with EmbeddedBroker("fill", store=path) as broker, redelivery.connect(broker.vm_url) as connection:
        session = connection.session("transacted")
        producer = session.producer("q")
        for number in range(1, messages + 1):
            producer.send(BODY)
            if number % 1000 == 0 or number == messages:
                session.commit()
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
            found |= {"rate": taken / (perf_counter() - began), "memory": memory()}
    print(json.dumps(found))


def run(plan: Plan, found: Found) -> None:
    """The part of a complete run. Without Classic there is a note."""
    wanted = [name for name in NAMES if plan.wants(name)]
    if plan.fake_only or plan.targets_only or not wanted:
        return
    with tempfile.TemporaryDirectory(prefix="bench-stored-") as name:
        folder = Path(name)
        if wanted[-1] == NAMES[-1]:
            found.begin(wanted.pop())
            found.measures += fill(folder / "filled.db", MESSAGES)
        if not wanted:
            return
        try:
            with classic(folder) as theirs, embedded(folder) as ours:
                for each in wanted:
                    protocol = each.partition("/")[2]
                    found.begin(each)
                    found.stored += compare(protocol, theirs[protocol], ours[protocol], ROUNDS)
        except NotStartedError as error:
            found.notes.append(f"No embedded broker beside ActiveMQ Classic: {error}.")


@contextmanager
def another_client(broker: EmbeddedBroker) -> Iterator[list[float]]:
    """One that sends to another queue all the time; the seconds that it waited for each answer."""
    waits: list[float] = []
    end = threading.Event()

    def work() -> None:
        with redelivery.connect(broker.vm_url) as connection, connection.session() as session:
            producer = session.producer("other")
            while True:  # once at least: a short search may be over before
                began = perf_counter()
                producer.send(BODY)
                waits.append(perf_counter() - began)
                if end.wait(0.005):
                    return

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield waits
    finally:
        end.set()
        thread.join()


def report(title: str, began: float, before: float, waits: list[float]) -> None:
    """One line of what was measured."""
    print(
        f"{title}: {perf_counter() - began:.1f} s, {memory() - before:.0f} MiB more in memory; of {len(waits)} sends of"
        f" another client half waited {statistics.median(waits) * 1000:.0f} ms, one {max(waits) * 1000:.0f} ms"
    )


def search(folder: Path, messages: int) -> None:
    """Search a long queue for its last message, then pass a long group, each in a store of its own; print both."""
    for title, group in (("a selector", None), ("a group", "g")):
        path = folder / f"{title}.db"
        with EmbeddedBroker("search", store=path) as broker, redelivery.connect(broker.vm_url) as connection:
            session = connection.session("transacted")
            producer = session.producer("q")
            for number in range(1, messages + 1):
                producer.send(BODY, group_id=group)
                if number % 1000 == 0 or number == messages:
                    session.commit()
            producer.send("wanted", properties={"colour": "red"})
            session.commit()
        with EmbeddedBroker("search", store=path) as broker, redelivery.connect(broker.vm_url) as connection:
            if group is not None:
                owner = connection.session("client").consumer("q", prefetch=1)
            before, began = memory(), perf_counter()
            with another_client(broker) as waits, connection.session() as session:
                selector = "colour = 'red'" if group is None else None
                message = session.consumer("q", selector=selector).receive(timeout=600)
                assert message is not None
                assert message.body == "wanted"
            report(f"{title}, {messages} messages", began, before, waits)
            if group is not None:
                owner.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--folder", type=Path, help="where both keep their files")
    parser.add_argument("--fill", type=int, metavar="MESSAGES")
    parser.add_argument("--search", type=int, metavar="MESSAGES")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-stored-", dir=arguments.folder) as name:
        folder = Path(name)
        if arguments.fill:
            for measure in fill(folder / "store.db", arguments.fill):
                print(f"{measure.title}: {measure.value:.2f} {measure.unit}")
            return
        if arguments.search:
            search(folder, arguments.search)
            return
        with classic(folder) as theirs, embedded(folder) as ours:
            for protocol in PROTOCOLS:
                for each in compare(protocol, theirs[protocol], ours[protocol], arguments.rounds):
                    speeds = f"Classic {each.theirs:.0f}, embedded {each.ours:.0f} messages/s"
                    print(f"{protocol} {each.title}: {speeds}, x {each.ratio:.2f} ± {each.spread:.0%}", flush=True)


if __name__ == "__main__":
    main()
