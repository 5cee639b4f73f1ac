"""What became of the messages: sent against what stands in the table, on the queue and among the dead letters."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Verdict:
    """``rows``: of the table. ``twice``: rows beyond a message's first; ``differing``: batches read in two ways.

    ``repeated``: how often Spark handed a batch to the application that it had handed to it before.
    """

    sent: int
    rows: int
    lost: tuple[str, ...]
    twice: tuple[str, ...]
    left: int
    dead: int
    given_up: int
    differing: int
    repeated: int

    @property
    def clean(self) -> bool:
        """Each message is in the table, once, and nowhere else, but for those that the query was set to give up."""
        strays = (self.lost, self.twice, self.left, self.dead, self.differing)
        return strays == ((), (), 0, 0, 0) and self.rows + self.given_up == self.sent


def judge(
    sent: Iterable[str], table: Path, left: Iterable[str], dead: Iterable[str], *, gives_up: bool = False
) -> Verdict:
    """Lost is what is neither in the table, nor on the queue, nor among the dead letters, unless it was given up."""
    all_sent, rows = list(sent), Counter(in_table(table))
    on_queue, dead_letters = list(left), list(dead)
    found = rows.keys() | set(on_queue) | set(dead_letters)
    missing = tuple(body for body in all_sent if body not in found)
    return Verdict(
        len(all_sent),
        rows.total(),
        () if gives_up else missing,
        tuple(sorted((rows - Counter(all_sent)).elements())),
        len(on_queue),
        len(dead_letters),
        len(missing) if gives_up else 0,
        len(list(table.rglob("*.differs"))),
        sum(_repeated(each) for each in table.rglob("calls")),
    )


def in_table(table: Path) -> list[str]:
    """The rows of all batches."""
    return [row for file in table.rglob("*.json") for row in json.loads(file.read_text(encoding="utf-8"))]


def _repeated(calls: Path) -> int:
    numbers = calls.read_text(encoding="utf-8").split()
    return len(numbers) - len(set(numbers))
