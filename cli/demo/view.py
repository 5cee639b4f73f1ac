"""The demo on a terminal: a line for each delivery, and below them, live, what waits and what is dead-lettered."""

from __future__ import annotations

from time import monotonic
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from redelivery.cli.demo.events import (
    DeadLettered,
    Delivered,
    Event,
    Failed,
    Processed,
    Sent,
    SparkReads,
    SparkTable,
    Started,
    Summary,
)
from redelivery.cli.demo.panels import conclusion, dead_letters, introduction, spark_table
from redelivery.cli.demo.picture import Picture

_WIDE: Final = 100  # columns from which the class of an error is shown with its text
_STATES: Final = {
    "sent": ("·", "dim"),
    "working": ("▸", "bold cyan"),
    "waiting": ("↻", "bold yellow"),
    "processed": ("✔", "green"),
    "dead": ("✘", "bold red"),
}


class LiveView(Picture):
    """Draws events on ``console``; a context manager, which leaves the last picture behind."""

    def __init__(self, console: Console) -> None:
        self._started: Started | None = None
        self._states: dict[str, str] = {}
        self._current: Delivered | None = None
        self._wait: tuple[float, float] | None = None  # since when, and how long
        self._letters: list[DeadLettered] = []
        self._summary: Summary | None = None
        self._spark: SparkReads | SparkTable | None = None
        super().__init__(console)  # last: it draws the first picture

    def __call__(self, event: Event) -> None:
        """Show one event."""
        match event:
            case Started():
                self._started = event
                self._console.print(introduction(event))
                self._print(_row("order", "delivery", "redelivered", "planned", "measured").append("handler"), "bold")
                self._live.start()
            case Sent(order):
                self._states[order] = "sent"
            case Delivered(order):
                self._states[order] = "working"
                self._current, self._wait = event, None
            case Processed(order):
                self._states[order] = "processed"
                self._outcome(Text("✔ commit", "green"))
                self._current = None
            case Failed(order, error, again_in):
                self._states[order] = "waiting"
                shown = error if self._console.width >= _WIDE else error.partition(": ")[2]
                self._outcome(Text(f"✘ rollback: {shown}", "red" if again_in is None else "yellow"))
                self._wait = None if again_in is None else (monotonic(), again_in)
            case DeadLettered(order):
                self._states[order] = "dead"
                self._letters.append(event)
                self._current = None
                self._print(Text(f" {order:<7}").append(_poisoned(event)), "red")
            case Summary():
                self._summary, self._ended = event, True
            case SparkReads() | SparkTable():
                self._spark = event
        self._live.refresh()

    def _outcome(self, outcome: Text) -> None:
        """The line of the delivery that has just ended."""
        at = self._current
        assert at is not None, "an outcome follows its delivery"
        planned = "" if at.planned is None else f"{at.planned:.3f} s"
        measured = "" if at.measured is None else f"{at.measured:.3f} s"
        row = _row(at.order, str(at.delivery), "yes" if at.redelivered else "no", planned, measured)
        self._print(row.append_text(outcome))

    def _print(self, text: Text, style: str = "none") -> None:
        self._console.print(text, style=style, no_wrap=True, overflow="ellipsis")

    def _picture(self) -> RenderableType:
        if self._started is None:
            return Text()
        parts: list[RenderableType] = [Text()]
        if not self._ended:
            parts += [self._board(), self._now(), Text()]
        parts.append(dead_letters(self._started, self._letters))
        if self._summary is not None:
            parts.append(conclusion(self._summary))
        if isinstance(self._spark, SparkReads):
            parts.append(Text(f" a Spark stream reads {self._spark.queue} …", "magenta"))
        elif self._spark is not None:
            parts.append(spark_table(self._spark))
        return Group(*parts)

    def _board(self) -> Text:
        """All orders, each with its state."""
        board = Text(" ", no_wrap=True, overflow="ellipsis")
        for order, state in list(self._states.items()):  # a copy: the live display draws on a thread of its own
            sign, style = _STATES[state]
            board.append(f"{order} {sign}   ", style)
        return board

    def _now(self) -> RenderableType:
        at, wait = self._current, self._wait
        if at is None:
            return Text(" waiting for the next delivery", "dim")
        if wait is None:
            return Text(f" {at.order} is with the handler", "cyan")
        since, delay = wait
        gone = min(monotonic() - since, delay)
        row = Table.grid(padding=(0, 1))
        row.add_row(
            Text(f" {at.order} is redelivered in {delay - gone:.1f} s", "yellow", no_wrap=True),
            ProgressBar(total=delay, completed=gone, width=16, complete_style="yellow", finished_style="yellow"),
            Text("the next ones wait: order kept", "dim", no_wrap=True),
        )
        return row


def _row(order: str, delivery: str, redelivered: str, planned: str, measured: str) -> Text:
    row = Text(f" {order:<7}{delivery:<10}")
    row.append(f"{redelivered:<13}", "dim" if redelivered == "no" else "none")
    return row.append(f"{planned:<9}{measured:<10}", "cyan" if planned[:1].isdigit() else "none")


def _poisoned(letter: DeadLettered) -> str:
    return f"poison ack: {letter.deliveries} deliveries used up, a dead letter {letter.after * 1000:.0f} ms later"
