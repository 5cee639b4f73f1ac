"""What was measured, as values; report.py writes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """Messages per second of one contender: the median of the rounds, and the slowest and fastest of them."""

    name: str
    median: float
    slowest: float
    fastest: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """One case on one place; ``targets``: by contender, the ratio to reach, None for "measured only"."""

    kind: str
    place: str
    key: str
    title: str
    mine: Timing
    others: tuple[Timing, ...]
    targets: Mapping[str, float | None]

    def ratio(self, other: Timing) -> float:
        """How many times as fast as the other we are: the quotient of the medians."""
        return self.mine.median / other.median

    def reached(self, other: Timing) -> bool | None:
        """Whether the target is; None where there is none."""
        target = self.targets.get(other.name)
        return None if target is None else self.ratio(other) >= target


@dataclass(frozen=True, slots=True)
class Measure:
    """A number with a limit of its own; ``at_most`` says on which side of it we want to be."""

    key: str
    title: str
    value: float
    unit: str
    limit: float | None
    at_most: bool = True

    @property
    def reached(self) -> bool | None:
        """Whether the limit is kept; None where there is none."""
        if self.limit is None:
            return None
        return self.value <= self.limit if self.at_most else self.value >= self.limit


@dataclass(frozen=True, slots=True)
class Results:
    """One run of the whole."""

    machine: Mapping[str, str]
    settings: Mapping[str, float]
    comparisons: tuple[Comparison, ...]
    measures: tuple[Measure, ...]
    notes: tuple[str, ...]
