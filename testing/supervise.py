"""Runs one command, and kills it when standard input ends.

So a broker never outlives the tests that started it, however they end: not after Ctrl-C, and not after a kill -9.
A script of its own, that imports nothing of the library: ``python supervise.py FOLDER COMMAND ARGUMENT…``. Where
nothing was said before the end, nobody is left to use the command's folder, and it is deleted.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence


def main(folder: str, command: Sequence[str]) -> int:
    """Run ``command`` until it ends or standard input does; its exit code."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL)  # noqa: S603  # it is what this script is for

    def reap() -> None:
        last_words = sys.stdin.buffer.read()
        child.kill()
        child.wait()
        if not last_words:
            shutil.rmtree(folder, ignore_errors=True)
        os._exit(child.returncode % 256)

    reaper = threading.Thread(target=reap, daemon=True)
    reaper.start()
    code = child.wait()
    if code < 0:
        reaper.join(timeout=5)  # it was the reaper, as a rule, who has more to do
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
