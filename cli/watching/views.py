"""A look as ``redelivery top`` prints it: in as many columns as there is room for, as a plain table, or as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from redelivery.cli.messages import stamp
from redelivery.cli.parts.shown import CUT, as_json, complain, visible
from redelivery.cli.parts.tables import print_table
from redelivery.operate.watching.rates import Look, Number, RatedRow, dead_letters, unsaid

NOTHING: Final = "\u2013"
_TITLES: Final[Mapping[str, str]] = {
    "messages": "depth",
    "change": "±/s",
    "in": "in/s",
    "out": "out/s",
    "failed": "failed/s",
    "consumers": "consumers",
    "in_flight": "in flight",
    "retries": "retries",
    "dead_letters": "dead",
}
_FIRST_KEPT: Final = ("messages", "dead_letters", "out", "in", "retries", "failed", "consumers", "change", "in_flight")
_NAME: Final = 14  # cells of a name, at least
_NOTES: Final = 3  # lines


@dataclass(frozen=True, slots=True)
class LookReport:
    """The part of one look that was asked for. ``rows``: in order; ``notes``: why numbers are missing."""

    seen: Look
    rows: Sequence[RatedRow]
    notes: Sequence[str]
    interval: float
    kind: str  # of what the rows are: queues or destinations

    @property
    def columns(self) -> list[str]:
        """The columns that these rows have."""
        return [name for name in _TITLES if any(name in row.numbers for row in self.rows)]

    def summary(self) -> str:
        """One line of all that is shown."""
        parts = [_number_of(len(self.rows), self.kind)]
        for name in ("messages", "in", "out"):
            if name in self.columns:
                parts.append(_number_of(_sum(self.rows, name), _TITLES[name] if name != "messages" else name))
        parts += [f"{name.replace('_', ' ')} {_fact(value)}" for name, value in self._facts().items()]
        parts.append(_number_of(dead_letters(self.seen), "dead letters"))
        return ", ".join(parts)

    def record(self) -> dict[str, Any]:
        """The same for a program."""
        samples = self.seen.samples
        found = [
            {
                "name": row.name,
                **{name: _rounded(number) for name, number in row.numbers.items()},
                "counted": dict(samples[row.name].counted),
                "dead": row.dead,
            }
            for row in self.rows
        ]
        return {
            "at": self.seen.when.isoformat(),
            "source": self.seen.source,
            "dead_letters": dead_letters(self.seen),
            **self._facts(),
            self.kind: found,
            "unsaid": list(self.notes),
        }

    def _facts(self) -> dict[str, int | bool | None]:
        return {name: value for name, value in self.seen.facts.items() if name != "dead_letters"}


def shown(seen: Look, rows: Sequence[RatedRow], *, first: bool, interval: float) -> LookReport:
    """The part of a look that is printed."""
    kind = "destinations" if seen.facts else "queues"
    return LookReport(seen, rows, unsaid(seen, rows, _TITLES, first=first), interval, kind)


class LookView(Protocol):
    """A place where looks are printed."""

    def show(self, found: LookReport) -> None:
        """Print one."""

    def lost(self, error: Exception, wait: float) -> None:
        """Say that the connection is lost, and is tried again after so many seconds."""


class PlainView:
    """Tables, one after the other: where no terminal is."""

    def show(self, found: LookReport) -> None:
        """See `LookView`."""
        print(f"{stamp(found.seen.when)}  {visible(found.seen.source, CUT)}  {visible(found.summary())}")
        columns = found.columns
        if found.rows:
            cells = [[*(_text(row.numbers.get(name), name) for name in columns), _name(row)] for row in found.rows]
            print_table([*(_TITLES[name] for name in columns), "name"], cells, numbers=len(columns))
        for note in found.notes:
            print(visible(note))
        print(flush=True)

    def lost(self, error: Exception, wait: float) -> None:
        """See `LookView`."""
        _complain_lost(error, wait)


class JsonView:
    """A line of JSON for each look."""

    def show(self, found: LookReport) -> None:
        """See `LookView`."""
        print(as_json(found.record()), flush=True)

    def lost(self, error: Exception, wait: float) -> None:
        """See `LookView`."""
        _complain_lost(error, wait)


class LookTable:
    """One look as rich renders it, whatever the size of the terminal is then."""

    def __init__(self, found: LookReport | None, lost: str = "") -> None:
        self.found = found
        self.lost = lost

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The lines that have room."""
        width, height = options.max_width, options.height or console.height
        for line in self.lines(width, height):
            line.truncate(width, overflow="ellipsis")
            yield line

    def lines(self, width: int, height: int) -> list[Text]:
        """At most so many lines of at most so many cells, from the top."""
        lost = [Text(visible(self.lost, CUT), "bold red", no_wrap=True)] if self.lost else []
        found = self.found
        if found is None:
            return lost
        head = [
            Text(f"{stamp(found.seen.when)}  {visible(found.seen.source, CUT)}", "bold", no_wrap=True),
            Text(visible(found.summary()) + (" (!)" if any(row.dead for row in found.rows) else ""), no_wrap=True),
            *lost,
        ]
        notes = [Text(visible(note, CUT), "dim", no_wrap=True) for note in found.notes[:_NOTES]]
        room = max(1, height - len(head) - len(notes) - 1)
        rows = list(found.rows)
        hidden = max(0, len(rows) - room)
        if hidden:
            rows, more = rows[: room - 1], hidden + 1
            notes.insert(
                0, Text(f"and {more} more {found.kind}: a taller terminal, or --queue NAME", "dim", no_wrap=True)
            )
        return [*head, *_table(found, rows, width), *notes][:height]


def _table(found: LookReport, rows: Sequence[RatedRow], width: int) -> list[Text]:
    cells = {name: [_text(row.numbers.get(name), name) for row in rows] for name in found.columns}
    needed = {name: max([cell_len(_TITLES[name]), *map(cell_len, each)]) for name, each in cells.items()}
    kept: list[str] = []
    left = width - _NAME
    for name in _FIRST_KEPT:
        if name in needed and needed[name] + 2 <= left:
            kept.append(name)
            left -= needed[name] + 2
    columns = [name for name in found.columns if name in kept]
    name_width = width - sum(needed[name] + 2 for name in columns)
    head = _line(found.kind, [_right(_TITLES[name], needed[name]) for name in columns], name_width)
    lines = [Text(head, "bold underline", no_wrap=True)]
    for at, row in enumerate(rows):
        numbers = [_right(cells[name][at], needed[name]) for name in columns]
        name = f"{'! ' if row.dead else ''}{visible(row.name, CUT)}"
        lines.append(Text(_line(name, numbers, name_width), "red" if row.dead else "", no_wrap=True))
    return lines


def _line(name: str, numbers: Sequence[str], width: int) -> str:
    if cell_len(name) > width:
        name = set_cell_size(name, max(0, width - 1)) + "…"
    return "  ".join((set_cell_size(name, width), *numbers)).rstrip()


def _right(text: str, width: int) -> str:
    return " " * (width - cell_len(text)) + text


def _name(row: RatedRow) -> str:
    return visible(row.name, CUT) + (" (dead letters)" if row.dead else "")


def _text(number: Number, column: str = "") -> str:
    if number is None:
        return NOTHING
    sign = "+" if column == "change" and number > 0 else ""
    if isinstance(number, int) or abs(number) >= 100 or number == 0:
        return f"{sign}{number:,.0f}"
    return f"{sign}{number:.1f}" if abs(number) >= 0.1 else f"{sign}{number:.2f}"


def _number_of(number: Number, things: str) -> str:
    return f"{_text(number)} {things.removesuffix('s') if number == 1 and not things.endswith('/s') else things}"


def _fact(value: int | bool | None) -> str:
    if value is None:
        return NOTHING
    return ("yes" if value else "no") if isinstance(value, bool) else f"{value:,}"


def _sum(rows: Sequence[RatedRow], name: str) -> Number:
    """Of all rows; not known where one of them is not."""
    found = [row.numbers[name] for row in rows if name in row.numbers]
    return None if None in found else sum(each for each in found if each is not None)


def _rounded(number: Number) -> Number:
    return round(number, 3) if isinstance(number, float) else number


def _complain_lost(error: Exception, wait: float) -> None:
    complain("top", f"connection lost, trying again in {wait:g} s: {error}")
