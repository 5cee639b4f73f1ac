"""The table of faults under connections that come back: a part of docs/faults.md, between two marks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from tests.faults.promises import PROMISES

BEGIN, END = "<!-- failover: written by scripts/fault-report -->\n", "<!-- failover: end -->\n"
_HEAD: Final = """
## Connections that come back

What is done to a program whose connections come back (`failover:`), while it sends messages, each confirmed, and
moves others from one queue to another. A cell says what became of them: lost / twice / in doubt. Hidden: the broker
delivered it to nobody until the connection was closed, or it was started again. Lost: confirmed or committed, and
nowhere. In doubt: the program was told so by `InDoubtError`; where nobody confirms an acknowledgement, it is in doubt
as well. Twice: further outputs; the tests hold every one of them to be one that was in doubt. With
`deduplicate_sends` the messages that are sent (before the +) are neither.

"""
_LOST: Final = "lost"


def part(lines: Iterable[str]) -> str:
    """From the records of `test_failover_faults`, one a line."""
    cells: dict[tuple[str, str], Mapping[str, Any]] = {}
    for line in lines:
        record = json.loads(line)
        cells[record["fault"], record["pair"]] = record
    faults = sorted(dict.fromkeys(fault for fault, _ in cells), key=lambda fault: not fault.startswith("cut"))
    pairs = sorted({pair for _, pair in cells}, key=_by_name)
    rows = [("done to it", *pairs), ("---",) * (len(pairs) + 1)]
    rows += [(fault, *(_cell(cells.get((fault, pair))) for pair in pairs)) for fault in faults]
    messages = sum(record["sent"] + record["moved"] for record in cells.values())
    lost = sum(record[_LOST] for record in cells.values())
    losses = sum(record["reconnected"] for record in cells.values())
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    reasons = "".join(_reason(pair, [each for each in cells.values() if each["pair"] == pair]) for pair in pairs)
    sums = f"{messages:,} messages, {losses:,} reconnections: {lost} lost."
    return f"{_HEAD}{table}\n{sums}\n\nTwice, and why:\n\n{reasons or 'None.'}"


def insert(page: str, section: str) -> str:
    """The page with this section instead of the one that it has, or at its end."""
    before, begin, rest = page.partition(BEGIN)
    after = rest.partition(END)[2] if begin else ""
    return f"{before}{BEGIN}{section}{END}{after}"


def section_of(page: str) -> str:
    """Of a page that has one; empty if it has none."""
    return page.partition(BEGIN)[2].partition(END)[0]


def _reason(pair: str, records: Iterable[Mapping[str, Any]]) -> str:
    twice = sum(each["moved_twice"] + each["sent_twice"] for each in records)
    promise = PROMISES.get(pair.partition(",")[0])
    if not twice or promise is None:
        return ""
    why = promise.window or promise.behind or "in doubt"
    return f"- {pair}: {twice} outputs of messages in doubt; {why.replace('killed', 'the connection was lost')}.\n"


def _by_name(pair: str) -> tuple[bool, str]:
    return "embedded" in pair, pair


def _cell(record: Mapping[str, Any] | None) -> str:
    if record is None:
        return "-"
    twice = f"{record['sent_twice']}+{record['moved_twice']}"
    doubts = f"{record['sent_in_doubt']}+{record['moved_in_doubt']}"
    hidden = f", {record['hidden']} hidden" if record.get("hidden") else ""
    return f"{record[_LOST]}{hidden} / {_short(twice)} / {_short(doubts)}"


def _short(number: str) -> str:
    return "0" if number == "0+0" else number
