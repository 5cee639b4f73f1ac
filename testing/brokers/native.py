"""Brokers from their own distributions, run by the Java (or Erlang) of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from redelivery.testing.brokers.ports import NotStartedError, address_in_use, free_ports, not_started, wait_for_ports
from redelivery.testing.brokers.spec import BrokerSpec, Site

START_SECONDS = 120.0
_HOST = "127.0.0.1"
_MEMORY_BYTES = 4 << 30
_JAVA_OPTIONS = "REDELIVERY_BROKER_JAVA_OPTIONS"


class NativeBroker:
    """One broker process. `kill` is a kill -9; `start` afterwards uses the same store and the same ports.

    ``folder`` is all that there is of it on this machine; it is made in ``within``, or in memory where there is plenty.
    """

    def __init__(self, spec: BrokerSpec, within: Path | None = None) -> None:
        self.spec = spec
        self.host = _HOST
        self._all_ports = free_ports([*spec.ports, *spec.more_ports])
        self.ports: Mapping[str, int] = {name: self._all_ports[name] for name in spec.ports}
        self.folder = Path(tempfile.mkdtemp(prefix=f"redelivery-{spec.name}-", dir=within or _in_memory()))
        self._data = self.folder / "data"
        self._data.mkdir()
        self._log = self.folder / "output.log"
        self._starts = 0
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it listens on every port.

        Raises:
            AddressInUseError: another program has one of its ports.
            NotStartedError: it could not be fetched, ended or did not listen in time; the text ends with its log.
        """
        if sys.platform == "win32":
            raise NotStartedError(
                "real brokers are started on Linux and macOS only: their processes need POSIX's groups"
            )
        site = Site(self.spec.source.fetch(), self.folder, self._data, self.host, self._all_ports)
        self.spec.configure(site)
        self._starts += 1
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603  # the command is the specification's
                [
                    sys.executable,
                    str(Path(__file__).with_name("supervise.py")),
                    str(self.folder),
                    *self.spec.command(site),
                ],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.folder,  # for what a broker drops where it stands
                env=_environment(),
                # Ctrl-C is for pytest, which then ends the broker. No session of its own: Linux gives each session
                # the same share of the processors, so that five brokers would leave a sixth to all tests.
                process_group=0,
            )
        try:
            wait_for_ports(self.host, self.ports, self._ended, START_SECONDS, self._ready)
        except NotStartedError as error:
            self.kill()
            said = self.output()
            tail = "\n".join(said.splitlines()[-20:])
            raise not_started(f"{self.spec.title} did not start: {error}; its last words:\n{tail}", said) from None

    def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            with suppress(BrokenPipeError), process.stdin:  # it may have ended by itself
                process.stdin.write(b"kill, and keep the store\n")
            process.wait(timeout=30)

    def close(self) -> None:
        """Kill it and delete what it stored."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def output(self) -> str:
        """The broker's output since it was first started."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def _ready(self) -> bool:
        """A broker without a port may go on; who took the port listens there."""
        output = self.output()
        return output.count(self.spec.ready) >= self._starts and not address_in_use(output)

    def _ended(self, seconds: float) -> bool:
        assert self._process is not None
        try:
            self._process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return address_in_use(self.output())
        return True


def _environment() -> Mapping[str, str]:
    """Ours, and the options that the environment has for the brokers' Java."""
    options = os.environ.get(_JAVA_OPTIONS)
    return os.environ if options is None else {**os.environ, "JDK_JAVA_OPTIONS": options}


def _in_memory() -> Path | None:
    """A folder in memory, where there is plenty: it outlives a kill -9, and a sync for every message costs nothing."""
    memory = Path("/dev/shm")  # noqa: S108  # mkdtemp makes a folder of ours in it
    if not os.access(memory, os.W_OK) or shutil.disk_usage(memory).free < _MEMORY_BYTES:
        return None
    return memory
