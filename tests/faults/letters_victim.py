"""The command line, which kills itself at a planted point, or ends the broker.

At the ``number``-th time that it comes to the point, or so many seconds after it began. With the point `COUNT` it runs
to its end, and prints on its last line of the standard error how often it came to each.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.run import forked

COUNT: Final = "count"
MOMENT: Final = "a random moment"
LINE, CUT = "after a line of the receipt", "within a line of the receipt"
SENT: Final = "after a send"
BEFORE_COMMIT, COMMITTED = "before a commit", "after a commit"
MEANWHILE: Final = "while it waits for a commit"
BEFORE_ACK, ACKED = "before an acknowledgement", "after an acknowledgement"
BATCH: Final = 50  # letters of a transaction, so that a round has several
POINTS: Final = (MOMENT, LINE, CUT, SENT, BEFORE_COMMIT, COMMITTED, BEFORE_ACK, ACKED)


class Planted:
    """Counts how often each point is reached, and strikes at one of them."""

    def __init__(self, point: str, number: float, strike: Callable[[], None]) -> None:
        self._point, self._number, self._strike = point, number, strike
        self.seen: Counter[str] = Counter()

    def reach(self, point: str) -> bool:
        """Count it; True: this is the moment."""
        self.seen[point] += 1
        return point == self._point and self.seen[point] == self._number

    def pass_by(self, point: str) -> None:
        """Count it, and strike if this is the moment."""
        if self.reach(point):
            self._strike()
        if point == BEFORE_COMMIT and self.reach(MEANWHILE):
            threading.Thread(target=self._strike).start()

    def around(self, cls: type, name: str, before: str | None, after: str | None) -> None:
        """Put the points before and after a method."""
        method: Callable[..., Any] = getattr(cls, name)

        def planted(*arguments: Any, **keywords: Any) -> Any:
            if before is not None:
                self.pass_by(before)
            found = method(*arguments, **keywords)
            if after is not None:
                self.pass_by(after)
            return found

        setattr(cls, name, planted)


def die() -> None:
    """kill -9."""
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Struck:
    """A broker's process, and the signal that ends it."""

    process: int
    signal: int

    def __call__(self) -> None:
        """End it, and wait until it is gone."""
        os.kill(self.process, self.signal)
        while self._runs():
            time.sleep(0.001)

    def _runs(self) -> bool:
        try:
            state = Path(f"/proc/{self.process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return False
        return state not in "ZX"


@dataclass(frozen=True)
class Ended:
    """A command that has ended; ``code``: below zero, the signal that killed it."""

    code: int
    output: str
    errors: str


def run(
    arguments: Sequence[str], environment: Mapping[str, str], point: str, number: float, struck: Struck | None = None
) -> Ended:
    """Run one to its end, in a process of its own. ``struck``: what is ended at the point; None: the command itself."""
    who = None if struck is None else [struck.process, struck.signal]
    code = "import json, sys; from tests.faults.letters_victim import main; main(*json.loads(sys.argv[1]))"
    command = (sys.executable, "-c", code, json.dumps([arguments, point, number, who]))
    done = forked.run(command, env={**os.environ, **environment})
    return Ended(done.returncode, done.stdout, done.stderr)


def main(arguments: list[str], point: str, number: float, struck: Sequence[int] | None) -> None:
    """Run one, and end the process with its exit code."""
    from redelivery.cli.app import app
    from redelivery.client.sync.producer import Producer
    from redelivery.client.sync.session import Session
    from redelivery.model.messages import Message
    from redelivery.operate.letters import moving
    from redelivery.operate.letters.receipts import undoing
    from redelivery.operate.letters.receipts.writer import ReceiptWriter

    for module in (moving, undoing):
        vars(module)["BATCH"] = BATCH
    sys.argv = ["redelivery", "dlq", *arguments]
    planted = Planted(point, number, die if struck is None else Struck(*struck))
    planted.around(Session, "commit", BEFORE_COMMIT, COMMITTED)
    planted.around(Producer, "send", None, SENT)
    planted.around(Message, "acknowledge", BEFORE_ACK, ACKED)
    write = os.write

    def written(file: int, data: bytes) -> int:
        if planted.reach(CUT):
            write(file, data[: len(data) * 2 // 3])
            die()
        done = write(file, data)
        planted.pass_by(LINE)
        return done

    sys.modules[ReceiptWriter.__module__].os = _Os(written)  # type: ignore[attr-defined]  # it stands in for the module
    if point == MOMENT:
        timer = threading.Timer(number, die)
        timer.daemon = True
        timer.start()
    began, code = time.monotonic(), 0
    try:
        app()
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        if point == COUNT:
            print(json.dumps({**planted.seen, MOMENT: time.monotonic() - began}), file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


class _Os:
    """The module os with another `write`."""

    def __init__(self, write: Callable[[int, bytes], int]) -> None:
        self.write = write

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)
