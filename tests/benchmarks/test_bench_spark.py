"""What the Spark benchmarks measure with, and that they run. No time is asserted."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("proton")  # without it there are no benchmarks

from benchmarks import plan, spark_runner
from benchmarks.results import BenchmarkError

from redelivery.broker import EmbeddedBroker

ROOT = Path(__file__).parents[2]
needs_spark = pytest.mark.skipif(importlib.util.find_spec("pyspark") is None, reason="pyspark is not installed")


def progress(rows: int, began: str, latest: int, whole: int, pending: int | None = None) -> dict[str, Any]:
    offset = None if pending is None else json.dumps({"seq": 1, "pendingRows": pending})
    return {
        "numInputRows": rows,
        "timestamp": f"2026-01-01T00:00:{began}Z",
        "durationMs": {"latestOffset": latest, "addBatch": 1, "triggerExecution": whole},
        "sources": [{"latestOffset": offset}],
    }


class Query:
    def __init__(self, *shown: dict[str, Any]) -> None:
        self.recentProgress = shown


@needs_spark
def test_a_steady_speed_is_that_of_the_batches_after_the_first() -> None:
    from benchmarks.spark_session import batches, steady

    found = batches(
        Query(
            progress(1_000, "00.000", 0, 2_000),
            progress(3_000, "02.000", 10, 1_000),
            progress(3_000, "03.000", 10, 1_000),
            progress(0, "04.000", 10, 5_000),
        )
    )
    assert steady(found) == pytest.approx(3_000)


@needs_spark
def test_what_was_received_ahead_of_spark_is_not_counted_twice() -> None:
    from benchmarks.spark_session import batches, steady

    found = batches(
        Query(
            progress(3_000, "00.000", 1_000, 2_000, pending=4_000),
            progress(3_000, "02.000", 10, 1_000, pending=6_000),
            progress(3_000, "03.000", 10, 2_000, pending=3_000),
        )
    )
    assert steady(found) == pytest.approx(5_000 / 4)


@needs_spark
def test_a_trigger_that_ran_nothing_is_no_batch_and_one_batch_is_no_speed() -> None:
    from benchmarks.spark_session import batches, steady

    idle = progress(0, "00.000", 5, 10)
    del idle["durationMs"]["addBatch"]
    found = batches(Query(idle, progress(10, "01.000", 5, 10)))
    assert len(found) == 1
    with pytest.raises(BenchmarkError, match="2 are needed"):
        steady(found)


@needs_spark
def test_the_session_outside_spark_takes_each_message_into_segments(tmp_path: Path) -> None:
    from benchmarks.spark_outside import outside

    import redelivery
    from redelivery.spark.options.query import SourceOptions

    with EmbeddedBroker(name="bench-outside", stomp_port=0) as broker:
        url = broker.stomp_url
        with redelivery.connect(url) as connection, connection.session() as session:
            producer = session.producer("filled")
            for number in range(60):
                producer.send(str(number))
        options = SourceOptions.parse({"url": url, "destination": "filled", "walLocation": str(tmp_path / "wal")})
        assert outside(options, tmp_path / "segments", 60, 20) > 0
        assert broker.queue_depth("filled") == 0
    assert len(list((tmp_path / "segments").iterdir())) == 3


def test_without_pyspark_a_note_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_runner, "find_spec", lambda _: None)
    found = plan.Found()
    spark_runner.run(plan.Plan(1, 0.1, ("spark/",), fake_only=True), found)
    assert found.notes == ["Without Spark: pyspark is not installed."]
    assert not found.ran


def test_who_does_not_ask_for_spark_gets_none() -> None:
    found = plan.Found()
    spark_runner.run(plan.Plan(1, 0.1, ("stomp/fake/auto",)), found)
    assert found == plan.Found()


@needs_spark
@pytest.mark.long_form
@pytest.mark.together("Spark")
@pytest.mark.timeout(600)
def test_without_a_broker_the_batches_run_and_are_written(tmp_path: Path) -> None:
    out = tmp_path / "results.json"
    words = ("--short", "--only", "spark/fake", "--scale", "0.01", "--json", str(out))
    command = [sys.executable, "-m", "benchmarks", "--busy", *words]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=580, check=False)  # noqa: S603  fixed words
    assert run.returncode == 0, run.stderr
    results = json.loads(out.read_text(encoding="utf-8"))
    measured = {each["key"]: each["value"] for each in results["measures"]}
    assert set(measured) == {"spark-fake", "spark-messages", "spark-empty", "spark-idle"}
    assert all(value > 0 for value in measured.values())
    assert [len(curve["points"]) for curve in results["curves"]] == [1, 1]
    assert results["ran"] == ["spark/fake"]
