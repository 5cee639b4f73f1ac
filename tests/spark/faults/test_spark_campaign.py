"""Random events on real Spark and real brokers, with our sender and with another client's: see `campaign`."""

from __future__ import annotations

import pytest
from tests.conformance.pairs import Kind
from tests.spark.faults.cases import Case
from tests.spark.faults.jobs import Jobs
from tests.spark.faults.report import Result, add
from tests.spark.faults.stage import Stage


@pytest.mark.timeout(5400)
def test_nothing_is_lost_and_nothing_is_there_twice(kind: Kind, played: Case, stage: Stage, jobs: Jobs) -> None:
    try:
        seen = played.play(stage)
        verdict = stage.verdict()
    except BaseException as error:
        add(Result.failed(kind.name, played.name, error))
        jobs.drop(played.master)  # it may be in any state
        raise
    add(Result.of(kind.name, played.name, verdict, seen))
    assert verdict.clean, f"{verdict}; seen: {seen}"
