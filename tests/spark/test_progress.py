"""What both receivers say in a query's progress, what Prometheus gets of it, and that the alerts ask for that."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic, sleep
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry, generate_latest
from tests.spark.place import Place
from tests.spark.streams import ALL, readers, rows

from redelivery.broker import EmbeddedBroker
from redelivery.spark.listener import COUNTERS, GAUGES, PrometheusListener
from redelivery.spark.read.driver import DriverStreamReader
from redelivery.spark.read.executor import ExecutorStreamReader

ALERTS = Path(__file__).parents[2] / "docs" / "spark" / "alerts.yml"


@pytest.fixture(params=["driver", "executor"])
def make(broker: EmbeddedBroker, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    kind: Any = DriverStreamReader if request.param == "driver" else ExecutorStreamReader
    with readers(kind, Place(broker, tmp_path, "stomp"), receiver=request.param) as made:
        yield made


def test_both_receivers_count(broker: EmbeddedBroker, tmp_path: Path, make: Callable[..., Any]) -> None:
    place = Place(broker, tmp_path, "stomp")
    place.send("a", "bad", "c")
    reader = make(converter="tests.spark.place:shout", badMessages="deadLetter")
    start, found = reader.initialOffset(), list[str]()
    while len(found) < 2:
        end = reader.latestOffset(start, ALL)
        found += rows(reader, start, end)
        start = end
    assert reader.latestOffset(start, ALL) == start
    report = reader.reportLatestOffset()
    assert (report["received"], report["deadLetters"]) == (3, 1)
    assert (report["duplicates"], report["dropped"], report["inDoubt"], report["lostSegments"]) == (0, 0, 0, 0)
    assert 0 < report["uncommittedRows"] <= 2
    assert report["uncommittedBytes"] > 200
    reader.commit(start)
    report = reader.reportLatestOffset()
    assert (report["uncommittedRows"], report["uncommittedBytes"]) == (0, 0)
    assert report["received"] == 3


def test_what_a_run_before_has_received_is_counted(
    broker: EmbeddedBroker, tmp_path: Path, make: Callable[..., Any]
) -> None:
    """With the checkpoint that knows the batch, and with a new one."""
    place = Place(broker, tmp_path, "stomp")
    place.send("a", "b")
    reader = make(availableNowIdle="1 s")
    reader.prepareForTriggerAvailableNow()
    start = reader.initialOffset()
    end = reader.latestOffset(start, ALL)
    assert rows(reader, start, end) == ["a", "b"]
    reader.stop()
    for known in (True, False):
        again = make()
        if known and isinstance(again, ExecutorStreamReader):
            again.partitions(start, end)  # which is all that Spark asks for until the batch is done
        else:
            assert again.latestOffset(again.initialOffset(), ALL)["seq"] == end["seq"]
        report = again.reportLatestOffset()
        assert (report["uncommittedRows"], report["pendingRows"]) == (2, 0)
        assert report["uncommittedBytes"] > 200
        again.stop()


@pytest.mark.together("spark")
@pytest.mark.timeout(200)
def test_the_listener_hears_a_real_query(spark: Any, broker: EmbeddedBroker, tmp_path: Path) -> None:
    """Its numbers while it runs; forgotten when it is stopped, and kept when it has failed."""
    registry = CollectorRegistry()
    listener = PrometheusListener(registry)
    place = Place(broker, tmp_path / "wal", "stomp")
    labels = {"query": "heard", "source": "0"}

    def broken(batch: Any, _: int) -> None:
        if batch.filter("string(body) = 'bad'").count():
            raise ValueError("this batch cannot be written")

    def said(name: str, **of: str) -> float | None:
        return registry.get_sample_value(f"redelivery_spark_{name}", of)

    def start() -> Any:
        options = {"url": place.url, "destination": "orders", "walLocation": str(place.folder), "linger": "50 ms"}
        stream = spark.readStream.format("jms").options(**options).load()
        writer = stream.writeStream.queryName("heard").foreachBatch(broken)
        return writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()

    spark.streams.addListener(listener)
    try:
        query = start()
        place.send("a", "b", "c")
        until(lambda: said("received_total", **labels) == 3)
        assert (said("lost_segments_total", **labels), said("running", query="heard")) == (0, 1)
        assert (said("last_progress_timestamp_seconds", query="heard") or 0) > 1.7e9
        query.stop()
        until(lambda: said("running", query="heard") is None)
        assert said("received_total", **labels) is None
        query = start()
        place.send("bad")
        until(lambda: said("running", query="heard") == 0)
        assert not query.isActive
    finally:
        spark.streams.removeListener(listener)


def until(done: Callable[[], bool]) -> None:
    end = monotonic() + 60
    while not done():
        assert monotonic() < end, "it has not come within a minute"
        sleep(0.05)


def event(run: str, offset: object, **more: Any) -> Any:
    source = SimpleNamespace(latestOffset=json.dumps(offset))
    progress = SimpleNamespace(runId=run, id="7", name="orders", sources=[source], **more)
    return SimpleNamespace(runId=run, id="7", name="orders", progress=progress, exception=None, **more)


def test_the_listener_gives_prometheus_the_last_numbers() -> None:
    registry = CollectorRegistry()
    listener = PrometheusListener(registry)
    said = {"v": 1, "wal": "x", "seq": 3, **{key: number for number, key in enumerate((*COUNTERS, *GAUGES), 1)}}
    listener.onQueryStarted(event("r", {}))
    listener.onQueryProgress(event("r", said))
    for key, (metric, _) in (COUNTERS | GAUGES).items():
        total = "_total" if key in COUNTERS else ""
        labels = {"query": "orders", "source": "0"}
        assert registry.get_sample_value(f"redelivery_spark_{metric}{total}", labels) == said[key]
    assert registry.get_sample_value("redelivery_spark_running", {"query": "orders"}) == 1
    failed = event("r", {})
    failed.exception = "boom"
    listener.onQueryTerminated(failed)
    assert registry.get_sample_value("redelivery_spark_running", {"query": "orders"}) == 0
    listener.onQueryStarted(event("again", {}))
    assert registry.get_sample_value("redelivery_spark_running", {"query": "orders"}) == 1
    listener.onQueryTerminated(event("again", {}))
    assert "orders" not in generate_latest(registry).decode()


@pytest.mark.parametrize("offset", [{"partition": 1}, 5, None, [1], "text"])
def test_sources_of_others_are_left_alone(offset: object) -> None:
    registry = CollectorRegistry()
    PrometheusListener(registry).onQueryProgress(event("r", offset))
    assert registry.get_sample_value("redelivery_spark_received_total", {"query": "orders", "source": "0"}) is None


def test_the_alerts_ask_for_metrics_that_there_are() -> None:
    registry = CollectorRegistry()
    listener = PrometheusListener(registry)
    listener.onQueryProgress(event("r", {"v": 1, "wal": "x", **dict.fromkeys((*COUNTERS, *GAUGES), 1)}))
    given = set(re.findall(r"^(redelivery_\w+)\{", generate_latest(registry).decode(), re.MULTILINE))
    rules = [each for group in yaml.safe_load(ALERTS.read_text(encoding="utf-8"))["groups"] for each in group["rules"]]
    asked = {name for each in rules for name in re.findall(r"redelivery_\w+", each["expr"])}
    assert len(rules) >= 7
    assert asked <= given
    assert all(each["annotations"]["summary"] for each in rules)
