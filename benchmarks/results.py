"""What was measured, as values; report.py and plot.py write them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

BARE: Final = "bare socket"  # the name of the loop without a client
PEER_BOUND: Final = 1.3  # times our speed; a bare loop below that says that the peer sets the pace


class BenchmarkError(Exception):
    """A run that did not do its work: its time means nothing."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Messages per second of one contender: the median of the rounds, and the slowest and fastest of them.

    ``slowest``, ``fastest``: None in a record that was made of a page, which has the medians only.
    ``cpu``: microseconds of this process's processors per message, the median too; None: it ran elsewhere.
    ``remark``: what a reader must know of it.
    """

    name: str
    median: float
    slowest: float | None
    fastest: float | None
    cpu: float | None = None
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One case at one place.

    ``targets``: by contender, the ratio to reach, None for "measured only"; ``cpu_targets``: that of processor time.
    ``unmeasured``: contenders that the case has got since it was run.
    """

    place: str
    place_name: str
    key: str
    title: str
    mine: Timing
    others: tuple[Timing, ...]
    targets: Mapping[str, float | None]
    cpu_targets: Mapping[str, float] = field(default_factory=dict)
    unmeasured: tuple[str, ...] = ()

    def ratio(self, other: Timing) -> float:
        """How many times as fast as the other we are: the quotient of the medians."""
        return self.mine.median / other.median

    def cpu_ratio(self, other: Timing) -> float | None:
        """How many times as much processor time the other takes; None where it was not measured."""
        return None if self.mine.cpu is None or other.cpu is None else other.cpu / self.mine.cpu

    @property
    def limit(self) -> Timing | None:
        """The loop over a bare socket, where it ran."""
        return next((each for each in self.others if each.name == BARE), None)

    @property
    def peer_bound(self) -> bool:
        """Whether the bare loop is hardly faster than we are: then the peer sets the pace."""
        return self.limit is not None and self.limit.median < PEER_BOUND * self.mine.median

    def reached(self, other: Timing) -> bool | None:
        """Whether the targets are, of speed and of processor time; None where there is none."""
        found = [
            None if value is None else value >= target
            for value, target in (
                (self.ratio(other), self.targets.get(other.name)),
                (self.cpu_ratio(other), self.cpu_targets.get(other.name)),
            )
            if target is not None
        ]
        return None if not found else all(found)


@dataclass(frozen=True, slots=True)
class Measure:
    """A number with a limit of its own; ``at_most`` says on which side of it we want to be.

    ``group``: the title of its table.
    """

    key: str
    title: str
    value: float
    unit: str
    limit: float | None
    at_most: bool = True
    group: str = "By themselves"

    @property
    def reached(self) -> bool | None:
        """Whether the limit is kept; None where there is none."""
        if self.limit is None:
            return None
        return self.value <= self.limit if self.at_most else self.value >= self.limit


@dataclass(frozen=True, slots=True)
class Stored:
    """A step on the embedded broker with a store, and on ActiveMQ Classic: messages per second of each.

    ``ratios``: of each part of the run, how many times as fast as Classic we were. ``target``: the ratio to reach.
    """

    protocol: str
    title: str
    theirs: float
    ours: float
    ratios: tuple[float, ...]
    target: float

    @property
    def ratio(self) -> float:
        """Of the medians of the whole run."""
        return self.ours / self.theirs

    @property
    def spread(self) -> float:
        """How far the parts are apart, of the ratio: 0.1 for 10 %."""
        return (max(self.ratios) - min(self.ratios)) / self.ratio

    @property
    def reached(self) -> bool:
        """Whether the target is."""
        return self.ratio >= self.target


@dataclass(frozen=True, slots=True)
class Profile:
    """Where the time of a case goes in which another client is ahead.

    ``waiting``: the share of the time in which our process had nothing to do. ``functions``: the shares of the
    processor time, by function, largest first.
    """

    place_name: str
    title: str
    against: str
    ratio: float
    waiting: float
    functions: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Curve:
    """How a speed grows with something: (that, rows per second), one line of a plot."""

    key: str
    title: str
    points: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class Results:
    """One run of the whole.

    ``failures``: cases that broke off at a real broker; each begins with the name of its case. ``ran``: the names of
    all that were begun. ``again``: of those that were run again later, and when.
    """

    machine: Mapping[str, str]
    settings: Mapping[str, float]
    comparisons: tuple[Comparison, ...]
    measures: tuple[Measure, ...]
    profiles: tuple[Profile, ...]
    notes: tuple[str, ...]
    failures: tuple[str, ...]
    curves: tuple[Curve, ...] = ()
    stored: tuple[Stored, ...] = ()
    ran: tuple[str, ...] = ()
    again: Mapping[str, str] = field(default_factory=dict)
