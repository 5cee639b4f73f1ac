"""The table of killed commands of `redelivery dlq`: a part of docs/faults.md, between two marks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

BEGIN, END = "<!-- letters: written by scripts/fault-report -->\n", "<!-- letters: end -->\n"
_HEAD: Final = """
## Commands that move dead letters

Programs of `redelivery dlq` are killed at random moments (kill -9), and at planted points: within and after a line of
their receipt, after a send, before and after a commit or an acknowledgement. `resume`, or `undo` once more, goes on, is
killed as well, and in the end does the rest. Among the letters are some of other clients, some with the same content,
with the same id and without one. Then each letter is looked for, with what it says, and the receipt is verified. A cell
says how often the command was killed, how many letters were lost, and how many were there twice.

Twice: RabbitMQ has no transaction of a send and an acknowledgement, and Artemis over STOMP none of both. Where a letter
is in both places after a kill, `resume` takes it away from the first, and `undo` from the second; neither can where one
of the two has been received already. HornetQ is not here: nobody can look into its queues over STOMP.

"""


def part(lines: Iterable[str], kept: str = "") -> str:
    """From the records of `test_letter_kills`, one a line. ``kept``: a section whose other cells stay."""
    cells = _read(kept)
    for line in lines:
        record: Mapping[str, Any] = json.loads(line)
        cells[record["command"], record["pair"]] = (record["kills"], record["lost"], record["doubled"])
    commands, pairs = (list(dict.fromkeys(key[place] for key in cells)) for place in (0, 1))
    rows = [("killed", *pairs), ("---",) * (len(pairs) + 1)]
    rows += [(each, *(_cell(cells.get((each, pair))) for pair in pairs)) for each in commands]
    sums = Counter[int]()
    for cell in cells.values():
        sums.update(dict(enumerate(cell)))
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    return f"{_HEAD}{table}\nIn all of them: {sums[0]:,} kills, {sums[1]} lost, {sums[2]} twice.\n"


def insert(page: str, section: str) -> str:
    """The page with this section instead of the one that it has, or at its end."""
    before, begin, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}{section}{END}{rest.partition(END)[2] if begin else ''}"


def section_of(page: str) -> str:
    """Of a page that has one; empty if it has none."""
    return page.partition(BEGIN)[2].partition(END)[0]


def _cell(numbers: tuple[int, int, int] | None) -> str:
    return "-" if numbers is None else " / ".join(map(str, numbers))


def _read(section: str) -> dict[tuple[str, str], tuple[int, int, int]]:
    """The cells of its table."""
    rows = [[each.strip() for each in line.strip("|").split(" | ")] for line in section.splitlines() if line[:1] == "|"]
    pairs = rows[0][1:] if rows else []
    found: dict[tuple[str, str], tuple[int, int, int]] = {}
    for row in rows[2:]:
        for pair, cell in zip(pairs, row[1:], strict=True):
            if cell != "-":
                kills, lost, twice = map(int, cell.split(" / "))
                found[row[0], pair] = (kills, lost, twice)
    return found
