"""Runs one command, and kills it and the processes of its group when standard input ends.

So a broker never outlives the tests that started it, however they end: not after Ctrl-C, and not after a kill -9.
A script of its own, that imports nothing of the library: ``python supervise.py FOLDER COMMAND ARGUMENT…``. Where
nothing was said before the end, nobody is left to use the command's folder, and it is deleted.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

_PR_SET_CHILD_SUBREAPER: Final = 36  # linux/prctl.h


def main(folder: str, command: Sequence[str]) -> int:
    """Run ``command`` until it ends or standard input does; its exit code."""
    _adopt_orphans()
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, process_group=0)  # noqa: S603  # it is what this script is for

    def kill() -> None:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)

    def reap() -> None:
        said = False
        while os.read(sys.stdin.fileno(), 1024):  # not through sys.stdin, whose lock would outlive the interpreter
            said = True
        kill()
        child.wait()
        with suppress(ChildProcessError):  # none of the group is left
            while True:
                os.waitpid(-child.pid, 0)
        if not said:
            shutil.rmtree(folder, ignore_errors=True)
        os._exit(child.returncode % 256)

    reaper = threading.Thread(target=reap, daemon=True)
    reaper.start()
    code = child.wait()
    kill()
    if code < 0:
        reaper.join(timeout=5)  # it was the reaper, as a rule, who has more to do
    return code


def _adopt_orphans() -> None:
    """Adopt processes that the command leaves behind, so that their end can be waited for; on Linux only."""
    with suppress(AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
