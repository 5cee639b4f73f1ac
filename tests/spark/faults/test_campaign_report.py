"""The part of docs/spark-faults.md about campaigns: of the records, and it stays when the rest is written anew."""

from __future__ import annotations

import json
from dataclasses import asdict

from tests.spark.faults.campaign_report import campaigns_of, with_campaigns
from tests.spark.faults.report import Result


def record(sender: str, rows: int, problem: str = "", run: str = "now") -> str:
    case = f"campaign: lanes: {sender}"
    seen = "" if problem else "all: 1, lane: kill: 2; the query began 3 times"
    return json.dumps(asdict(Result("stomp-rabbitmq", case, 9, rows, 9 - rows, 0, 0, 0, 1, seen, problem, run)))


def test_a_row_for_each_cell_with_the_sum_of_its_parts() -> None:
    parts = [record("ours", 8), record("foreign", 0, "HungError: no\nanswer"), record("ours", 9, run="later")]
    page = with_campaigns("# Faults\n", parts)
    rows = [line for line in page.splitlines() if line.startswith("| stomp-")]
    assert rows == [
        "| stomp-rabbitmq | lanes | foreign | 0 | 9 | 0 | 9 | 0 | 1 | a part did not end: HungError: no answer | now |",
        "| stomp-rabbitmq | lanes | ours | 6 | 18 | 17 | 1 | 0 | 2 | all: 2, lane: kill: 4 | now, later |",
    ]
    assert with_campaigns(page, parts).count("## Random events") == 1
    assert campaigns_of("# Faults\n") == ""
    assert "# Faults\n" + campaigns_of(page) == page
