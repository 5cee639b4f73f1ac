"""The part of docs/spark-faults.md about campaigns, from the records of those that were run."""

from __future__ import annotations

import json
from collections.abc import Iterable

from tests.spark.faults.report import Result

_BEGIN = "\n## Random events\n"
_TEXT = """
A campaign lets random events meet a query while messages come: one of its processes, or all of them, are killed at a
random step or moment, a write fails (`full`, `broken`), and where the broker is a real one it is killed too. Each event
meets a query that has begun anew. Afterwards a run without events has 420 s, and a message that is missing 240 s.
`foreign` messages are plain STOMP frames, or come from proton without an id. The table has what was run, and nothing
else; `tests/spark/faults/campaign.py` says how to run a cell.

| pair | receiver | sender | messages | rows | lost | twice | repeated batches | events | run |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""


def with_campaigns(page: str, records: Iterable[str]) -> str:
    """The page with a row for each record, a line of JSON each; of a cell that was run again, the last time."""
    found = {(each.pair, each.case): each for each in (Result(**json.loads(line)) for line in records)}
    return page.partition(_BEGIN)[0] + _BEGIN + _TEXT + "".join(_row(found[key]) for key in sorted(found))


def campaigns_of(page: str) -> str:
    """What the page has of them."""
    _, begin, rest = page.partition(_BEGIN)
    return begin + rest


def _row(result: Result) -> str:
    _, receiver, sender = result.case.split(": ")
    numbers = (result.sent, result.rows, result.lost, result.twice, result.repeated)
    seen = f"did not end: {result.problem}" if result.problem else result.seen
    cells = (result.pair, receiver, sender, *map(str, numbers), seen.replace("|", "\\|"), result.run)
    return f"| {' | '.join(cells)} |\n"
