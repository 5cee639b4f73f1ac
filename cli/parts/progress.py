"""Shows how far a command is, on the standard error of a terminal; what it prints elsewhere is not mixed with it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.status import Status
from rich.text import Text

from redelivery.operate.letters.canary import Progress as Canaries
from redelivery.operate.shown import number_of

_T = TypeVar("_T")


class _CursorConsole(Console):
    """The standard error, whose cursor is never hidden: one that is stopped or killed leaves the terminal as it was."""

    def __init__(self, *, quiet: bool = False) -> None:
        super().__init__(stderr=True, quiet=quiet)

    def show_cursor(self, show: bool = True) -> bool:  # noqa: ARG002  # rich's own
        """Nothing."""
        return False


class Counting(Progress):
    """A context in which letters are counted: how many, how many a second, and how long the rest will take.

    ``what``: is done with them. ``total``: None where nobody knows. ``wanted``: False: nothing is shown.
    """

    def __init__(self, what: str, total: int | None, wanted: bool = True) -> None:
        columns: list[ProgressColumn] = [TextColumn("{task.description}"), TextColumn("{task.completed:,.0f}"), _Rate()]
        if total is not None:
            columns[1:2] = [BarColumn(), MofNCompleteColumn()]
            columns.append(TimeRemainingColumn(elapsed_when_finished=True))
        shows = wanted and sys.stderr.isatty()
        super().__init__(*columns, console=_CursorConsole(), disable=not shows, transient=total is None)
        self._task = self.add_task(what, total=total)

    def show(self, done: int) -> None:
        """Show that so many are done."""
        self.update(self._task, completed=done)

    def of(self, letters: Iterable[_T]) -> Iterator[_T]:
        """The same letters, counted as they pass."""
        for number, each in enumerate(letters, 1):
            yield each
            self.show(number)


class Watching(Status):
    """A context in which canaries are watched: how many are still waiting, and how long until it is decided."""

    def __init__(self, count: int, wait: float, wanted: bool = True) -> None:
        sent = f"{number_of(count, 'canary', 'canaries')} sent; what follows is replayed when they have been handled"
        shows = wanted and sys.stderr.isatty()
        super().__init__(sent, console=_CursorConsole(quiet=not shows))
        if wanted and not shows:
            print(f"{sent}: gone for {wait:g} s, and not back", file=sys.stderr)

    def show(self, progress: Canaries) -> None:
        """Show that so many are where they were sent to."""
        left = "" if progress.waiting else f", {progress.left:.0f} s until they can no longer be back"
        self.update(f"canaries: {progress.gone} taken, {progress.waiting} waiting{left}")


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        elapsed = task.finished_time or task.elapsed
        if not elapsed or not task.completed:
            return Text("")
        speed = task.completed / elapsed
        return Text(f"{speed:,.0f}/s" if speed >= 10 else f"{speed:.1f}/s")
