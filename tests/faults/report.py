"""The table of a run: on the terminal at the end of the tests, and as docs/faults.md."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pytest
from tests.faults.account import COMMITTED, IN_DOUBT, OPEN, RECENT, ROLLED_BACK
from tests.faults.campaign import Run


@dataclass
class Report:
    """What this run of the tests has found. ``cuts``: pair, where the connection was cut, what was found after it."""

    runs: list[Run] = field(default_factory=list)
    cuts: list[tuple[str, str, str]] = field(default_factory=list)


REPORT = pytest.StashKey[Report]()

_ROW = re.compile(r"[|-] ([^|]+ \| )?(stomp|amqp)-\w+[ ,]")
_STORED = re.compile(r"[|-] ([^|]+ \| )?(stomp|amqp)-stored[ ,]")
_HEADS = (
    "pair",
    "killed",
    "messages",
    "committed",
    "rolled back",
    "open",
    "in doubt",
    "unmarked",
    "hidden",
    "twice",
    "lost",
)
_HEAD = """\
# What is left after kill -9

Programs move messages from one queue to another while they, or their broker, are killed at random moments (kill -9)
and connect anew; then every message is looked for. Every second program uses asyncio. This page is written by `make
nightly` (`.venv/bin/python scripts/fault-report`), which kills 20 programs of each pair (`--kills`), and of one with a
store 200 (`--stored-kills`). A pair ending in `-stored` is the embedded broker with a store, in a process of its own.

Lost: sent, and its output is nowhere. Twice: a further output of the same message. Hidden: the broker
delivered it to nobody until it was started again. All other columns count deliveries: those whose commit (without
transactions: acknowledgement) returned; that were rolled back; that were open at a kill; in doubt, that is, the commit
had begun then, or raised `InDoubtError`; and, among all of them, unmarked: not the message's first, but the broker said
so (no redelivered flag, a delivery count of 1).

"""
_PROMISES = """
## What each pair promises

| pair | promise |
|---|---|
"""
_TWICE = """
## Why there are outputs twice, and messages hidden

"""
_CUTS = """
## The windows, one by one

A proxy between program and broker cuts the connection before the named frame; another program goes on.

| cut | pair | found |
|---|---|---|
"""


def page(report: Report) -> str:
    """In Markdown."""
    lines = [_row(_HEADS), _row("---" for _ in _HEADS), *(_row(_cells(run)) for run in report.runs)]
    promises = {run.name: run.account.promise.text for run in report.runs}
    reasons = [f"- {run.name}, {run.killed} killed: {text}." for run in report.runs for text in _reasons(run)]
    return "".join(
        (
            _HEAD,
            _text(lines),
            _PROMISES,
            _text(_row(each) for each in promises.items()),
            _TWICE,
            _text(reasons or ["None in this run."]),
            _CUTS,
            _text(_row((cut, pair, found)) for pair, cut, found in report.cuts),
        )
    )


def with_stored(written: str, new: str) -> str:
    """The page ``written`` with what ``new`` says of pairs with a store, and all else as it was."""
    sections, others = re.split(r"(?m)^(?=## )", written), re.split(r"(?m)^(?=## )", new)
    fresh = {section.partition("\n")[0]: section for section in others}
    merged = "".join(_merged(each, fresh.get(each.partition("\n")[0], "")) for each in sections)
    return _HEAD + merged[merged.index("| pair |") :]


def _merged(section: str, fresh: str) -> str:
    """In the place of the first of its lines about a pair with a store, or where the first other pair is."""
    lines, found = [], [line for line in fresh.splitlines() if _STORED.match(line)]
    for line in section.splitlines():
        if found and _ROW.match(line):
            lines += found
            found = []
        if not _STORED.match(line):
            lines.append(line)
    return _text(lines)


def terminal(report: Report) -> list[str]:
    """The first table in columns, and the reasons."""
    table = [_HEADS, *(_cells(run) for run in report.runs)]
    widths = [max(len(row[column]) for row in table) for column in range(len(_HEADS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
    for run in report.runs:
        lines += [f"{run.name}: {text}" for text in _reasons(run)]
    return lines


def _reasons(run: Run) -> Sequence[str]:
    reasons = [f"{count} times {why}" for why, count in run.verdict.duplicates.items()]
    if run.verdict.hidden:
        reasons.append(f"{run.verdict.hidden} times {run.account.promise.hides}")
    return reasons


def _cells(run: Run) -> Sequence[str]:
    fates = run.verdict.fates
    numbers = (
        run.verdict.messages,
        fates[COMMITTED] + fates[RECENT],
        fates[ROLLED_BACK],
        fates[OPEN],
        fates[IN_DOUBT],
        run.verdict.unmarked,
        run.verdict.hidden,
        run.verdict.duplicates.total(),
        len(run.verdict.lost),
    )
    return [run.name, f"{run.killed}, {run.kills} times", *map(str, numbers)]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
