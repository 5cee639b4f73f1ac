"""docs/load.md: what test_load.py has measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from tests.conformance.measured import table, used
from tests.conformance.record import rows

_HEAD: Final = """# Many sessions, consumers, lost connections and messages

`scripts/load-report` writes this page, from [test_load.py](../tests/conformance/test_load.py), which runs on each pair
of protocol and broker, in a process of its own; an embedded broker is in that process too. A test fails where as much
as one descriptor or thread stays, or memory grows.

- **sessions on 10 connections**, with messages, until all is closed: before → while all are open → at the end, the
  second time in this process. Over STOMP on ActiveMQ Classic each session has a socket of its own
  ([why](brokers/activemq.md)).
- **consumers on one connection**, which receive a message each: measured likewise.
- **reconnections in a row**: a connection with a consumer is reset, comes back by `ReconnectPolicy`, and is reset
  again; and **messages behind**: a consumer receives what a queue has. Measured after a warm-up of a fifth → in the
  middle of the rest → at the end. Bytes of each: what one more adds to the memory, in that half of the rest in which it
  was less.

"""
_HEADS: Final = ("pair", "what", "number", "seconds per 1,000", "bytes of each", "memory, MB", "descriptors", "threads")


def page(lines: Iterable[str], kept: str = "") -> str:
    """From one line of JSON for each test and pair; of two lines about the same the last counts.

    ``kept``: a page whose rows stay where there is no such line.
    """
    found = rows(lines, of="load")
    _, _, old = kept.partition(f"{' | '.join(_HEADS)} |\n")
    cells = [line.strip("| ").split(" | ") for line in old.splitlines()[1:] if line.startswith("| ")]
    merged = {(row[1], row[0]): row for row in (*cells, *map(_cells, found))}
    failed = [f"\n**{row['test']} failed in this run.**\n" for row in found if row["outcome"] != "passed"]
    body = table([_HEADS, ["---"] * len(_HEADS), *(merged[key] for key in sorted(merged))])
    return _HEAD + body + "".join(failed)


def _cells(row: Mapping[str, Any]) -> list[str]:
    slope = f"{row['slope']:.0f}" if "slope" in row else ""
    seconds = row["seconds"] / row["number"] * 1000
    return [row["pair"], row["what"], f"{row['number']:,}", f"{seconds:.1f}", slope, *used(row)]
