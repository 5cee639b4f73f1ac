"""Every fault of `cases`, played on real Spark: nothing is lost, nothing is in the table twice.

`make test` plays nine of them on the embedded broker, `make test-all` all that are marked for it;
``REDELIVERY_SPARK_FAULTS=stomp-activemq,amqp-qpid`` plays all of them on real ones, and `scripts/spark-report` writes
docs/spark-faults.md from that.
"""

from __future__ import annotations

import pytest
from tests.conformance.pairs import Kind
from tests.spark.faults import brokers, damage, disks, kills, queries, zombies
from tests.spark.faults.cases import CASES, FIRST, Case
from tests.spark.faults.jobs import Jobs
from tests.spark.faults.report import Result, add
from tests.spark.faults.stage import Stage

MODULES = (brokers, damage, disks, kills, queries, zombies)  # each has filled CASES when it was imported


@pytest.mark.timeout(900)
def test_nothing_is_lost_and_nothing_is_there_twice(kind: Kind, played: Case, stage: Stage, jobs: Jobs) -> None:
    try:
        seen = played.play(stage)
        verdict = stage.verdict()
        assert verdict.clean, f"{verdict}; seen: {seen}"
    except BaseException as error:
        add(Result.failed(kind.name, played.name, error))
        jobs.drop(played.master)  # it may be in any state
        raise
    add(Result.of(kind.name, played.name, verdict, seen))


def test_the_short_form_has_cases_of_both_receivers() -> None:
    assert {case.receiver for case in CASES.values() if case.short} == {"driver", "executor"}
    assert {CASES[name].receiver for name in FIRST if CASES[name].short} == {"driver", "executor"}
    assert [name for name in FIRST if not CASES[name].short] == []
