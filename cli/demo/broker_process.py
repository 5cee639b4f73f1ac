"""A broker in a process of its own, which can be killed and started again with what its store has kept."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Final, Self

from redelivery.model.errors import ConnectError

_END: Final = 5.0  # seconds
# The command line, in a process that ends when its standard input does: so it does not outlive us, however we end.
_PROGRAM: Final = """
import os, sys, threading
threading.Thread(target=lambda: (sys.stdin.buffer.read(), os._exit(0)), daemon=True).start()
from redelivery.cli.main import main
main()
"""


class BrokerProcess:
    """``redelivery broker`` with a store; a context manager. Entering starts it."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="redelivery-demo-", ignore_cleanup_errors=True)
        self._port = 0
        self._process: subprocess.Popen[str] | None = None
        self.store = Path(self._folder.name) / "broker.db"
        self.url = ""

    @property
    def pid(self) -> int:
        """Of the process that runs, or was killed last."""
        assert self._process is not None, "it was started"
        return self._process.pid

    def start(self) -> None:
        """Start it, on the port that it had. Raises ConnectError: it does not start; the text is what it said."""
        command = ["broker", "--json", "--store", str(self.store), "--stomp", str(self._port)]
        process = self._process = subprocess.Popen(  # noqa: S603  # ourselves
            [sys.executable, "-c", _PROGRAM, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for us; we end it
        )
        assert process.stdout is not None
        assert process.stderr is not None
        line = process.stdout.readline()
        if not line:
            raise ConnectError(f"the broker did not start: {process.stderr.read().strip()}")
        self.url = json.loads(line)["stomp"]
        self._port = int(self.url.rpartition(":")[2])

    def kill(self) -> None:
        """Kill it, as ``kill -9`` does."""
        assert self._process is not None, "it was started"
        self._process.kill()
        self._process.communicate(timeout=_END)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()
        self._folder.cleanup()
