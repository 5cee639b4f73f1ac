"""The outage on a terminal: a line for each thing that happens, and below, live, every order and the connection."""

from __future__ import annotations

from time import monotonic
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.syntax import Syntax
from rich.text import Text

from redelivery.cli.demo.events import (
    Back,
    Delivered,
    Event,
    Gone,
    Killed,
    OutageStarted,
    OutageSummary,
    Processed,
    Redialled,
    Restarted,
    Sent,
    Uncertain,
)
from redelivery.cli.demo.lines import LineView
from redelivery.cli.demo.picture import Picture, panel, summary_panel

_CODE: Final = """\
connection = redelivery.connect(url, reconnect=ReconnectPolicy())
container = connection.listener_container("orders", handle)
publisher.send(order, "orders")       # waits while the broker is away"""
_STATES: Final = {
    "to come": ("·", "dim"),
    "sent": ("●", "yellow"),
    "working": ("▸", "bold cyan"),
    "processed": ("✔", "green"),
}
_LOUD: Final = {Killed: "bold red", Gone: "red", Redialled: "dim red", Restarted: "bold green", Back: "bold green"}


class OutageView(Picture):
    """Draws events on ``console``; a context manager, which leaves the last picture behind."""

    def __init__(self, console: Console) -> None:
        self._lines = LineView()
        self._began = monotonic()
        self._states: dict[str, str] = {}
        self._gone_at: float | None = None
        self._broker = Text()
        self._summary: OutageSummary | None = None
        super().__init__(console)  # last: it draws the first picture

    def __call__(self, event: Event) -> None:
        """Show one event."""
        match event:
            case OutageStarted():
                self._began = monotonic()
                self._console.print(_introduction(event))
                self._states = dict.fromkeys(event.orders, "to come")
                self._broker = Text(f"broker {event.pid} runs", "green")
                self._live.start()
            case Sent(order):
                self._states[order] = self._states[order].replace("to come", "sent")
            case Delivered(order):
                if self._states[order] in ("working", "processed"):
                    self._print(
                        Text(f"order {order}  delivered again: what it did was rolled back or in doubt", "yellow")
                    )
                self._states[order] = "working"
            case Processed(order):
                self._states[order] = "processed"
            case Uncertain() | Redialled():
                self._print(Text(self._lines.line(event), "yellow" if isinstance(event, Uncertain) else "dim red"))
            case Killed() | Gone() | Restarted() | Back():
                self._changed(event)
            case OutageSummary():
                self._summary, self._ended = event, True
        self._live.refresh()

    def _changed(self, event: Killed | Gone | Restarted | Back) -> None:
        self._print(Text(self._lines.line(event), _LOUD[type(event)]))
        match event:
            case Killed(pid):
                self._broker = Text(f"broker {pid} is dead", "bold red")
            case Restarted(pid):
                self._broker = Text(f"broker {pid} runs", "green")
            case Gone():
                self._gone_at = monotonic()
            case Back():
                self._gone_at = None

    def _print(self, text: Text) -> None:
        line = Text(f" {monotonic() - self._began:5.1f} s  ", "dim").append_text(text)
        self._console.print(line, no_wrap=True, overflow="ellipsis")

    def _picture(self) -> RenderableType:
        if not self._states:
            return Text()
        parts: list[RenderableType] = [Text(), self._board()]
        if not self._ended:
            parts += [Text(), self._connection()]
        if self._summary is not None:
            parts += [Text(), _conclusion(self._summary)]
        return Group(*parts)

    def _board(self) -> Text:
        """All orders, each with its state."""
        board = Text(" ")
        for order, state in list(self._states.items()):  # a copy: the live display draws on a thread of its own
            sign, style = _STATES[state]
            board.append(f"{order}\u00a0{sign}", style).append("  ")
        return board

    def _connection(self) -> Text:
        if self._gone_at is None:
            state = Text(" ● connected", "green")
        else:
            state = Text(f" ○ connection lost {monotonic() - self._gone_at:.1f} s ago, dialling", "bold yellow")
        return state.append("   ").append_text(self._broker)


def _introduction(event: OutageStarted) -> Panel:
    where = Text.assemble(
        (event.broker, "bold"), f", process {event.pid}, {event.url}, which keeps its messages in a file.\n",
        (f"{len(event.orders)} orders", "bold"), " are sent while a worker processes them. ",
        ("Then the broker is killed.", "bold red"),
    )  # fmt: skip
    listing = Syntax(_CODE, "python", theme="ansi_dark", background_color="default")
    inside = Group(where, Padding(listing, (1, 0, 0, 2)))
    return panel(inside, "redelivery demo --outage", "cyan")


def _conclusion(summary: OutageSummary) -> Panel:
    text = Text.assemble(
        (str(summary.sent), "bold"), " orders sent, ",
        (str(summary.processed), "bold green"), " processed, ",
        (str(summary.redelivered), "bold cyan"), " of them delivered again; ",
        f"the broker was away for {summary.away:.1f} s\n",
        f"in doubt: {summary.in_doubt}, processed twice because of that: {summary.doubled}\n",
    )  # fmt: skip
    fine = "none lost, and none twice but what was in doubt"
    return summary_panel(text, summary.problems, fine, summary.seconds)
