"""The results as a picture: three questions, a panel each. And the curves of the Spark source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.results import BARE, Comparison, Results, Timing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, DPI = 8.0, 100  # 800 pixels, at which every label can be read
ROW, AROUND, LEGEND = 0.27, 0.8, 0.6  # inches of a row, of what is around the rows of a panel, and of a legend
MISSED, REACHED, LIMIT = "#c0504d", "#4472c4", "#7f7f7f"
BROKERS: Final = {"activemq": "o", "artemis": "s", "qpid": "^", "rabbitmq": "D", "hornetq": "v"}
PROTOCOLS: Final = {"stomp": "#4472c4", "amqp": "#d98c2b"}

Bar = tuple[str, float, float | None]  # label, value, target


def write(results: Results, path: Path) -> bool:
    """Against the raw clients, against Java, and against the limit; False where matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return False
    raw, java, limit = list(against_raw(results)), against_java(results), list(against_limit(results))
    heights = [AROUND + ROW * len(each) + (LEGEND if each is java else 0) for each in (raw, java, limit) if each]
    if not heights:
        return False
    figure = Figure(figsize=(WIDTH, sum(heights)), layout="constrained")
    axes = iter(figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0])
    if raw:
        draw(next(axes), raw, "Is it faster than the raw client? Times its speed, fake peer (black: the target)")
    if java:
        scatter(next(axes), java, "Is it as fast as Java? Times the Java client's speed, by broker")
    if limit:
        draw(next(axes), limit, "How near is it to the limit? Of the speed of a bare socket in Python", whole=True)
    figure.savefig(path, dpi=DPI)
    return True


def against_raw(results: Results) -> Iterator[Bar]:
    """Of each case at a fake peer, the rival that does the same."""
    for each in results.comparisons:
        rivals = [other for other in each.others if other.name != BARE and not other.remark]
        if each.place.endswith("/fake") and rivals:
            yield f"{_protocol(each)}: {each.title}", each.ratio(rivals[0]), each.targets.get(rivals[0].name)


def against_java(results: Results) -> dict[str, list[tuple[str, str, float]]]:
    """By case: protocol, broker and ratio."""
    found: dict[str, list[tuple[str, str, float]]] = {}
    for each in results.comparisons:
        protocol, _, broker = each.place.partition("/")
        for other in each.others:
            if other.name.startswith("Java"):
                found.setdefault(each.title, []).append((protocol, broker, each.ratio(other)))
    return found


def against_limit(results: Results) -> Iterator[Bar]:
    """Of each case that has a loop over a bare socket beside it."""
    for each in results.comparisons:
        limit: Timing | None = each.limit
        if limit is not None:
            yield f"{_protocol(each)}: {each.title}", each.ratio(limit), None


def draw(axis: Axes, rows: Sequence[Bar], title: str, *, whole: bool = False) -> None:
    """Bars from 1, on a logarithmic scale, or from 0 where 1 is the ``whole``; targets as marks."""
    labels, values, targets = zip(*rows[::-1], strict=True)
    missed = [target is not None and value < target for value, target in zip(values, targets, strict=True)]
    colours = [LIMIT if whole else MISSED if each else REACHED for each in missed]
    start = 0 if whole else 1
    drawn = axis.barh(range(len(rows)), [value - start for value in values], left=start, color=colours)
    white = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
    axis.bar_label(drawn, [f"{value:.2f}" for value in values], fontsize=9, padding=4, bbox=white, zorder=4)
    for at, target in enumerate(targets):
        if target is not None:
            axis.plot([target, target], [at - 0.45, at + 0.45], color="black")
    axis.axvline(1, color="grey", linewidth=0.8)
    if whole:
        axis.set_xlim(0, max(1.05, *values) * 1.12)
    else:
        _logarithmic(axis, min(0.8, *values) * 0.85, max(10.0, *values) * 1.4)
    _frame(axis, labels, title)


def scatter(axis: Axes, rows: dict[str, list[tuple[str, str, float]]], title: str) -> None:
    """A mark a broker, in the colour of the protocol."""
    seen: set[tuple[str, str]] = set()
    for at, found in enumerate(reversed(rows.values())):
        for protocol, broker, ratio in found:
            label = None if (protocol, broker) in seen else f"{broker}, {protocol.upper()}"
            seen.add((protocol, broker))
            colour, mark = PROTOCOLS.get(protocol, "black"), BROKERS.get(broker, "x")
            axis.plot([ratio], [at], mark, color=colour, markersize=6, alpha=0.8, label=label)
    values = [ratio for found in rows.values() for _, _, ratio in found]
    axis.axvline(1, color="grey", linewidth=0.8)
    _logarithmic(axis, min(0.4, *values) * 0.8, max(2.5, *values) * 1.2)
    if len(rows) < 4:  # of a part of the cases
        axis.legend(fontsize=9)
    else:
        axis.legend(fontsize=9, ncols=4, loc="upper center", bbox_to_anchor=(0.2, -0.9 / len(rows)))
    _frame(axis, list(rows)[::-1], title)


def _logarithmic(axis: Axes, least: float, most: float) -> None:
    axis.set_xscale("log")
    axis.set_xlim(least, most)
    axis.set_xticks([each for each in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100) if least <= each <= most])
    axis.minorticks_off()


def _frame(axis: Axes, labels: Sequence[str], title: str) -> None:
    axis.set_yticks(range(len(labels)), labels, fontsize=9)
    axis.set_ylim(-0.6, len(labels) - 0.4)
    axis.xaxis.set_major_formatter("{x:g}")
    axis.tick_params(axis="x", labelsize=9)
    axis.grid(axis="x", alpha=0.25)
    axis.set_title(title, fontsize=10, loc="right")


def _protocol(each: Comparison) -> str:
    return each.place.partition("/")[0].upper()


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
