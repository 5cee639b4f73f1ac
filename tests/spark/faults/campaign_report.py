"""The part of docs/spark-faults.md about campaigns, from the records of those that were run."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from tests.spark.faults.report import Result

_EVENT = re.compile(r"(?:^|, )([^,;]+): (\d+)(?=[,;])")
_BEGIN = "\n## Random events\n"
_TEXT = """
A campaign lets random events meet a query while messages come: one of its processes, or all of them, are killed at a
random step or moment, a write fails (`full`, `broken`), and where the broker is a real one it is killed too. A
query that survives an event meets the next one, else it begins anew. Afterwards a run without events has 420 s, and a
message that is missing 240 s. `foreign` messages are plain STOMP frames, or come from proton without an id; on RabbitMQ
half of them come from pika without an id. A cell may be run in parts, each with events of its own, which are added up.
The table has what was run, and nothing else; `tests/spark/faults/campaign.py` says how to run a cell.

| pair | receiver | sender | events | messages | rows | lost | twice | repeated batches | what happened | run |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""


def with_campaigns(page: str, records: Iterable[str]) -> str:
    """The page with a row for each cell. ``records``: a line of JSON for each part that was run."""
    found: dict[tuple[str, str], list[Result]] = {}
    for each in (Result(**json.loads(line)) for line in records):
        found.setdefault((each.pair, each.case), []).append(each)
    return page.partition(_BEGIN)[0] + _BEGIN + _TEXT + "".join(_row(found[key]) for key in sorted(found))


def campaigns_of(page: str) -> str:
    """What the page has of them."""
    _, begin, rest = page.partition(_BEGIN)
    return begin + rest


def _row(results: Sequence[Result]) -> str:
    _, receiver, sender = results[0].case.split(": ")
    numbers = [sum(getattr(each, name) for each in results) for name in ("sent", "rows", "lost", "twice", "repeated")]
    kinds: Counter[str] = Counter()
    for each in results:
        kinds.update({kind: int(count) for kind, count in _EVENT.findall(each.seen)})
    seen = [", ".join(f"{kind}: {count}" for kind, count in sorted(kinds.items()))] if kinds else []
    seen += [
        f"a part did not end: {each.problem}".replace("|", "\\|").replace("\n", " ") for each in results if each.problem
    ]
    runs = ", ".join(dict.fromkeys(each.run for each in results))
    cells = (results[0].pair, receiver, sender, str(kinds.total()), *map(str, numbers), "; ".join(seen), runs)
    return f"| {' | '.join(cells)} |\n"
