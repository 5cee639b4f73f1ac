"""One look at queues, and the rates that two looks give together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Final, Literal

Number = int | float | None
Column = Literal[
    "name", "messages", "change", "in", "out", "failed", "consumers", "in_flight", "retries", "dead_letters"
]
FIRST: Final = "from the second look on"


@dataclass(frozen=True, slots=True)
class Sample:
    """The numbers of one queue, or of one destination of an application; None where nobody says one.

    ``now``: what is there: ``messages``, ``in_flight``, ``consumers``, ``retries``, … ``counted``: what has come
    (``in``), gone (``out``) or ``failed`` since some time; their rates are per second. ``dead``: it has dead letters.
    """

    name: str
    now: Mapping[str, int | None]
    counted: Mapping[str, int | None]
    dead: bool = False


@dataclass(frozen=True, slots=True)
class Look:
    """The result of one look.

    ``at``: monotonic seconds; ``when``: the same for people. ``source``: the broker or the application. ``facts``: what
    is not of one queue. ``why``: for columns that may be None, the reason; ``unchecked``: what could not be seen.
    """

    at: float
    when: datetime
    source: str
    samples: Mapping[str, Sample]
    facts: Mapping[str, int | bool | None] = field(default_factory=dict)
    why: Mapping[str, str] = field(default_factory=dict)
    unchecked: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RatedRow:
    """One queue with its rates. ``numbers``: by column; None: not known."""

    name: str
    numbers: Mapping[str, Number]
    dead: bool = False


def rows(before: Look | None, after: Look) -> tuple[RatedRow, ...]:
    """The queues of a look; rates are the differences to the look before it, per second."""
    seconds = 0.0 if before is None else after.at - before.at
    known = {} if before is None else before.samples
    return tuple(_row(known.get(name), sample, seconds) for name, sample in after.samples.items())


def _row(before: Sample | None, after: Sample, seconds: float) -> RatedRow:
    change = _difference(before, after, "messages") if seconds > 0 else None
    counts = {name: _counted(before, after, name) if seconds > 0 else None for name in after.counted}
    came, left = counts.get("in"), counts.get("out")
    if change is not None and came == 0 and change > 0:
        counts["in"] = None  # they came, and were not counted
    if change is not None and left == 0 and change < (came or 0):
        counts["out"] = None  # as above
    rates = {name: None if count is None else count / seconds for name, count in counts.items()}
    if "messages" in after.now:
        rates = {"change": None if change is None else change / seconds, **rates}
    return RatedRow(after.name, {**after.now, **rates}, after.dead)


def _difference(before: Sample | None, after: Sample, name: str) -> int | None:
    new = after.now.get(name)
    old = None if before is None else before.now.get(name)
    return None if new is None or old is None else new - old


def _counted(before: Sample | None, after: Sample, name: str) -> int | None:
    """The count between two looks; where it is lower than before, it has begun anew (a restart)."""
    new = after.counted[name]
    old = None if before is None else before.counted.get(name)
    if new is None or old is None:
        return None
    return new - old if new >= old else new


def chosen(found: Iterable[RatedRow], names: Sequence[str], sort: str) -> list[RatedRow]:
    """The rows whose name is one of these, or matches one (``*``, ``?``); all where there is none. Largest first."""
    kept = [row for row in found if not names or any(row.name == each or fnmatchcase(row.name, each) for each in names)]
    kept.sort(key=lambda row: row.name)
    if sort != "name":
        kept.sort(key=lambda row: _largest(row.numbers.get(sort)))
    return kept


def _largest(number: Number) -> tuple[bool, float]:
    """A key by which the largest come first, and the unknown last."""
    return number is None, -(number or 0)


def unsaid(seen: Look, shown: Sequence[RatedRow], titles: Mapping[str, str], *, first: bool) -> list[str]:
    """A sentence for each reason why numbers are missing, and for what could not be seen.

    ``titles``: what columns are called. ``first``: there is no look before, so that no rate can be known.
    """
    why: dict[str, list[str]] = {}
    for column, reason in seen.why.items():
        if any(_is_missing(column, row, seen.samples[row.name]) for row in shown):
            why.setdefault(reason, []).append(titles.get(column, column))
    rates = [f"rates: {FIRST}"] if first and shown else []
    return [*rates, *(f"{', '.join(columns)}: {reason}" for reason, columns in why.items()), *seen.unchecked]


def _is_missing(column: str, row: RatedRow, sample: Sample) -> bool:
    if column in sample.counted and row.numbers.get("change") is None:  # it is new: the next look has its rates
        return sample.counted[column] is None
    return column in row.numbers and row.numbers[column] is None


def dead_letters(seen: Look) -> int | None:
    """All dead letters of this look; None: nobody says."""
    said = seen.facts.get("dead_letters")
    if said is not None:
        return int(said)
    found = [sample.now.get("messages") for sample in seen.samples.values() if sample.dead]
    return None if None in found else sum(filter(None, found))
