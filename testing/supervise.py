"""Runs one command, and kills it when standard input ends.

So a broker never outlives the tests that started it, however they end: not after Ctrl-C, and not after a kill -9.
A script of its own, that imports nothing of the library: ``python supervise.py command argument…``.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence


def main(command: Sequence[str]) -> int:
    """Run ``command`` until it ends or standard input does; its exit code."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL)  # noqa: S603  # it is what this script is for

    def reap() -> None:
        sys.stdin.buffer.read()
        child.kill()

    threading.Thread(target=reap, daemon=True).start()
    return child.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
