"""The results as a table on the terminal, as JSON, and as a page of the documentation."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from benchmarks import why
from benchmarks.results import Comparison, Measure, Profile, Results, Stored, Timing

HEADS: Final = (
    *(
        "case",
        "CPU µs",
        "msg/s",
        "against",
        "CPU µs",
        "msg/s",
        "CPU ratio",
        "CPU target",
        "ratio",
        "target",
        "reached",
        "remark",
    ),
)
INTRODUCTION: Final = """\
# Benchmarks

Written by `make bench`, which `make nightly` runs; every number is from one run, unless it is said to have been run
again. Do not edit.

redelivery is measured through its public API, with the options that it has by default, against raw stomp.py and raw
proton used as their documentation shows them, and beside the Java clients on the same broker in the same mode:
activemq-client over OpenWire beside STOMP where the broker speaks it, qpid-jms elsewhere. They run in turn (ours,
theirs, ours, …). The ratio is that of the medians. Bodies are texts of 1 KiB, and body and message id of every message
are read. A *fake peer* does nothing but write messages and answer, faster than any Python client can take them, so it
shows what the clients cost; on a real broker the broker's own work comes on top. There the messages consumed are
non-persistent, those sent are persistent. *CPU µs* is the processor time of this process per message, connecting and
closing included, and *CPU ratio* how many times as much the other takes; a target is *reached* where both targets of
its row are. After every run it is checked that each message was acknowledged or had arrived. A *bare socket* is a loop
without a client, the least that Python can do for the same bytes; where it is less than 1.3 times as fast as we are,
the case is *peer-bound*: the peer sets the pace, and only the processor time says something of the client. docs/cpu.md
has that time without a scheduler in it, and twice, to show how far two measurements of the same code are apart.
"""
BEHIND: Final = """\
## Behind the Java client: where the time goes

Where a Java client is ahead on a pair, the same case once more under a profiler. *Waiting* is the share of the time,
without the profiler, in which our process had nothing to do: the broker, or the Java client's processor beside it, sets
the pace. The functions are those that cost most of the processor time.
"""


SPARK: Final = """\
The steps of `spark.readStream.format("jms")`, in `local[2]` and into nowhere (the sink `noop`), without its first
batch. *The same session outside Spark* receives, makes columns and writes durable segments in the same way, with no
Spark around it; both are measured in turn. *Without a broker* the receiver of executors is given rows that were made
before, or messages out of nowhere, and does all the rest: segments, log, offsets, and what Spark reads. A source that
*does nothing* shows what an empty batch costs in Spark itself, with a checkpoint on the same disk.
"""
STORED: Final = "The embedded broker with a store, beside ActiveMQ Classic"
BESIDE_CLASSIC: Final = """\
`redelivery broker --store` and ActiveMQ Classic with KahaDB, each a process of its own, both syncing each commit to the
same disk. One client of ours does a step on the one and then on the other, in turns; bodies of 1 KiB, persistent. The
ratio is that of the medians of all rounds; the *spread* is how far the ratios of five parts of the run are apart, of
the ratio.
"""
SPARK_SOURCE: Final = "Spark source"
GROUPS: Final = {SPARK_SOURCE: SPARK, STORED: BESIDE_CLASSIC}


def reached(value: bool | None) -> str:
    """For a reader: nothing where there is no target."""
    return "" if value is None else "yes" if value else "**no**"


def cpu(timing: Timing) -> str:
    """For a reader: nothing where it was not ours to measure."""
    return "" if timing.cpu is None else f"{timing.cpu:.1f}"


def comparison_rows(comparisons: Sequence[Comparison]) -> Iterator[tuple[str, ...]]:
    """A row for each contender."""
    for each in comparisons:
        for other in each.others:
            target, cpu_target = each.targets.get(other.name), each.cpu_targets.get(other.name)
            yield (
                each.title,
                cpu(each.mine),
                f"{each.mine.median:,.0f}",
                other.name,
                cpu(other),
                f"{other.median:,.0f}",
                "" if (dearer := each.cpu_ratio(other)) is None else f"{dearer:.2f}",
                "" if cpu_target is None else f"≥ {cpu_target:g}",
                f"{each.ratio(other):.2f}",
                "" if target is None else f"≥ {target:g}",
                reached(each.reached(other)),
                "peer-bound" if each.peer_bound and other is each.limit else other.remark,
            )
        for name in each.unmeasured:
            yield each.title, cpu(each.mine), f"{each.mine.median:,.0f}", name, *[""] * 7, "not measured yet"


def stored_rows(stored: Sequence[Stored]) -> Iterator[tuple[str, ...]]:
    """A row for each step."""
    for each in stored:
        yield (
            each.protocol.upper(),
            each.title,
            f"{each.theirs:,.0f}",
            f"{each.ours:,.0f}",
            f"{each.ratio:.2f}",
            f"{each.spread:.0%}",
            f"≥ {each.target:g}",
            reached(each.reached),
        )


def measure_rows(measures: Sequence[Measure]) -> Iterator[tuple[str, ...]]:
    """A row for each number."""
    for each in measures:
        limit = "" if each.limit is None else f"{'≤' if each.at_most else '≥'} {each.limit:g}"
        yield each.title, f"{each.value:,.2f} {each.unit}", limit, reached(each.reached)


def profile_rows(profiles: Sequence[Profile]) -> Iterator[tuple[str, ...]]:
    """A row for each case in which somebody is ahead."""
    for each in profiles:
        functions = ", ".join(f"{name} {share:.0%}" for name, share in each.functions)
        yield each.place_name, each.title, each.against, f"{each.ratio:.2f}", f"{each.waiting:.0%}", functions


Table = tuple[str, tuple[str, ...], list[tuple[str, ...]]]


def tables(results: Results) -> Iterator[Table]:
    """Title, heads and rows of each table of numbers."""
    for name in dict.fromkeys(each.place_name for each in results.comparisons):
        yield name, HEADS, list(comparison_rows([each for each in results.comparisons if each.place_name == name]))
    if results.stored:
        heads = ("protocol", "step", "Classic, msg/s", "embedded, msg/s", "ratio", "spread", "target", "reached")
        yield STORED, heads, list(stored_rows(results.stored))
    for group in dict.fromkeys(each.group for each in results.measures):
        rows = measure_rows([each for each in results.measures if each.group == group])
        yield group, ("what", "measured", "limit", "reached"), list(rows)


def reasons(results: Results) -> Table:
    """The same of the profiles."""
    heads = ("pair", "case", "against", "ratio", "waiting", "functions")
    return "Behind the Java client", heads, list(profile_rows(results.profiles))


def terminal(results: Results) -> str:
    """Aligned columns, without colours."""
    lines = []
    for title, heads, rows in (*tables(results), *([reasons(results)] if results.profiles else [])):
        widths = [max(len(row[at]) for row in (heads, *rows)) for at in range(len(heads))]
        lines += ["", title]
        for row in (heads, *rows):
            cells = [text.ljust(width) for text, width in zip(row, widths, strict=True)]
            lines.append("  ".join(cells).replace("**", "").rstrip())
    return "\n".join([*lines, "", *results.notes, *results.failures])


def markdown(results: Results, plot: str | None, curves: str | None = None) -> str:
    """The page; ``plot`` and ``curves``: files of pictures beside it."""
    facts = ", ".join(f"{name} {value}" for name, value in results.machine.items())
    rounds = f"{results.settings['rounds']:g} rounds, fewer where a real broker has no target."
    lines = [INTRODUCTION, f"Machine: {facts}. {rounds}", ""]
    lines += [*again(results), ""] if results.again else []
    if plot:
        lines += [
            f"![how many times as fast as the raw clients, as the Java clients, and how near to a bare socket]({plot})",
            "",
        ]
    for title, heads, rows in tables(results):
        lines += [f"## {title}", "", *([GROUPS[title]] if title in GROUPS else []), *_rows(heads, rows), ""]
        if curves and title == SPARK_SOURCE:
            lines += [f"![rows per second by the rows of a batch]({curves})", ""]
    whys = list(why.lines(results))
    if whys:
        lines += [f"## {why.TITLE}", "", *textwrap.wrap(" ".join(why.INTRODUCTION.split()), 120), "", *whys, ""]
    if results.profiles:
        _, heads, rows = reasons(results)
        lines += [BEHIND, *_rows(heads, rows), ""]
    lines += [f"- {note}" for note in (*results.notes, *results.failures)]
    return "\n".join(lines).rstrip() + "\n"


def again(results: Results) -> Iterator[str]:
    """Which cases are not of the run that the rest is of."""
    for date in sorted(set(results.again.values())):
        names = ", ".join(name for name, when in results.again.items() if when == date)
        yield f"Run again later, on {date}, so that these numbers are of another run than the others: {names}."


def _rows(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    return ["| " + " | ".join(row) + " |" for row in (heads, tuple("---" for _ in heads), *rows)]


def write_json(results: Results, path: Path) -> None:
    """All that was measured, ratios included."""
    data = asdict(results)
    for each, written in zip(results.comparisons, data["comparisons"], strict=True):
        written["ratios"] = {other.name: round(each.ratio(other), 3) for other in each.others}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
