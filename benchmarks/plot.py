"""docs/benchmarks.png: how many times as fast we are, by case."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from benchmarks.page import in_order
from benchmarks.record import BARE, Record
from benchmarks.targets import CASES

MARKS: Final = {"activemq": ("o", 30), "artemis": ("s", 30), "qpid": ("^", 36), "rabbitmq": ("D", 26)}
RAW: Final = ("|", 160)
TITLE: Final = "Times the speed of the raw client and of a bare socket (fake peer), and of the Java client (by broker)"
TICKS: Final = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)


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


def write(record: Record, path: Path) -> None:
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
