"""A receiver in a process of its own, for `lanes` above 1: ``python -m redelivery.spark.lane_process``.

Parent and child speak lines of JSON over the child's standard input and output. The child ends when its input ends, so
it does not outlive its parent; what it has not committed goes back to the broker.
"""

from __future__ import annotations

import base64
import json
import logging
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from typing import IO, Any

from redelivery.model.errors import JMSError
from redelivery.spark.options import SourceOptions
from redelivery.spark.receiver import Receiver, Wishes
from redelivery.spark.store import open_store
from redelivery.spark.wal import Wal


class ProcessLane:
    """The parent's side."""

    def __init__(
        self,
        options: SourceOptions,
        wal: Wal,  # noqa: ARG002  # the child opens its own
        head: int,
        epoch: int,
        *,
        found: Callable[[int, int], None],
        failed: Callable[[JMSError], None],
    ) -> None:
        self._found, self._failed = found, failed
        self._counts: Mapping[str, int] = {}
        self._stopped = False
        self._writing = threading.Lock()
        command = [sys.executable, "-m", __name__]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603  # this module
        # by its input: a command line, with a password in it, can be read by others
        self._tell({"options": base64.b64encode(pickle.dumps(options)).decode(), "head": head, "epoch": epoch})
        self._reader = threading.Thread(target=self._read, name="redelivery-lane", daemon=True)
        self._reader.start()

    def wish(self, *, hold: bool, hurry: bool) -> None:
        """See `Wishes`."""
        self._tell({"hold": hold, "hurry": hurry})

    def counts(self) -> Mapping[str, int]:
        """As the child said last."""
        return self._counts

    def stop(self) -> None:
        """Have it end: its input ends."""
        self._stopped = True
        with self._writing:
            _close(self._process.stdin)

    def join(self, timeout: float) -> None:
        """Until it has ended; it is killed when the time is up."""
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(timeout)
        _close(self._process.stdout)

    def _tell(self, what: Mapping[str, Any]) -> None:
        with self._writing:
            if self._process.stdin is None or self._process.stdin.closed:
                return
            try:
                self._process.stdin.write(json.dumps(what) + "\n")
                self._process.stdin.flush()
            except BrokenPipeError:
                return  # it has ended; the reader says why

    def _read(self) -> None:
        assert self._process.stdout is not None
        problem = ""
        for line in self._process.stdout:
            said = json.loads(line)
            self._counts = said.get("counts", self._counts)
            if "error" in said:
                problem = said["error"]
            else:
                self._found(*said["found"])
        if not self._stopped:
            code = self._process.wait()
            self._failed(JMSError(problem or f"a lane's process ended with exit code {code}"))


def main() -> int:
    """The child's side."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    first = json.loads(sys.stdin.readline())
    options: SourceOptions = pickle.loads(base64.b64decode(first["options"]))  # noqa: S301  # of our parent
    wishes = Wishes()
    writing = threading.Lock()

    def say(**what: Any) -> None:
        with writing:
            sys.stdout.write(json.dumps(what) + "\n")
            sys.stdout.flush()

    def found(seq: int, rows: int) -> None:
        say(found=(seq, rows), counts=dict(receiver.intake.counts))

    def listen() -> None:
        for line in sys.stdin:
            wish = json.loads(line)
            wishes.set(hold=wish["hold"], hurry=wish["hurry"])
        wishes.stop()

    try:
        wal = Wal.open(
            open_store(options.wal_location, options.storage_options),
            check=False,
            dedupe_window=options.dedupe_window,
        )
        receiver = Receiver(options, wal, first["head"], first["epoch"], wishes, found)
        threading.Thread(target=listen, daemon=True).start()
        receiver.run()
    except JMSError as error:
        if not wishes.stopped.is_set():
            say(error=f"{type(error).__name__}: {error}")
            return 1
    return 0


def _close(pipe: IO[str] | None) -> None:
    if pipe is not None:
        try:
            pipe.close()
        except BrokenPipeError:
            return  # nobody reads what was left in it


if __name__ == "__main__":
    sys.exit(main())
