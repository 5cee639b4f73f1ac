"""The part of docs/spark-faults.md about campaigns: of the records, and it stays when the rest is written anew."""

from __future__ import annotations

import json
from dataclasses import asdict

from tests.spark.faults.campaign_report import campaigns_of, with_campaigns
from tests.spark.faults.report import Result


def record(sender: str, rows: int, problem: str = "") -> str:
    case = f"campaign: lanes: {sender}"
    return json.dumps(
        asdict(Result("stomp-rabbitmq", case, 9, rows, 9 - rows, 0, 0, 0, 1, "lane: kill: 2", problem, "now"))
    )


def test_a_row_for_each_cell_with_what_became_of_it_last() -> None:
    page = with_campaigns(
        "# Faults\n", [record("ours", 8), record("foreign", 0, "HungError: no answer"), record("ours", 9)]
    )
    rows = [line for line in page.splitlines() if line.startswith("| stomp-")]
    assert rows == [
        "| stomp-rabbitmq | lanes | foreign | 9 | 0 | 9 | 0 | 1 | did not end: HungError: no answer | now |",
        "| stomp-rabbitmq | lanes | ours | 9 | 9 | 0 | 0 | 1 | lane: kill: 2 | now |",
    ]
    assert with_campaigns(page, [record("ours", 9)]).count("## Random events") == 1
    assert campaigns_of("# Faults\n") == ""
    assert "# Faults\n" + campaigns_of(page) == page
