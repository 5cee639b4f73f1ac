"""The results as a plot: the ratios as bars, by pair."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.results import Comparison, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BAR: Final = 0.21  # inches
MISSED, REACHED = "#c0504d", "#4472c4"


def write(results: Results, path: Path) -> bool:
    """A column a protocol, a row a broker; False where matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return False
    columns = {
        protocol: [
            [each for each in results.comparisons if each.place == place]
            for place in dict.fromkeys(each.place for each in results.comparisons)
            if place.startswith(f"{protocol}/")
        ]
        for protocol in dict.fromkeys(each.place.partition("/")[0] for each in results.comparisons)
    }
    inches = [sum(0.9 + BAR * bars(group) for group in groups) for groups in columns.values()]
    figure = Figure(figsize=(8 * len(columns), max(inches)), layout="constrained")
    for part, groups in zip(figure.subfigures(1, len(columns), squeeze=False)[0], columns.values(), strict=True):
        heights = [0.9 + BAR * bars(group) for group in groups]
        spare = max(inches) - sum(heights)
        grid = part.add_gridspec(len(groups) + 1, 1, height_ratios=[*heights, max(spare, 0.01)])
        for row, group in enumerate(groups):
            draw(part.add_subplot(grid[row, 0]), group)
    figure.savefig(path, dpi=90)
    return True


def write_curves(results: Results, path: Path) -> bool:
    """Rows per second by the rows of a batch; False where matplotlib is not installed, or there are none."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return False
    if not results.curves:
        return False
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axis = figure.subplots()
    for curve in results.curves:
        axis.plot(*zip(*curve.points, strict=True), marker="o", label=curve.title)
    axis.set_xscale("log")
    axis.set_xticks(sorted({size for curve in results.curves for size, _ in curve.points}))
    axis.xaxis.set_major_formatter("{x:,.0f}")
    axis.yaxis.set_major_formatter("{x:,.0f}")
    axis.minorticks_off()
    axis.set_ylim(bottom=0)
    axis.set_xlabel("rows of a batch", fontsize=9)
    axis.set_ylabel("rows per second", fontsize=9)
    axis.set_title("Spark source: steady speed", fontsize=9)
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8)
    figure.savefig(path, dpi=90)
    return True


def bars(group: Sequence[Comparison]) -> int:
    """How many one pair has."""
    return sum(len(each.others) for each in group)


def draw(axis: Axes, group: Sequence[Comparison]) -> None:
    """One pair, on a logarithmic scale; targets as marks."""
    pairs = [(each, other) for each in group for other in each.others][::-1]
    values = [each.ratio(other) for each, other in pairs]
    colours = [MISSED if each.reached(other) is False else REACHED for each, other in pairs]
    drawn = axis.barh(range(len(pairs)), [value - 1 for value in values], left=1, color=colours)
    axis.bar_label(drawn, [f"{value:.{2 if value < 10 else 0}f}" for value in values], fontsize=7, padding=3)
    axis.set_yticks(range(len(pairs)), [f"{each.title}: {other.name}" for each, other in pairs], fontsize=7)
    for at, (each, other) in enumerate(pairs):
        target = each.targets.get(other.name)
        if target is not None:
            axis.plot([target, target], [at - 0.45, at + 0.45], color="black")
    axis.axvline(1, color="grey", linewidth=0.8)
    axis.set_xscale("log")
    axis.set_xlim(min(0.5, *values) * 0.7, max(10.0, *values) * 1.5)
    axis.xaxis.set_major_formatter("{x:g}")
    axis.set_title(f"{group[0].place_name}: how many times as fast (black: the target)", fontsize=9)
