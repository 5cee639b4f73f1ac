"""One run over letters that were shown before: replay, move, edit or purge, with its receipt, or the undoing of one.

It acts on the letters of these ids and on no others, whatever has come to the queue since they were shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any, Final

from redelivery.client.entry.sync import Connection
from redelivery.model.destinations import Destination
from redelivery.model.errors import ConfigError, JMSError
from redelivery.operate.letters.canary import Progress, check_watchable
from redelivery.operate.letters.editing import Change, Edited
from redelivery.operate.letters.moving import MovePlan, Mover, plan
from redelivery.operate.letters.receipts import resuming, undoing
from redelivery.operate.letters.receipts.receipt import RunReceipt
from redelivery.operate.letters.receipts.writer import ReceiptWriter
from redelivery.operate.letters.replaying.planned import PlannedReplays
from redelivery.operate.letters.replaying.widening import Canary, Widening
from redelivery.operate.letters.routes import REPLAYS_ALLOWED, Route, back, elsewhere, new_run, nowhere
from redelivery.operate.letters.selection import Selection

COMMANDS: Final = ("replay", "move", "edit", "purge")


@dataclass(frozen=True, slots=True)
class RunOrder:
    """An order: a command for letters of ``queue``, by their ids, and those without one by their ``contents``.

    ``to``: where they go; None: where each came from. ``keep``: a purge keeps them in its receipt. ``change``: of an
    edit. ``canary``: so many are replayed first, then ten times as many each time that those before were handled;
    ``canary_wait``: seconds, None: as long as their policy needs. ``contents``: as `content_of` has them. ``most``: so
    many letters as were shown. Raises ConfigError: no such command; or a move without a queue, or to its own.
    """

    command: str
    queue: Destination
    ids: frozenset[str]
    to: Destination | None = None
    keep: bool = True
    change: Change | None = None
    canary: int | None = None
    canary_wait: float | None = None
    contents: frozenset[str] = frozenset()
    most: int | None = None

    def __post_init__(self) -> None:
        if self.contents and self.canary is not None:
            raise ConfigError("a canary needs letters with ids: replay these without one")
        if self.command not in COMMANDS or (self.command == "edit") != (self.change is not None):
            raise ConfigError(f"there is no such command: {self.command}")
        if self.command == "move" and self.to is None:
            raise ConfigError("name the queue that the letters are moved to")
        if self.to == self.queue:
            raise ConfigError(f"{self.to}: the letters are there")

    def route(self, run: str) -> Route:
        """The way on which each letter leaves."""
        match self.command:
            case "move":
                assert self.to is not None, "checked above"
                return elsewhere(self.to, run)
            case "edit":
                assert self.change is not None, "checked above"
                return Edited(self.change, self.to, run)
            case "purge":
                return nowhere()
        return back(self.to, run, REPLAYS_ALLOWED)


class LetterRun:
    """A run, and how far it is; it runs in the thread that calls `work`, and others read it.

    ``what``: its command, or ``undo`` or ``resume``. ``receipt``: the file; None until it is begun. ``doing``: what it
    does now, for people. ``error``: why it ended too soon. ``begun``: is set when there is a receipt, or an error;
    ``ended`` at its end.
    """

    def __init__(self, what: str, receipt: Path | None = None) -> None:
        self.what = what
        self.receipt = receipt
        self.moved = 0
        self.total: int | None = None
        self.stayed = 0
        self.doing = "looking"
        self.error: JMSError | None = None
        self.begun = Event()
        self.ended = Event()

    def work(self, connect: Callable[[], Connection], act: Callable[[Connection, LetterRun], None]) -> None:
        """Do it; what the broker or the receipt raises is kept in ``error``."""
        try:
            with connect() as connection:
                act(connection, self)
        except JMSError as error:
            self.error = error
        finally:
            self.begun.set()
            self.ended.set()

    def count(self, moved: int) -> None:
        """Say how many have left."""
        self.moved = moved


def perform(order: RunOrder, folder: Path, asked: Mapping[str, Any]) -> Callable[[Connection, LetterRun], None]:
    """The run of an order, whose receipt comes into this folder. ``asked``: what else is written at its head."""

    def act(connection: Connection, run: LetterRun) -> None:
        name = new_run()
        route = order.route(name)
        selection = Selection(order.queue, limit=order.most, ids=order.ids, contents=order.contents)
        letters = PlannedReplays(watched=order.canary is not None)
        planned = plan(connection, selection, route, letters.note, kept=order.keep)
        run.total, run.stayed = len(planned.ids), planned.stay
        if not planned.ids:
            raise ConfigError(
                planned.why or "none of these letters is on the queue any more: somebody has taken them since"
            )
        if order.canary is not None:
            check_watchable(connection, dict.fromkeys(each.target for each in letters))
        writer = ReceiptWriter.begun(
            folder,
            connection,
            run=name,
            command=order.command,
            queue=order.queue,
            to=order.to,
            planned=planned.letters(route.changed if isinstance(route, Edited) else None),
            keep=order.keep,
            kept=True if order.command == "purge" and order.keep else None,
            marked=True if order.command == "move" else None,
            canary=order.canary,
            canary_wait=order.canary_wait,
            **asked,
        )
        run.receipt = writer.path

        def mover(moved: Callable[[int], None]) -> Mover:
            return Mover(connection, selection, route, moved=moved, receipt=writer)

        try:
            run.doing = "working"
            run.begun.set()
            if order.canary is None:
                mover(run.count).move(planned)
            else:
                canary = Canary(order.canary, order.canary_wait)
                _in_stages(connection, canary, planned, letters, run, name, mover, order.queue)
            writer.end(run.moved)
        finally:
            writer.close()

    return act


def undo(receipt: RunReceipt) -> Callable[[Connection, LetterRun], None]:
    """The run that puts back what a receipt says; see `undoing.undo`."""
    return _again(receipt, undoing.undo)


def resume(receipt: RunReceipt) -> Callable[[Connection, LetterRun], None]:
    """The run that goes on with one that was cut short; see `resuming.resume`."""
    return _again(receipt, resuming.resume)


def _again(receipt: RunReceipt, work: Callable[..., int]) -> Callable[[Connection, LetterRun], None]:
    def act(connection: Connection, run: LetterRun) -> None:
        run.doing = "working"
        run.begun.set()
        writer = ReceiptWriter(receipt.path, batches=receipt.batches, keep="kept" in receipt.head["asked"])
        try:
            run.count(work(connection, receipt, writer, run.count))
        finally:
            writer.close()

    return act


def _in_stages(
    connection: Connection,
    canary: Canary,
    planned: MovePlan,
    letters: PlannedReplays,
    run: LetterRun,
    name: str,
    mover: Callable[[Callable[[int], None]], Mover],
    queue: Destination,
) -> None:
    """Replay them in stages, each when the one before has been handled; ``mover`` makes one that counts so."""

    def move(part: MovePlan, moved: Callable[[int], None]) -> int:
        before = run.moved

        def count(more: int) -> None:
            run.count(before + more)
            moved(more)

        return mover(count).move(part)

    @contextmanager
    def watching(_count: int, _wait: float) -> Iterator[Callable[[Progress], None]]:
        def notify(found: Progress) -> None:
            run.doing = (
                f"waiting for the canaries: {found.waiting} not yet taken, {found.gone} gone, {found.left:.0f} s more"
            )

        yield notify
        run.doing = "working"

    Widening(connection, queue, canary, name, move, watching=watching).replay(planned, letters)
