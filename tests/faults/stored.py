"""The embedded broker with a store as a process of its own, to be killed as the real ones are."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.conformance.pairs import Kind
from tests.run.forked import Forked

from redelivery.testing.brokers.native import NativeBroker
from redelivery.testing.brokers.ports import free_ports
from redelivery.testing.brokers.real import RealBroker, running

NAME: Final = "embedded"
_COMMAND: Final = (sys.executable, "-c", "from redelivery.cli.main import main; main()", "broker", "--json")


class Process:
    """`redelivery broker`; its ports and its file stay the same. A `redelivery.testing.brokers.real.Provider`."""

    def __init__(self, store: Path) -> None:
        self.host = "127.0.0.1"
        self.ports: Mapping[str, int] = free_ports(("stomp", "amqp"))  # nobody else gets them while it is dead
        self._store = store
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        ports = [word for protocol, port in self.ports.items() for word in (f"--{protocol}", str(port))]
        command = [*_COMMAND, "--store", str(self._store), *ports]
        self._process = Forked[str](command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        json.loads(self._process.stdout.readline())  # when it is ready

    @property
    def process(self) -> int:
        """Its number."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        if self._process is not None:
            with self._process:
                self._process.kill()
            self._process = None

    def close(self) -> None:
        self.kill()


def broker_of(kind: Kind) -> str:
    """What runs the broker of a pair."""
    return kind.broker or NAME


def process_of(broker: RealBroker) -> int:
    """The number of the process that a broker is; of a real one that of its supervisor's child."""
    provider = broker.provider
    if isinstance(provider, Process):
        return provider.process
    assert isinstance(provider, NativeBroker)
    assert provider._process is not None
    supervisor = provider._process.pid
    (child,) = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text(encoding="utf-8").split()
    return int(child)


@contextmanager
def started(name: str) -> Iterator[RealBroker]:
    """A broker of that name for one campaign."""
    if name != NAME:
        with running(name) as broker:
            yield broker
        return
    with tempfile.TemporaryDirectory(prefix="stored-broker-") as folder:
        process = Process(Path(folder) / "store.db")
        process.start()
        try:
            urls = {protocol: f"{protocol}://127.0.0.1:{port}" for protocol, port in process.ports.items()}
            yield RealBroker(NAME, "the embedded broker with a store", urls, process)
        finally:
            process.close()
