"""The table of a run: on the terminal at the end of the tests, and as docs/faults.md."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
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

_ROW = re.compile(r"[|-] (?:[^|]+ \| )?(?P<pair>(?:stomp|amqp)-\w+(?: on [\d.]+)?)[ ,]")
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
store 200 (`--stored-kills`). A pair ending in `-stored` is the embedded broker with a store, in a process of its own;
one ending in `-rabbitmq4` is RabbitMQ 4.0, or 4.3 where it says so, with its classic queues or with quorum queues.

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


def with_pairs(written: str, new: str) -> str:
    """The page ``written`` with what ``new`` says of its pairs, and all else as it was."""
    sections, others = re.split(r"(?m)^(?=## )", written), re.split(r"(?m)^(?=## )", new)
    fresh = {section.partition("\n")[0]: section for section in others}
    of = {_pair(line) for line in new.splitlines()} - {""}
    merged = "".join(_merged(each, fresh.get(each.partition("\n")[0], ""), of) for each in sections)
    return _HEAD + merged[merged.index("| pair |") :]


def _merged(section: str, fresh: str, of: Collection[str]) -> str:
    """In the place of the first of the lines about them, or behind the last one about another pair."""
    lines = section.splitlines()
    its = [number for number, line in enumerate(lines) if _pair(line)]
    place = next((number for number in its if _pair(lines[number]) in of), its[-1] + 1 if its else len(lines))
    kept = [[line for line in part if _pair(line) not in of] for part in (lines[:place], lines[place:])]
    return _text([*kept[0], *(line for line in fresh.splitlines() if _pair(line)), *kept[1]])


def _pair(line: str) -> str:
    """The pair that a line is about; empty: none."""
    found = _ROW.match(line)
    return "" if found is None else found["pair"]


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
