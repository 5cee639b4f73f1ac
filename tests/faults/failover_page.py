"""The table of faults under connections that come back: a part of docs/faults.md, between two marks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from tests.conformance.pairs import KINDS
from tests.faults.cases import impossible, ways
from tests.faults.promises import PROMISES

BEGIN, END = "<!-- failover: written by scripts/fault-report -->\n", "<!-- failover: end -->\n"
_HEAD: Final = """
## Connections that come back

What is done to a program whose connections come back (`failover:`), while it sends messages, each confirmed, and
moves others from one queue to another. A cell says what became of them: lost / twice / in doubt. Hidden: the broker
delivered it to nobody until the connection was closed, or it was started again. Lost: confirmed or committed, and
nowhere. In doubt: the program was told so by `InDoubtError`; where nobody confirms an acknowledgement, it is in doubt
as well. Twice: further outputs; the tests hold every one of them to be one that was in doubt. With
`deduplicate_sends` the messages that are sent (before the +) are neither. Refused: the broker answers, and says no; a
program whose send is refused sends it again, and one whose consumer is refused makes another one.

-: it cannot be (no transactions, no SASL, no process of its own to kill). Not run: there is a test of it, of which this
page has no run. Empty: there is no test of it; with asyncio a real broker is sent the same bytes, so that few faults
are done to it once more, and to a broker with a store there is only the kill.

"""
_RUN: Final = re.compile(r"\d+ of the latest run: [\d,]+ messages, [\d,]+ reconnections")
_NEVER: Final = "-"  # what cannot be
_NOT_RUN: Final = "not run"
_UNTESTED: Final = ""


def part(lines: Iterable[str], kept: str = "") -> str:
    """From the records of `test_failover_faults`, one a line. ``kept``: a section whose other cells stay."""
    records: dict[tuple[str, str], Mapping[str, Any]] = {}
    for line in lines:
        record = json.loads(line)
        records[record["fault"], record["pair"]] = record
    cells = {**_read(kept), **{key: _cell(record) for key, record in records.items()}}
    faults = sorted(dict.fromkeys(fault for fault, _ in cells), key=lambda fault: not fault.startswith("cut"))
    pairs = sorted({pair for _, pair in cells}, key=_by_name)
    rows = [("done to it", *pairs), ("---",) * (len(pairs) + 1)]
    rows += [(fault, *(cells.get((fault, pair)) or _none(fault, pair) for pair in pairs)) for fault in faults]
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    messages = sum(record["sent"] + record["moved"] for record in records.values())
    losses = sum(record["reconnected"] for record in records.values())
    lost = sum(_numbers(cell)[0] for cell in cells.values())
    run = f"{len(records)} of the latest run: {messages:,} messages, {losses:,} reconnections"
    if not records and (old := _RUN.search(kept)):
        run = old[0]
    sums = f"{len(cells)} cells, {run}. In all of them: {lost} lost."
    reasons = "".join(_reason(pair, [cell for (_, its), cell in cells.items() if its == pair]) for pair in pairs)
    return f"{_HEAD}{table}\n{sums}\n\nTwice, and why:\n\n{reasons or 'None.'}"


def insert(page: str, section: str) -> str:
    """The page with this section instead of the one that it has, or at its end."""
    before, begin, rest = page.partition(BEGIN)
    after = rest.partition(END)[2] if begin else ""
    return f"{before}{BEGIN}{section}{END}{after}"


def section_of(page: str) -> str:
    """Of a page that has one; empty if it has none."""
    return page.partition(BEGIN)[2].partition(END)[0]


def _reason(pair: str, cells: Iterable[str]) -> str:
    twice = sum(_numbers(cell)[1] for cell in cells)
    promise = PROMISES.get(_kind(pair))
    if not twice or promise is None:
        return ""
    why = promise.window or promise.behind or "in doubt"
    return f"- {pair}: {twice} outputs of messages in doubt; {why.replace('killed', 'the connection was lost')}.\n"


def _none(fault: str, column: str) -> str:
    """The cell of what there is no record of."""
    kind, way = KINDS[_kind(column)], column.partition(", ")[2]
    if impossible(kind, fault):
        return _NEVER
    return _NOT_RUN if way in ways(kind, fault) else _UNTESTED


def _kind(column: str) -> str:
    """The pair's name, without the way, and without the version of its broker."""
    return re.split("[, ]", column)[0]


def _read(section: str) -> dict[tuple[str, str], str]:
    """The cells of its table."""
    rows = [[each.strip() for each in line.strip("|").split(" | ")] for line in section.splitlines() if line[:1] == "|"]
    pairs = rows[0][1:] if rows else []
    return {
        (row[0], pair): cell
        for row in rows[2:]
        for pair, cell in zip(pairs, row[1:], strict=True)
        if cell not in (_NEVER, _NOT_RUN, _UNTESTED)
    }


def _numbers(cell: str) -> tuple[int, int]:
    """How many are lost, and how many are there twice."""
    lost, twice, _ = cell.split(" / ")
    return int(lost.partition(",")[0]), sum(map(int, twice.split("+")))


def _by_name(pair: str) -> tuple[bool, str]:
    return "embedded" in pair, pair


def _cell(record: Mapping[str, Any]) -> str:
    twice = f"{record['sent_twice']}+{record['moved_twice']}"
    doubts = f"{record['sent_in_doubt']}+{record['moved_in_doubt']}"
    hidden = f", {record['hidden']} hidden" if record.get("hidden") else ""
    return f"{record['lost']}{hidden} / {_short(twice)} / {_short(doubts)}"


def _short(number: str) -> str:
    return "0" if number == "0+0" else number
