"""What a large body costs a broker with a store in memory, over its sockets: the broker is a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import redelivery

COMMAND = (sys.executable, "-c", "from redelivery.cli.main import main; main()", "broker")
MIB = 1 << 20
SIZE = 32 * MIB  # three times what is measured beside it
BODIES = {"bytes": b"x" * SIZE, "text": "x" * SIZE}
SLACK = 10 * MIB  # for pieces, SQLite's pages and what a socket reads at once: 1 to 8 were measured


class Process:
    """A broker, and where it listens."""

    def __init__(self, pid: int, urls: dict[str, str]) -> None:
        self.urls = urls
        self._proc = Path(f"/proc/{pid}")

    @contextmanager
    def measured(self) -> Iterator[Callable[[], int]]:
        """How many bytes it has had at most, more than at the beginning."""
        (self._proc / "clear_refs").write_text("5")  # the peak begins anew
        before = self._read("VmRSS")
        yield lambda: self._read("VmHWM") - before

    def _read(self, name: str) -> int:
        lines = (self._proc / "status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) << 10


@contextmanager
def process(store: Path) -> Iterator[Process]:
    """One that has sent and received small messages, and has no memory of large ones that it could use again."""
    arguments = ("--store", str(store), "--stomp", "0", "--amqp", "0", "--json")
    with subprocess.Popen((*COMMAND, *arguments), text=True, stdout=subprocess.PIPE) as started:  # noqa: S603 - our own
        try:
            assert started.stdout is not None
            made = Process(started.pid, json.loads(started.stdout.readline()))
            for protocol in ("stomp", "amqp"):
                with redelivery.connect(made.urls[protocol]) as connection, connection.session() as session:
                    session.producer("warm").send("x")
                    assert session.consumer("warm").receive(timeout=10) is not None
            yield made
        finally:
            started.terminate()


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux tells the peak of another process")
@pytest.mark.in_turns("kind")
@pytest.mark.parametrize("kind", BODIES)
@pytest.mark.parametrize("protocol", ["stomp", "amqp"])
def test_a_large_body_is_in_memory_once(tmp_path: Path, protocol: str, kind: str) -> None:
    store, body = tmp_path / "shop.db", BODIES[kind]
    with (
        process(store) as broker,
        redelivery.connect(broker.urls[protocol]) as connection,
        connection.session() as session,
        broker.measured() as peak,
    ):
        producer = session.producer("q")
        producer.send(body)
        sent = peak()
        producer.send(body)
        sent_again = peak()
    with (
        process(store) as broker,
        redelivery.connect(broker.urls[protocol]) as connection,
        connection.session() as session,
        broker.measured() as peak,
    ):
        consumer = session.consumer("q", prefetch=1)
        message = consumer.receive(timeout=60)
        assert message is not None
        assert message.body == body
        received = peak()
    found = {"a send": sent, "another one": sent_again, "a delivery": received}
    assert {name: peak for name, peak in found.items() if peak > SIZE + SLACK} == {}
