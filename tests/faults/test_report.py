"""docs/faults.md: what was found on some of the pairs can be written alone."""

from __future__ import annotations

import json
from typing import Any

from tests.conformance.pairs import KINDS
from tests.faults.cases import KILLED, impossible, ways
from tests.faults.failover_page import part
from tests.faults.harm import HARMS
from tests.faults.report import with_pairs

OLD = """\
# What is left after kill -9

old words

| pair | killed |
| --- | --- |
| stomp-stored | client, 6 times |
| stomp-activemq | client, 6 times |

## What each pair promises

| pair | promise |
|---|---|
| stomp-stored | old |
| stomp-activemq | kept |

## Why there are outputs twice, and messages hidden

- stomp-rabbitmq, client killed: 4 times kept.

## The windows, one by one

| cut | pair | found |
| before the commit | stomp-activemq | nothing sent |
"""
NEW = """\
# What is left after kill -9

| pair | killed |
| --- | --- |
| stomp-stored | client, 200 times |
| stomp-stored, AUTO | client, 20 times |

## What each pair promises

| pair | promise |
|---|---|
| stomp-stored | new |
| stomp-stored, AUTO | new |

## Why there are outputs twice, and messages hidden

- stomp-stored, AUTO, client killed: 1 times new.

## The windows, one by one
"""


def test_their_rows_are_replaced_and_all_others_stay() -> None:
    found = with_pairs(OLD, NEW)
    assert with_pairs(found, NEW) == found
    assert [line for line in found.splitlines() if "stored" in line and not line.startswith("store ")] == [
        "| stomp-stored | client, 200 times |",
        "| stomp-stored, AUTO | client, 20 times |",
        "| stomp-stored | new |",
        "| stomp-stored, AUTO | new |",
        "- stomp-stored, AUTO, client killed: 1 times new.",
    ]
    for kept in ("| stomp-activemq | client, 6 times |", "| stomp-activemq | kept |", "4 times kept."):
        assert found.count(kept) == 1
    assert found.endswith(OLD.partition("## The windows")[2])
    assert "old words" not in found


def test_the_cells_of_connections_that_come_back_can_be_written_some_at_a_time() -> None:
    old = part([record("cut before a send", "amqp-qpid", moved_twice=2), record("half open", "stomp-artemis", lost=3)])
    both = part([record("half open", "stomp-artemis"), record("half open", "amqp-qpid", hidden=4)], old)
    assert [line for line in both.splitlines() if line.startswith("| ")][1:] == [
        "| --- | --- | --- |",
        "| cut before a send | 0 / 0+2 / 0 | not run |",
        "| half open | 0, 4 hidden / 0 / 0 | 0 / 0 / 0 |",
    ]
    assert "3 cells, 2 of the latest run: 30 messages, 2 reconnections. In all of them: 0 lost." in both
    assert "In all of them: 3 lost." in old
    assert part([], both) == both, "with no new record nothing changes"


def test_a_cell_without_a_record_says_why() -> None:
    """No transactions; no test of it; a test that was not run. They are read again as what they are."""
    pairs = ("amqp-rabbitmq", "amqp-rabbitmq, asyncio", "amqp-artemis, deduplicate_sends", "stomp-stored")
    kept = part([record("half open", pair) for pair in pairs[:2]])
    lines = [record("cut before a commit", pairs[2]), record("the broker is killed and started again", pairs[3])]
    (_, _, *rows) = [line for line in part(lines, kept).splitlines() if line.startswith("| ")]
    assert rows == [
        "| cut before a commit | 0 / 0 / 0 | - | - |  |",
        "| half open | not run | 0 / 0 / 0 | 0 / 0 / 0 |  |",
        "| the broker is killed and started again | not run | not run |  | 0 / 0 / 0 |",
    ]
    assert "4 cells, 2 of the latest run" in part(lines, kept)


def test_what_is_impossible_is_not_tested() -> None:
    faults = (*HARMS, KILLED)
    assert [(kind.name, fault) for kind in KINDS.values() for fault in faults if impossible(kind, fault)]
    assert not any(ways(kind, fault) for kind in KINDS.values() for fault in faults if impossible(kind, fault))


def record(fault: str, pair: str, **numbers: int) -> str:
    counts: dict[str, Any] = dict.fromkeys(
        ("lost", "sent_twice", "moved_twice", "sent_in_doubt", "moved_in_doubt", "hidden"), 0
    )
    return json.dumps({"fault": fault, "pair": pair, **counts, "sent": 10, "moved": 5, "reconnected": 1, **numbers})
