"""docs/benchmarks.md, its picture (how many times as fast we are, by case), and the tables on the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from benchmarks.figures import read as read_figures
from benchmarks.record import BARE, Measure, Record, Row, Stored, Timing
from benchmarks.targets import (
    AT_LEAST,
    AT_MOST,
    CASES,
    MISSED,
    STORED,
    TEXT,
    UNKNOWN,
    WHY,
    item,
    paragraphs,
    table,
    written,
)

HEADS: Final = (
    *("case", "CPU µs", "msg/s", "against", "CPU µs", "msg/s"),
    *("CPU ratio", "CPU target", "ratio", "target", "reached", "remark"),
)
STORED_HEADS: Final = ("protocol", "step", "Classic, msg/s", "embedded, msg/s", "ratio", "spread", "target", "reached")
MEASURE_HEADS: Final = ("what", "measured", "limit", "reached")
BEHIND_HEADS: Final = ("pair", "case", "against", "ratio", "waiting", "functions")
ITSELF, SPARK, STORE = "By themselves", "Spark source", "A store of a million messages"
LANES: Final = "docs/spark-lane.json"
LANE_HEADS: Final = (
    *("broker", "session alone", "lane", "times the session", "target", "reached"),
    *("from memory", "times from memory"),
)
_LANE: Final = 2.2  # times the session's processor time, at most
LANE: Final = "A lane of the Spark source"
BESIDE_CLASSIC: Final = "The embedded broker with a store, beside ActiveMQ Classic"
BEHIND: Final = "Behind the Java client: where the time goes"
WHYS: Final = "Missed targets: what the time is spent on"
TEXTS: Final = {SPARK: "spark", BESIDE_CLASSIC: "stored", LANE: "lane", WHYS: "missed", BEHIND: "behind"}
PICTURE: Final = (
    "![how many times as fast as the raw clients, as the Java clients, and how near to a bare socket](benchmarks.png)"
)
MARKS: Final = {"activemq": ("o", 30), "artemis": ("s", 30), "qpid": ("^", 36), "rabbitmq": ("D", 26)}
RAW: Final = ("|", 160)
TITLE: Final = "Times the speed of the raw client and of a bare socket (fake peer), and of the Java client (by broker)"
TICKS: Final = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)


def verdict(value: bool | None) -> str:
    """Return a word for a reader: nothing where there is no target."""
    return "" if value is None else "yes" if value else "**no**"


def _number(value: float | None, form: str, before: str = "") -> str:
    return "" if value is None else f"{before}{value:{form}}"


def _cells(row: Row) -> tuple[str, ...]:
    def of(timing: Timing) -> tuple[str, str]:
        return _number(timing.cpu, ".1f"), f"{timing.median:,.0f}"

    return (
        CASES[row.case.rpartition("/")[2]],
        *of(row.ours),
        row.name,
        *of(row.theirs),
        _number(row.cpu_ratio, ".2f"),
        _number(row.cpu_target, "g", "≥ "),
        f"{row.ratio:.2f}",
        _number(row.target, "g", "≥ "),
        verdict(row.reached),
        "peer-bound" if row.peer_bound else row.theirs.remark,
    )


def in_order(record: Record, names: Iterable[str]) -> Iterator[str]:
    """Yield the names of cases in the order of the page."""
    order = [f"{place}/{case}" for place in record.places for case in CASES]
    yield from sorted(names, key=order.index)


def sections(record: Record) -> Iterator[tuple[str, list[str]]]:
    """Yield title and lines of each section."""
    for place, title in record.places.items():
        names = in_order(record, [case for case in record.rows if case.rpartition("/")[0] == place])
        yield title, table(HEADS, [_cells(row) for case in names for row in record.beside(case)])
    if record.stored:
        yield BESIDE_CLASSIC, table(STORED_HEADS, map(_stored, record.stored.values()))
    groups: dict[str, list[tuple[str, ...]]] = {ITSELF: [], SPARK: [], STORE: []}
    for key, measure in record.measures.items():
        group = SPARK if key.startswith("spark-") else STORE if key.startswith("stored-") else ITSELF
        groups[group].append(_measured(key, measure))
    yield from ((group, table(MEASURE_HEADS, rows)) for group, rows in groups.items() if rows)
    yield LANE, table(LANE_HEADS, lanes())
    if whys := list(reasons(record)):
        yield WHYS, whys
    if record.behind:
        names = in_order(record, record.behind)
        yield BEHIND, table(BEHIND_HEADS, [_behind(record, case) for case in names])


def _stored(each: Stored) -> tuple[str, ...]:
    numbers = (f"{each.theirs:,.0f}", f"{each.ours:,.0f}", f"{each.ratio:.2f}", f"{each.spread:.0%}")
    return each.protocol.upper(), each.title, *numbers, f"≥ {STORED[each.title]:g}", verdict(each.reached)


def _measured(key: str, measure: Measure) -> tuple[str, ...]:
    limit = _number(AT_MOST.get(key), "g", "≤ ") + _number(AT_LEAST.get(key), "g", "≥ ")
    return measure.title, f"{measure.value:,.2f} {measure.unit}", limit, verdict(measure.reached(key))


def lanes() -> list[tuple[str, ...]]:
    """Return a row for each broker whose lane was measured, by `benchmarks.spark_lane`."""
    rows: list[tuple[str, ...]] = []
    for each in read_figures(LANES):
        alone, lane, memory = each["session"], each["lane"], each["memory"]
        ratio = (f"{lane / alone:.2f}", f"≤ {_LANE:g}", verdict(round(lane / alone, 2) <= _LANE))
        rows.append(
            (each["broker"], f"{alone:.1f} µs", f"{lane:.1f} µs", *ratio, f"{memory:.1f} µs", f"{lane / memory:.1f}")
        )
    return rows


def _behind(record: Record, case: str) -> tuple[str, ...]:
    place, _, key = case.rpartition("/")
    each = record.behind[case]
    functions = ", ".join(f"{name} {share:.0%}" for name, share in each.functions.items())
    return record.places[place], CASES[key], each.against, f"{each.ratio:.2f}", f"{each.waiting:.0%}", functions


def terminal(record: Record) -> str:
    """Return the sections without their texts."""
    lines = [line for title, section in sections(record) for line in ("", title, "", *section)]
    return "\n".join([*lines, "", *notes(record)])


def notes(record: Record) -> list[str]:
    """Return what was not there, and what broke off."""
    return [*record.notes, *(f"{name} failed: {error}" for name, error in record.failures.items())]


def page(record: Record) -> str:
    """Return the page; a section of `benchmarks.spread` may follow."""
    lines = ["# Benchmarks", "", *paragraphs(TEXT["introduction"])]
    rounds = f"{record.rounds:g} rounds, fewer where a real broker has no target."
    lines += [f"Machine: {written(record.machine)}. {rounds}", ""]
    for date in sorted(set(record.again.values())):
        names = ", ".join(name for name, when in record.again.items() if when == date)
        lines.append(f"Run again later, on {date}, so that these numbers are of another run than the others: {names}.")
    lines += ["", PICTURE, ""] if record.again else [PICTURE, ""]
    for title, section in sections(record):
        lines += [f"## {title}", "", *(paragraphs(TEXT[TEXTS[title]]) if title in TEXTS else ()), *section, ""]
    lines += [f"- {note}" for note in notes(record)]
    return "\n".join(lines).rstrip() + "\n"


def missed(record: Record) -> Iterator[tuple[str, str, str]]:
    """Yield name, title, and what the numbers themselves say, of each row whose target is missed."""
    for case in in_order(record, record.rows):
        rows = record.beside(case)
        bare = next((row.theirs for row in rows if row.name == BARE), None)
        for row in rows:
            if row.reached is False:
                place, _, key = case.rpartition("/")
                yield case, f"{record.places[place]}, {CASES[key]}, against {row.name}", _facts(row, bare)
    for each in record.stored.values():
        if not each.reached:
            yield f"stored/{each.protocol}/{each.title}", f"{each.protocol.upper()}, stored: {each.title}", ""
    linear = record.measures.get("bare-linear-text")
    for key, measure in record.measures.items():
        if measure.reached(key) is False:
            known = linear is not None and "-linear-" in key
            facts = f" (a bare socket, without a client: {linear.value:.2f})" if linear and known else ""
            yield key, measure.title, facts


def reasons(record: Record) -> Iterator[str]:
    """Yield an item of a list for each sentence, with all rows that it is about."""
    found: dict[str, list[str]] = {}
    for name, title, facts in missed(record):
        why = " ".join(WHY[MISSED[name]].split()) if name in MISSED else UNKNOWN
        found.setdefault(why + facts, []).append(title)
    for sentence, titles in found.items():
        yield item(f"{'; '.join(titles)}: {sentence}")


def _facts(row: Row, bare: Timing | None) -> str:
    """Return what a bare socket reaches, and how long our process waits."""
    found = []
    if bare is not None:
        cheaper = f", of processor time {row.theirs.cpu / bare.cpu:.2f}" if bare.cpu and row.theirs.cpu else ""
        found.append(f"a bare socket's ratio is {bare.median / row.theirs.median:.2f}{cheaper}")
    waiting = 0.0 if row.ours.cpu is None else 1 - row.ours.cpu * row.ours.median / 1e6
    if waiting > 0.1:
        found.append(f"our process waits {waiting:.0%} of the time")
    return f" ({'; '.join(found)})" if found else ""


def points(record: Record) -> dict[str, list[tuple[str, float]]]:
    """Return the ratios of each case of a protocol: to the raw client, the bare socket, and Java by broker."""
    found: dict[str, list[tuple[str, float]]] = {}
    for name in in_order(record, record.rows):
        protocol, broker, case = name.split("/")
        its = found.setdefault(f"{protocol.upper()}: {CASES[case]}", [])
        rows = record.beside(name)
        if broker == "fake":
            its += [("raw client", row.ratio) for row in rows if row.name != BARE and not row.theirs.remark][:1]
            its += [(BARE, row.ratio) for row in rows if row.name == BARE]
        its += [(f"Java, {broker}", row.ratio) for row in rows if row.name.startswith("Java")]
    return found


def draw(record: Record, path: Path) -> None:
    """Draw a row for each case; nothing where there are no cases, or no matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return
    found = points(record)
    if not found:
        return
    figure = Figure(figsize=(9, 1.6 + 0.3 * len(found)), layout="constrained")
    axis = figure.subplots()
    for kind in dict.fromkeys(kind for its in found.values() for kind, _ in its):
        mark, size = MARKS.get(kind.removeprefix("Java, "), RAW)
        values = [(ratio, at) for at, its in enumerate(reversed(found.values())) for each, ratio in its if each == kind]
        x, y = zip(*values, strict=True)
        axis.scatter(x, y, marker=mark, s=size, linewidths=3 if mark == "|" else 1, label=kind)
    axis.set_xscale("log")
    axis.set_xticks(TICKS, labels=[f"{each:g}" for each in TICKS])
    axis.minorticks_off()
    axis.set_yticks(range(len(found)), list(found)[::-1], fontsize=9)
    axis.grid(alpha=0.25)
    axis.axvline(1, color="grey", linewidth=0.8)
    axis.set_title(TITLE, fontsize=9, loc="right")
    figure.legend(loc="outside lower center", ncols=6, fontsize=9)
    figure.savefig(path, dpi=90)
