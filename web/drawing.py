"""The numbers of drawings: SVG is written by templates, and its colours are those of the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from redelivery.operate.simulate import Simulation
from redelivery.operate.views.timeline import LISTED, Timeline, TimelineRow

WIDTH: Final = 96.0
HEIGHT: Final = 24.0


def curve(values: Sequence[int]) -> str:
    """The points of a line through these values, from left to right, in a box of `WIDTH` and `HEIGHT`; "": no line."""
    if len(values) < 2:
        return ""
    least, most = min(values), max(values)
    span, step = (most - least) or 1, WIDTH / (len(values) - 1)
    return " ".join(
        f"{at * step:.1f},{HEIGHT - 2 - (value - least) / span * (HEIGHT - 4):.1f}" for at, value in enumerate(values)
    )


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar of a histogram, in a box of `WIDTH` and `HEIGHT`."""

    x: float
    y: float
    width: float
    height: float


def bars(values: Sequence[int]) -> tuple[Bar, ...]:
    """The bars of these values, from left to right; those of 0 are not there."""
    if not values or not max(values):
        return ()
    width = WIDTH / len(values)
    heights = [max(2.0, HEIGHT * each / max(values)) if each else 0.0 for each in values]
    return tuple(
        Bar(round(at * width, 2), round(HEIGHT - height, 2), round(width * 0.8, 2), round(height, 2))
        for at, height in enumerate(heights)
        if height
    )


@dataclass(frozen=True, slots=True)
class Span:
    """One attempt on a line of 1000: the band of its plan, and where it was; None: not known."""

    band: tuple[float, float] | None
    planned: float | None
    at: float | None


def spans(found: Timeline) -> tuple[Span, ...]:
    """The rows of a timeline, on one scale."""
    return tuple(_span(each, 984.0 / found.span) for each in found.rows)


def _span(row: TimelineRow, scale: float) -> Span:
    def place(seconds: float) -> float:
        return round(8 + seconds * scale, 1)

    plan = row.planned
    band = None if plan is None else (place(plan.least), max(1.0, round((plan.most - plan.least) * scale, 1)))
    at = None if row.after is None else place(row.after)
    return Span(band, None if plan is None else place(plan.at), at)


def marks(found: Simulation) -> tuple[Span, ...]:
    """The attempts of a simulation, on a line of 1000."""
    attempts = found.attempts[:LISTED]
    scale = 984.0 / max(attempts[-1].most, 0.001)
    return tuple(_span(TimelineRow(each.number, None, None, None, each), scale) for each in attempts)
