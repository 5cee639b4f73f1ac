"""The runs of a console: each in a thread of its own, as it may take longer than anybody waits for a page."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock, Thread
from typing import Final

from redelivery.client.entry.sync import Connection
from redelivery.operate.views.runs import LetterRun
from redelivery.web.calls import BusyError
from redelivery.web.sites import BrokerSite

_AT_ONCE: Final = 4
_KEPT: Final = 200
_BEGINS: Final = 15.0  # seconds until there is a receipt, or an error
_SHORT: Final = 1.0  # seconds: a run that is over by then is shown as such at once


class LetterRuns:
    """The runs since the console was started, the last 200, by the names of their receipts."""

    def __init__(self) -> None:
        self._all: list[LetterRun] = []
        self._lock = Lock()

    def start(self, site: BrokerSite, run: LetterRun, act: Callable[[Connection, LetterRun], None]) -> LetterRun:
        """Begin one, and return when it has its receipt.

        Raises:
            BusyError: four are running.
            JMSError: it could not begin, and has done nothing.
        """
        with self._lock:
            running = [each for each in self._all if not each.ended.is_set()]
            if len(running) >= _AT_ONCE:
                raise BusyError(f"{len(running)} runs are not at their end: wait for one of them")
            if run.receipt is not None and any(each.receipt == run.receipt for each in running):
                raise BusyError("a run with this receipt is not at its end: wait for it")
            self._all = [*self._all[-_KEPT:], run]
        Thread(target=run.work, args=(site.connect, act), name="redelivery run", daemon=True).start()
        run.begun.wait(_BEGINS)
        run.ended.wait(_SHORT)
        if run.error is not None and not run.moved:
            raise run.error
        return run

    def of(self, receipt: str) -> LetterRun | None:
        """The last run with the receipt of this name."""
        with self._lock:
            found = [each for each in self._all if each.receipt is not None and each.receipt.name == receipt]
        return found[-1] if found else None
