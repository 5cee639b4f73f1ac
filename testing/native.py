"""Brokers from their own distributions: fetched by Maven into a cache, run by the Java of this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from redelivery.testing.brokers import BrokerSpec
from redelivery.testing.ports import NotStartedError, free_ports, wait_for_ports

FETCH_SECONDS = 600
START_SECONDS = 120.0
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
_HOST = "127.0.0.1"
_MEMORY_BYTES = 4 << 30


def missing(spec: BrokerSpec) -> str | None:
    """What this machine lacks to run the broker; None: nothing."""
    tools = ["java"] if (_cache() / spec.folder).is_dir() else ["java", "mvn"]
    lacking = [tool for tool in tools if shutil.which(tool) is None]
    return f"{' and '.join(lacking)} not found" if lacking else None


class NativeBroker:
    """One broker process. `kill` is a kill -9; `start` afterwards uses the same store and the same ports."""

    def __init__(self, spec: BrokerSpec) -> None:
        self.spec = spec
        self.ports: Mapping[str, int] = free_ports(spec.container_ports)
        self.host = _HOST
        self._folder = Path(tempfile.mkdtemp(prefix=f"redelivery-{spec.name}-", dir=_in_memory()))
        self._data = self._folder / "data"
        self._data.mkdir()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it listens on every port.

        Raises:
            NotStartedError: it could not be fetched, ended or did not listen in time; the text ends with its log.
        """
        home = _distribution(self.spec)
        self.spec.configure(self._folder, self.host, self.ports)
        log = self._folder / "output.log"
        with log.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603  # the command is the specification's
                [
                    sys.executable,
                    str(Path(__file__).with_name("supervise.py")),
                    str(self._folder),
                    *self.spec.command(home, self._folder, self._data),
                ],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for pytest, which then ends the broker
            )
        try:
            wait_for_ports(self.host, self.ports, self._ended, START_SECONDS)
        except NotStartedError as error:
            self.kill()
            tail = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-20:])
            raise NotStartedError(f"{self.spec.title} did not start: {error}; its last words:\n{tail}") from None

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
        shutil.rmtree(self._folder, ignore_errors=True)

    def _ended(self, seconds: float) -> bool:
        assert self._process is not None
        try:
            self._process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            return False
        return True


def _in_memory() -> Path | None:
    """A folder in memory, where there is plenty: it outlives a kill -9, and a sync for every message costs nothing."""
    memory = Path("/dev/shm")  # noqa: S108  # mkdtemp makes a folder of ours in it
    if not os.access(memory, os.W_OK) or shutil.disk_usage(memory).free < _MEMORY_BYTES:
        return None
    return memory


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "redelivery"


def _distribution(spec: BrokerSpec) -> Path:
    home = _cache() / spec.folder
    if home.is_dir():
        return home
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent) as scratch:
        try:
            subprocess.run(  # noqa: S603  # a fixed command
                ["mvn", "-q", "-B", _COPY, f"-Dartifact={spec.artifact}", f"-DoutputDirectory={scratch}"],  # noqa: S607  # found on the user's PATH on purpose
                check=True,
                capture_output=True,
                text=True,
                timeout=FETCH_SECONDS,
                cwd=scratch,
            )
        except subprocess.CalledProcessError as error:
            last = (error.stdout or error.stderr).strip().splitlines()[:1]
            raise NotStartedError(f"Maven could not fetch {spec.artifact}: {' '.join(last)}") from error
        except subprocess.TimeoutExpired as error:
            raise NotStartedError(f"Maven did not fetch {spec.artifact} within {FETCH_SECONDS} s") from error
        (archive,) = Path(scratch).glob("*.tar.gz")
        with tarfile.open(archive) as packed:
            packed.extractall(scratch, filter="data")
        unpacked = Path(scratch) / spec.folder
        try:
            unpacked.rename(home)  # at once, so that another test run sees all of it or nothing
        except OSError:
            if not home.is_dir():
                raise
    return home
