"""The part of docs/conformance.md about queues of RabbitMQ's that others made, from the record of their tests."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from tests.conformance.pairs import KINDS, ON, USUAL_VERSION
from tests.conformance.record import FAILED, PASSED, REFUSED, Line

MODULE: Final = "test_queues_of_others.py"
BEGIN: Final = "\n## Queues of RabbitMQ that other programs made\n"
_HEAD: Final = """
One test for each cell ([`test_queues_of_others.py`](../tests/conformance/test_queues_of_others.py)). Each queue is made
over AMQP 0-9-1, never by this library, and the messages in it come from there, from a STOMP socket and from proton; the
queue for dead letters is one of others, of the same kind. **ok**: done as it must be; **refused**: a clear error says
that the broker cannot, and nothing is taken or counted; -: not run.

"""
OK, WRONG, NONE = "ok", "**wrong**", "-"
_TEST: Final = re.compile(r"::test_(?P<deed>\w+)\[(?P<pair>(?:stomp|amqp)-rabbitmq4?)(?:-(?P<queue>.+))?\]$")
_VERSIONS: Final = {"rabbitmq": "3.10", "rabbitmq4": USUAL_VERSION}  # of the brokers of pairs
_ROW: Final = re.compile(r"\| (?P<title>[^|]+) \| (?P<cells>.+) \|$")


def section(lines: Sequence[Line], kept: str = "") -> str:
    """From the record; ``kept``: a page whose other columns stay. Empty where neither has any."""
    cells = {**_read(kept), **_cells(lines)}
    columns = sorted({column for _, column in cells}, key=lambda column: (not column.startswith("STOMP"), column))
    rows = sorted(dict.fromkeys(row for row, _ in cells), key=_order)
    if not rows:
        return ""
    table = [f"| the queue, and what is done | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
    table += [f"| {row} | {' | '.join(cells.get((row, column), NONE) for column in columns)} |" for row in rows]
    wrong = sum(cell == WRONG for cell in cells.values())
    return f"{BEGIN}{_HEAD}{chr(10).join(table)}\n\n{len(cells)} cells, {wrong} wrong.\n"


def _cells(lines: Sequence[Line]) -> Mapping[tuple[str, str], str]:
    found = {}
    for line in lines:
        test = _TEST.search(line.test) if line.module == MODULE else None
        if test is not None and line.outcome in (PASSED, REFUSED, FAILED):
            deed = test["deed"].replace("_", " ")
            row = deed if test["queue"] is None else f"{test['queue']}: {deed}"
            found[row, _column(line)] = {PASSED: OK, REFUSED: REFUSED, FAILED: WRONG}[line.outcome]
    return found


def _column(line: Line) -> str:
    kind = KINDS[line.kind]
    return f"{kind.protocol.upper()}, {line.pair.partition(ON)[2] or _VERSIONS[str(kind.broker)]}"


def _order(row: str) -> tuple[bool, str, int]:
    """By queue, as its life goes; then what concerns no kind of queue."""
    queue, colon, deed = row.rpartition(": ")
    deeds = ("send", "consume", "roll back to the limit", "dead letter", "browse", "look into by management")
    return not colon, queue, deeds.index(deed) if deed in deeds else len(deeds)


def _read(page: str) -> Mapping[tuple[str, str], str]:
    rows = [_ROW.match(line) for line in page.partition(BEGIN)[2].partition("\n## ")[0].splitlines()]
    found = [(row["title"], row["cells"].split(" | ")) for row in rows if row is not None]
    columns = found[0][1] if found else []
    return {
        (title, column): cell
        for title, cells in found[1:]
        for column, cell in zip(columns, cells, strict=True)
        if cell != NONE
    }
