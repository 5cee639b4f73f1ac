"""The numbers of docs/benchmarks.json, by the names of what was measured: a later run replaces what it measures."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

from benchmarks import figures
from benchmarks.machine import DATE, check_same
from benchmarks.targets import AT_LEAST, AT_MOST, PROCESSOR, SPEED, STORED

OURS: Final = "redelivery"
BARE: Final = "bare socket"  # the name of the loop without a client
PEER_BOUND: Final = 1.3  # times our speed; a bare loop below that says that the peer sets the pace


@dataclass(frozen=True, slots=True)
class Timing:
    """Messages per second of one contender, the median of the rounds.

    ``cpu``: microseconds of this process's processors per message, the median too; None: it ran elsewhere.
    ``remark``: a warning to the reader.
    """

    median: float
    cpu: float | None = None
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One contender beside us in one case, ``protocol/broker/case``, and the ratios to reach."""

    case: str
    name: str
    ours: Timing
    theirs: Timing

    @property
    def ratio(self) -> float:
        """Our speed by theirs: the quotient of the medians."""
        return self.ours.median / self.theirs.median

    @property
    def cpu_ratio(self) -> float | None:
        """Their processor time by ours; None where it was not measured."""
        return None if self.ours.cpu is None or self.theirs.cpu is None else self.theirs.cpu / self.ours.cpu

    @property
    def target(self) -> float | None:
        return SPEED.get(self.case, {}).get(self.name)

    @property
    def cpu_target(self) -> float | None:
        return PROCESSOR.get(self.case, {}).get(self.name)

    @property
    def reached(self) -> bool | None:
        """True: the targets of speed and of processor time are; None: there is none."""
        pairs = ((self.ratio, self.target), (self.cpu_ratio, self.cpu_target))
        found = [value >= target for value, target in pairs if value is not None and target is not None]
        return all(found) if found else None

    @property
    def peer_bound(self) -> bool:
        """True: a bare loop is hardly faster than we are, so that the peer sets the pace."""
        return self.name == BARE and self.theirs.median < PEER_BOUND * self.ours.median


@dataclass(frozen=True, slots=True)
class Measure:
    """A number by itself, with a limit by its key."""

    title: str
    value: float
    unit: str

    def reached(self, key: str) -> bool | None:
        """True: its limit is kept; None: there is none."""
        if key in AT_MOST:
            return self.value <= AT_MOST[key]
        return self.value >= AT_LEAST[key] if key in AT_LEAST else None


@dataclass(frozen=True, slots=True)
class Stored:
    """A step on the embedded broker with a store, and on ActiveMQ Classic: messages per second of each.

    ``ratios``: of each part of the run, how many times as fast as Classic we were.
    """

    protocol: str
    title: str
    theirs: float
    ours: float
    ratios: list[float]

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs

    @property
    def spread(self) -> float:
        """The distance between the parts, of the ratio: 0.1 for 10 %."""
        return (max(self.ratios) - min(self.ratios)) / self.ratio

    @property
    def reached(self) -> bool:
        return self.ratio >= STORED[self.title]


@dataclass(frozen=True, slots=True)
class Behind:
    """A case in which another client is ahead, and the functions that take the time.

    ``waiting``: the share of the time in which our process had nothing to do. ``functions``: the shares of the
    processor time, by function, largest first.
    """

    against: str
    ratio: float
    waiting: float
    functions: dict[str, float]


@dataclass(slots=True)
class Record:
    """One run, and what was run again since.

    ``places``: titles by ``protocol/broker``. ``rows``: by case, and by contender, ours first. ``behind``: by case.
    ``failures``: why a case broke off, by its name. ``again``: when a case was run later than the rest.
    """

    machine: dict[str, str]
    rounds: float
    scale: float
    places: dict[str, str] = field(default_factory=dict)
    rows: dict[str, dict[str, Timing]] = field(default_factory=dict)
    measures: dict[str, Measure] = field(default_factory=dict)
    stored: dict[str, Stored] = field(default_factory=dict)
    behind: dict[str, Behind] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)
    again: dict[str, str] = field(default_factory=dict)

    def beside(self, case: str) -> list[Row]:
        """Return the rows of a case."""
        (_, ours), *others = self.rows[case].items()
        return [Row(case, name, ours, theirs) for name, theirs in others]

    def check(self, machine: dict[str, str], rounds: float, scale: float) -> None:
        """Raise BenchmarkError where such a run does not belong on one page with this one."""
        then = {**self.machine, "rounds": f"{self.rounds:g}", "scale": f"{self.scale:g}"}
        check_same(then, {**machine, "rounds": f"{rounds:g}", "scale": f"{scale:g}"})

    def update(self, later: Record, ran: Iterable[str]) -> None:
        """Put a later run in the place of what it has measured again."""
        names = list(ran)
        for gone in (self.rows, self.behind, self.failures):
            for name in [each for each in gone if each.partition(" ")[0] in names]:
                del gone[name]
        for each in ("places", "rows", "measures", "stored", "behind", "failures"):
            getattr(self, each).update(getattr(later, each))
        tried = tuple(f"Without {name.split('/')[1]}:" for name in names if "/" in name)
        kept = [note for note in self.notes if not note.startswith(tried)] if tried else self.notes
        self.notes = list(dict.fromkeys((*kept, *later.notes)))
        self.again |= dict.fromkeys(names, later.machine[DATE])

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read(path: Path) -> Record:
    """Return the record of a complete run. Raises BenchmarkError: there is none."""
    data = figures.read(str(path))
    for name, kind in {"measures": Measure, "stored": Stored, "behind": Behind}.items():
        data[name] = {key: kind(**each) for key, each in data[name].items()}
    data["rows"] = {case: {name: Timing(**each) for name, each in row.items()} for case, row in data["rows"].items()}
    return Record(**data)
