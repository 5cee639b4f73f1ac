"""What both receivers say in a query's progress, what Prometheus gets of it, and that the alerts ask for that."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
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
