"""A command that takes letters from a queue: what is planned, whether it may be done, and how far it is."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import typer

from redelivery import Connection, Message
from redelivery.cli.parts.progress import Counting
from redelivery.cli.parts.shown import as_json, complain, visible
from redelivery.cli.parts.target import NothingError, nothing_in
from redelivery.model.destinations import Destination
from redelivery.model.errors import ConfigError, JMSError
from redelivery.operate.letters.canary import CanaryError
from redelivery.operate.letters.moving import MovePlan, Mover, plan
from redelivery.operate.letters.receipts.receipt import PlannedLetter
from redelivery.operate.letters.receipts.writer import ReceiptWriter, state_folder
from redelivery.operate.letters.routes import Leaving, Route, new_run
from redelivery.operate.letters.selection import Selection
from redelivery.operate.management.browsing import NoQueueError
from redelivery.operate.shown import number_of

__all__ = ["LetterWork", "meant", "state_folder"]


class LetterWork:
    """One command that takes letters away: what is planned, whether it may be done, how far it is.

    Used as a context manager, which closes its receipt.

    Raises:
        ConfigError: the rate is not one.
        JMSError: the broker refuses, or lets nobody look where that is needed.
    """

    def __init__(
        self,
        command: str,
        connection: Connection,
        selection: Selection,
        route: Route,
        as_json: bool,
        rate: str | None = None,
        *,
        receipts: Path | None,
        to: Destination | None = None,
        run: str | None = None,
        keep: bool = True,
    ) -> None:
        self._command = command
        self._connection = connection
        self._rate = _rate(rate)  # before anybody is asked
        self._asked = selection
        self.selection = selection.on(connection)
        self._route = route
        self._receipts = receipts_folder(receipts)
        self._to, self._run, self._keep = to, run or new_run(), keep
        self._receipt: ReceiptWriter | None = None
        self.as_json = as_json
        self.added: dict[str, Any] = {}  # to what a program reads
        self.moved = 0
        self.planned = MovePlan([])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._receipt is not None:
            self._receipt.close()

    def begin(
        self,
        *,
        dry_run: bool,
        yes: bool,
        what: str,
        edits: Sequence[PlannedLetter] | None = None,
        noted: Callable[[Message, Leaving | None], None] = lambda _letter, _leaving: None,
        foreseen: Callable[[], None] = lambda: None,
        **asked: Any,
    ) -> None:
        """Look what is to be done, and ask whether it is.

        ``what``: the question, with {letters}, {them} and {target}. ``edits``: see `Edited.changed`. ``noted``: see
        `plan`.
        ``foreseen``: called before anybody is asked. ``asked``: for the receipt.

        Raises:
            NothingError: nothing is to be done.
            Exit: it is not to be done.
        """
        self.planned = plan(self._connection, self.selection, self._route, noted, kept=self._keep)
        count = len(self.planned.ids)
        letters = number_of(count, "letter")
        if self.planned.unseen:
            limit = "" if self.selection.limit is None else f"{self.selection.limit} of "
            letters = f"{limit}the letters of {self.selection.queue} (nobody has looked into it)"
        if self.planned.stay:
            stay = "1 stays" if self.planned.stay == 1 else f"{self.planned.stay} stay"
            complain("dlq", f"{stay}; the first of them: {self.planned.why}")
        skipped = len(self.planned.skipped)
        if skipped:
            complain("dlq", f"{skipped} skipped: replayed as often as --max-replays allows, and back (0: no limit)")
        if not count and not self.planned.unseen:
            if self.planned.stay or skipped:
                raise NothingError("no letter can leave")
            raise nothing_in(self.selection.queue, meant(self._asked))
        foreseen()
        them, their = ("it", "its") if letters == "1 letter" else ("them", "their")
        what = what.format(letters=letters, them=them, target=self._to or f"{their} original queue")
        if dry_run:
            self._say(visible(f"would {what}"), dry_run=True)
            raise typer.Exit
        if not yes:
            if not sys.stdin.isatty():
                other = "" if self.planned.unseen else ", or --dry-run to look only"
                raise ConfigError(f"this would {what}: add --yes{other}")
            if not typer.confirm(visible(f"{what[0].upper()}{what[1:]}?"), err=True):
                raise typer.Exit(1)
        self._begin_receipt(edits, asked)

    def _begin_receipt(self, edits: Sequence[PlannedLetter] | None, asked_too: dict[str, Any]) -> None:
        asked: dict[str, Any] = {"where": self._asked.selector, "group": self._asked.group, "limit": self._asked.limit}
        asked |= asked_too | {"skipped": self.planned.skipped or None}
        asked["kept"] = True if self._command == "purge" and self._keep else None
        self._receipt = ReceiptWriter.begun(
            self._receipts,
            self._connection,
            run=self._run,
            command=self._command,
            queue=self.selection.queue,
            to=self._to,
            planned=None if self.planned.unseen else self.planned.letters(edits),
            keep=self._keep,
            **asked,
        )

    def move_all(self) -> None:
        """Move what is planned. Where that ends too soon, the error says how it is gone on with."""
        with self.cut_short():
            self.move(self.planned)

    def move(self, planned: MovePlan, between: Callable[[int], None] = lambda _: None) -> int:
        """Move these, and show how far it is; how many they were. ``between``: called after each batch.

        Its caller is inside `cut_short`.
        """
        before = self.moved
        with Counting(self._command, None if planned.unseen else before + len(planned.ids), not self.as_json) as shown:
            shown.show(before)

            def moved(count: int) -> None:
                self.moved = before + count
                shown.show(self.moved)
                between(count)

            mover = Mover(
                self._connection, self.selection, self._route, rate=self._rate, moved=moved, receipt=self._receipt
            )
            mover.move(planned)
        return self.moved - before

    @contextmanager
    def cut_short(self) -> Iterator[None]:
        """Say, where the run ends too soon, how far it has come and by which command it is gone on with."""
        with cut_short(None if self._receipt is None else self._receipt.path, moved=lambda: self.moved):
            yield

    def end(self) -> None:
        """Say what was done. Raises NothingError: nothing was."""
        done = {"replay": "replayed", "move": "moved", "edit": "edited and replayed", "purge": "taken away"}[
            self._command
        ]
        if not self.moved:
            raise nothing_in(self.selection.queue, meant(self._asked))
        if self._receipt is not None:
            self._receipt.end(self.moved)
        skipped = f", {len(self.planned.skipped)} skipped" if self.planned.skipped else ""
        self._say(f"{self.moved} {done}{skipped}", dry_run=False)

    def say_receipt(self) -> None:
        """Say where the receipt is; on the standard error, so that a program's JSON is as it was."""
        if self._receipt is not None:
            print(f"receipt: {visible(self._receipt.path)}", file=sys.stderr)

    def say_moved(self) -> None:
        """Say to a program how many have left, where the command ends with an error."""
        if self.as_json:
            self._say("", dry_run=False)

    def _say(self, text: str, *, dry_run: bool) -> None:
        self.say_receipt()
        if not self.as_json:
            print(text)
            return
        count = len(self.planned.ids) if dry_run else self.moved
        print(as_json({"letters": count, "stay": self.planned.stay, "dry_run": dry_run, **self.added}))


@contextmanager
def cut_short(receipt: Path | None, again: str = "resume", moved: Callable[[], int] | None = None) -> Iterator[None]:
    """Say, where a run ends too soon, by which command it is gone on with, and how many it had moved."""
    try:
        yield
    except (CanaryError, NoQueueError):  # it was to end, or nothing was begun
        raise
    except (JMSError, KeyboardInterrupt) as error:
        least = "at least " if isinstance(error, KeyboardInterrupt) else ""  # the last commit may have been made
        before = "" if moved is None else f"{least}{number_of(moved(), 'letter')} moved before; "
        if receipt is not None:
            command = f"redelivery dlq {again} {shlex.quote(str(receipt))}"
            error.add_note(f"{before}once the cause is fixed, '{command}' goes on")
        raise


def receipts_folder(given: Path | None) -> Path:
    """The folder of the receipts: the given one, or that in the state folder."""
    return state_folder() / "receipts" if given is None else given


def meant(selection: Selection) -> str | None:
    """The text of what is asked for of a queue, for people; None: all of it."""
    said = [] if selection.ids is None else [f"MESSAGE-ID {each}" for each in sorted(selection.ids)]
    if selection.selector is not None:
        said.append(f"--where {selection.selector!r}")
    if selection.group is not None:
        said.append(f"--group {selection.group} ('redelivery dlq groups' lists them)")
    return " and ".join(said) or None


def _rate(text: str | None) -> float | None:
    if text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(?:/s)?", text)
    if found is None or not float(found[1]):
        raise ConfigError(f"--rate {text}: write letters per second, such as 50/s")
    return float(found[1])
