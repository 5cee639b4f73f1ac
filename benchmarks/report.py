"""The results as a table on the terminal, as JSON, as a page of the documentation and as a plot."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from benchmarks.results import Comparison, Measure, Results

HEADS = ("case", "msg/s", "against", "msg/s", "ratio", "target", "reached")
INTRODUCTION = """\
# Benchmarks

Written by `make bench`; every number below is from that run. Do not edit.

redelivery is measured through its public API, with the options that it has by default, against raw stomp.py used as
its documentation shows it, in turn (ours, theirs, ours, …) in the same process on the same peer. The ratio is that of
the medians. Bodies are texts of 1 KiB, and body and message id of every message are read. The *fake peer* does nothing
but write messages and answer receipts, faster than any Python client can take them, so it shows what the clients cost;
on a real broker the broker's own work comes on top. There the messages consumed are non-persistent, those sent are
persistent. After every run it is checked that each message was acknowledged or had arrived.
"""


def reached(value: bool | None) -> str:
    """For a reader: nothing where there is no target."""
    return "" if value is None else "yes" if value else "**no**"


def comparison_rows(comparisons: tuple[Comparison, ...]) -> Iterator[tuple[str, ...]]:
    """A row for each contender."""
    for each in comparisons:
        for other in each.others:
            target = each.targets.get(other.name)
            yield (
                each.title,
                f"{each.mine.median:,.0f}",
                other.name,
                f"{other.median:,.0f}",
                f"{each.ratio(other):.2f}",
                "" if target is None else f"≥ {target:g}",
                reached(each.reached(other)),
            )


def measure_rows(measures: tuple[Measure, ...]) -> Iterator[tuple[str, ...]]:
    """A row for each number."""
    for each in measures:
        limit = "" if each.limit is None else f"{'≤' if each.at_most else '≥'} {each.limit:g}"
        yield each.title, f"{each.value:,.2f} {each.unit}", limit, reached(each.reached)


def tables(results: Results) -> Iterator[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    """Title, heads and rows of each table."""
    for place in dict.fromkeys(each.place for each in results.comparisons):
        yield place, HEADS, list(comparison_rows(tuple(each for each in results.comparisons if each.place == place)))
    if results.measures:
        yield "by themselves", ("what", "measured", "limit", "reached"), list(measure_rows(results.measures))


def terminal(results: Results) -> str:
    """Aligned columns, without colours."""
    lines = []
    for title, heads, rows in tables(results):
        widths = [max(len(row[at]) for row in (heads, *rows)) for at in range(len(heads))]
        lines += ["", title]
        for row in (heads, *rows):
            cells = [text.ljust(width) for text, width in zip(row, widths, strict=True)]
            lines.append("  ".join(cells).replace("**", "").rstrip())
    return "\n".join([*lines, "", *results.notes])


def markdown(results: Results, plot: str | None) -> str:
    """The page."""
    facts = ", ".join(f"{name} {value}" for name, value in results.machine.items())
    rounds = f"{results.settings['rounds']:g} rounds."
    lines = [INTRODUCTION, f"Machine: {facts}. {rounds}", ""]
    if plot:
        lines += [f"![ratio to raw stomp.py and to the Java client, by case]({plot})", ""]
    for title, heads, rows in tables(results):
        lines += [f"## {title[0].upper()}{title[1:]}", ""]
        lines += ["| " + " | ".join(row) + " |" for row in (heads, tuple("---" for _ in heads), *rows)]
        lines.append("")
    lines += [f"- {note}" for note in results.notes]
    return "\n".join(lines).rstrip() + "\n"


def write_json(results: Results, path: Path) -> None:
    """All that was measured, ratios included."""
    data = asdict(results)
    for each, written in zip(results.comparisons, data["comparisons"], strict=True):
        written["ratios"] = {other.name: round(each.ratio(other), 3) for other in each.others}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def write_plot(results: Results, path: Path) -> bool:
    """The ratios as bars on a logarithmic scale, targets as marks; False where matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return False
    places = list(dict.fromkeys(each.place for each in results.comparisons))
    figure = Figure(figsize=(10, 1 + 0.24 * sum(len(each.others) for each in results.comparisons)), layout="tight")
    heights = [sum(len(each.others) for each in results.comparisons if each.place == place) for place in places]
    axes = figure.subplots(len(places), 1, squeeze=False, height_ratios=heights)[:, 0]
    for place, axis in zip(places, axes, strict=True):
        bars = [(each, other) for each in results.comparisons if each.place == place for other in each.others]
        bars.reverse()
        labels = [f"{each.title}: {other.name}" for each, other in bars]
        values = [each.ratio(other) for each, other in bars]
        colours = ["#c0504d" if each.reached(other) is False else "#4472c4" for each, other in bars]
        drawn = axis.barh(range(len(bars)), [value - 1 for value in values], left=1, color=colours)
        axis.bar_label(drawn, [f"{value:.{2 if value < 10 else 0}f}" for value in values], fontsize=7, padding=3)
        axis.set_yticks(range(len(bars)), labels, fontsize=7)
        for at, (each, other) in enumerate(bars):
            target = each.targets.get(other.name)
            if target is not None:
                axis.plot([target, target], [at - 0.45, at + 0.45], color="black")
        axis.axvline(1, color="grey", linewidth=0.8)
        axis.set_xscale("log")
        axis.set_xlim(min(0.5, *values) * 0.7, max(10.0, *values) * 1.5)
        axis.xaxis.set_major_formatter("{x:g}")
        axis.set_title(f"{place}: how many times as fast (black: the target)", fontsize=9)
    figure.savefig(path, dpi=110)
    return True
