"""One run over letters that were shown before: replay, move, edit or purge, with its receipt, or the undoing of one.

It acts on the letters of these ids and on no others, whatever has come to the queue since they were shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from threading import Event
from typing import Any, Final

from redelivery.client.entry.sync import Connection
from redelivery.model.destinations import Destination
from redelivery.model.errors import ConfigError, JMSError, MessageFormatError
from redelivery.operate.letters.canary import Progress, Watch, check_watchable, needed
from redelivery.operate.letters.editing import Change, Edited
from redelivery.operate.letters.moving import MovePlan, Mover, plan
from redelivery.operate.letters.receipts import resuming, undoing
from redelivery.operate.letters.receipts.receipt import RunReceipt
from redelivery.operate.letters.receipts.writer import ReceiptWriter
from redelivery.operate.letters.routes import NoWayError, Route, back, elsewhere, new_run, nowhere
from redelivery.operate.letters.selection import Selection

COMMANDS: Final = ("replay", "move", "edit", "purge")


@dataclass(frozen=True, slots=True)
class RunOrder:
    """An order: a command for letters of ``queue``, by their ids, and those without one by their ``contents``.

    ``to``: where they go; None: where each came from. ``keep``: a purge keeps them in its receipt. ``change``: of an
    edit. ``canary``: so many are replayed first, and the rest when these were handled; ``canary_wait``: seconds, None:
    as long as their policy needs. ``contents``: as `content_of` has them. ``most``: so many letters as were shown.

    Raises:
        ConfigError: no such command; or a move without a queue, or to its own.
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
                return elsewhere(self.to)
            case "edit":
                assert self.change is not None, "checked above"
                return Edited(self.change, self.to, run)
            case "purge":
                return nowhere()
        return back(self.to, run)


class LetterRun:
    """A run, and how far it is; it runs in the thread that calls `work`, and others read it.

    Attributes:
        what: its command, or ``undo`` or ``resume``.
        receipt: the file; None until it is begun.
        moved, total: letters.
        doing: what it does now, for people.
        error: why it ended too soon.
        begun: is set when there is a receipt, or an error.
        ended: is set at its end.
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
        planned = plan(connection, selection, route)
        run.total, run.stayed = len(planned.ids), planned.stay
        if not planned.ids:
            raise ConfigError(
                planned.why or "none of these letters is on the queue any more: somebody has taken them since"
            )
        watch = None if order.canary is None else _Canary(connection, order, name, order.canary)
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
            **asked,
        )
        run.receipt = writer.path
        try:
            run.begun.set()
            _move(connection, selection, route, planned, run, writer, watch)
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


def _move(
    connection: Connection,
    selection: Selection,
    route: Route,
    planned: MovePlan,
    run: LetterRun,
    writer: ReceiptWriter,
    watch: _Canary | None,
) -> None:
    if watch is not None:
        run.doing = "replaying the canaries"
        first = planned.ids[: watch.count]
        named = frozenset(each for each in first if each is not None)
        few = Selection(selection.queue, ids=named)
        Mover(connection, few, route, moved=run.count, receipt=writer).move(plan(connection, few, route))
        run.doing = "waiting for the canaries"
        watch.until_handled(run)
        planned = replace(planned, ids=planned.ids[watch.count :], others=True)
        rest = frozenset(each for each in planned.ids if each is not None)
        selection = replace(selection, ids=rest)
    run.doing = "working"
    before = run.moved

    def count(moved: int) -> None:
        run.count(before + moved)

    Mover(connection, selection, route, moved=count, receipt=writer).move(planned)


class _Canary:
    """The first letters of a replay, and where it is seen whether they are handled."""

    def __init__(self, connection: Connection, order: RunOrder, run: str, count: int) -> None:
        letters, targets = [], []
        route = back(order.to, run)
        for letter in Selection(order.queue, ids=order.ids).browse(connection):
            try:
                leaving = route(letter)
            except (NoWayError, MessageFormatError):
                continue
            if leaving is not None:
                letters.append(letter)
                targets.append(leaving.destination)
        letters, targets = list(islice(letters, count)), targets[:count]
        check_watchable(connection, targets)
        self.count = len(letters)
        seconds = needed(letters) if order.canary_wait is None else order.canary_wait
        self._watch = Watch(connection, order.queue, targets, run, self.count, seconds)

    def until_handled(self, run: LetterRun) -> None:
        """Return when they are. Raises CanaryError: one is back, or nobody took it."""

        def notify(found: Progress) -> None:
            run.doing = (
                f"waiting for the canaries: {found.waiting} not yet taken, {found.gone} gone, {found.left:.0f} s more"
            )

        self._watch.until_handled(notify)
