"""A receiver in a process of its own, for `lanes` above 1: ``python -m redelivery.spark.read.lane_process``.

Parent and child exchange lines of JSON over a socket of their own, so that the child's standard output is the user's:
what a converter prints goes to the standard error output of the parent. The child ends when the socket does, so it
does not outlive its parent; the broker redelivers what it has not committed.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import pickle
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from redelivery.model.errors import JMSError
from redelivery.spark.log.segments import Extent
from redelivery.spark.log.store.opening import open_store
from redelivery.spark.log.wal import SegmentName, Wal
from redelivery.spark.options.query import SourceOptions
from redelivery.spark.read.lane import Found, LaneControl, LanePace, LaneReceiver

_COMMAND: tuple[str, ...] = ("-m", __name__)
_STDERR: Final = 2  # the descriptor: the runner's sys.stderr may be something else


class ProcessLane:
    """The parent's side."""

    def __init__(
        self,
        options: SourceOptions,
        wal: Wal,  # noqa: ARG002  # the child opens its own
        head: int,
        epoch: int,
        *,
        found: Found,
        failed: Callable[[JMSError], None],
        unmarked: Sequence[SegmentName] | None = None,
    ) -> None:
        self._found, self._failed = found, failed
        self._counts: Mapping[str, int] = {}
        self._problem = ""
        self._stopped = False
        self._writing = threading.Lock()
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603  # this module
                [sys.executable, *_COMMAND, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=_STDERR,
                pass_fds=(theirs.fileno(),),
            )
        # not on the command line: there is a password in it, and others can read command lines
        given = base64.b64encode(pickle.dumps((options, unmarked))).decode()
        self._write({"given": given, "head": head, "epoch": epoch})
        self._reader = threading.Thread(target=self._read, name="redelivery-lane", daemon=True)
        self._reader.start()

    def adjust(self, *, hold: bool, pace: LanePace) -> None:
        """See `LaneControl`."""
        self._write({"hold": hold, "pace": pace})

    def counts(self) -> Mapping[str, int]:
        """The counts that the child said last."""
        return self._counts

    def stop(self) -> None:
        """Have it end: its input ends."""
        self._stopped = True
        with self._writing:
            try:
                self._socket.shutdown(socket.SHUT_WR)
            except OSError:
                return  # it has ended

    def join(self, timeout: float) -> None:
        """Wait until it has ended; it is killed when the time is up."""
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(timeout)
        self._socket.close()

    def _write(self, what: Mapping[str, Any]) -> None:
        with self._writing:
            try:
                self._socket.sendall(json.dumps(what).encode() + b"\n")
            except OSError:
                return  # it has ended, or was stopped; the reader says why

    def _read(self) -> None:
        """Nobody waits for this thread: whatever ends it must end the query, which would wait for ever."""
        error = ""
        try:
            with self._socket.makefile(encoding="utf-8") as lines:
                for line in lines:
                    self._hear(line)
        except ConnectionResetError:
            pass  # it has died before it read all; the exit code says more
        except BaseException as raised:
            error = f"a lane could not be followed: {type(raised).__name__}: {raised}"
            self._process.kill()
            if not isinstance(raised, (JMSError, ValueError)):  # of the store; a line that nobody understands
                raise
        finally:
            if not self._stopped:
                code = self._process.wait()
                self._failed(JMSError(error or self._problem or f"a lane's process ended with exit code {code}"))

    def _hear(self, line: str) -> None:
        said = json.loads(line)
        self._counts = said.get("counts", self._counts)
        if "error" in said:
            self._problem = said["error"]
        else:
            seq, extent = said["found"]
            self._found(seq, None if extent is None else Extent(*extent))


def main(descriptor: int) -> int:
    """The child's side. ``descriptor``: of the socket."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    parent = socket.socket(fileno=descriptor)
    os.set_inheritable(descriptor, False)  # a program that a converter starts would keep it open
    lines = parent.makefile(encoding="utf-8")
    first = json.loads(lines.readline())
    options: SourceOptions
    options, unmarked = pickle.loads(base64.b64decode(first["given"]))  # noqa: S301  # of our parent
    control = LaneControl()
    writing = threading.Lock()

    def say(**what: Any) -> None:
        with writing:
            try:
                parent.sendall(json.dumps(what).encode() + b"\n")
            except OSError:
                control.stop()  # the parent has died

    def found(seq: int, extent: Extent | None) -> None:
        say(found=(seq, None if extent is None else (extent.rows, extent.size)), counts=dict(lane.receiver.counts))

    def listen() -> None:
        try:
            for line in lines:
                wanted = json.loads(line)
                control.set(hold=wanted["hold"], pace=wanted["pace"])
        except ConnectionResetError:
            pass  # the parent has died
        finally:
            control.stop()

    try:
        wal = Wal.open(
            open_store(options.wal_location, options.storage_options),
            check=False,
            dedupe_window=options.dedupe_window,
        )
        lane = LaneReceiver(options, wal, first["head"], first["epoch"], control, found, unmarked)
        threading.Thread(target=listen, daemon=True).start()
        lane.run()
    except JMSError as error:
        if not control.stopped.is_set():
            say(error=f"{type(error).__name__}: {error}")
            return 1
    except BaseException as error:
        say(error=f"the receiver failed: {type(error).__name__}: {error}")
        raise
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
