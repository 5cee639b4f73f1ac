"""The queue's depth in the progress, of the real brokers that know it."""

from __future__ import annotations

import logging
import pickle
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from tests.spark.managing import askers, until
from tests.spark.place import texts

import redelivery
from redelivery.spark.options.query import SourceOptions
from redelivery.spark.read.driver import DriverStreamReader
from redelivery.spark.read.executor import ExecutorStreamReader
from redelivery.testing.brokers.real import RealBroker

Reader = DriverStreamReader | ExecutorStreamReader
ALL = ReadAllAvailable()
BODIES = list("abcdefg")


@pytest.fixture
def queue() -> str:
    return f"depth-{uuid.uuid4().hex[:12]}"


def fill(broker: RealBroker, queue: str) -> None:
    with redelivery.connect(broker.amqp_url) as connection, connection.session() as session:
        for body in BODIES:
            session.producer(queue).send(body)


@contextmanager
def stream(kind: type[Reader], url: str, queue: str, folder: Path, **given: str) -> Iterator[Reader]:
    """A reader, stopped at the end as the runner does; nothing of it is left."""
    options = {"url": url, "destination": queue, "walLocation": str(folder), "pollInterval": "5 s", **given}
    reader = kind(SourceOptions.parse(options))
    try:
        yield reader
    finally:
        reader.stop()
    assert askers() == []


def depth(reader: Reader) -> Any:
    return (reader.reportLatestOffset() or {}).get("queueDepth")


def rows(reader: Reader, start: Any, end: Any) -> list[str]:
    copy: Any = pickle.loads(pickle.dumps(reader))  # noqa: S301  # our own
    return [text for partition in reader.partitions(start, end) for text in texts(copy.read(partition))]


def falls_with_what_tasks_receive(broker: RealBroker, queue: str, folder: Path) -> None:
    fill(broker, queue)
    with stream(ExecutorStreamReader, broker.amqp_url, queue, folder) as reader:
        start = reader.initialOffset()
        end = reader.latestOffset(start, ReadMaxRows(3))
        until(lambda: depth(reader) == 7)
        assert rows(reader, start, end) == BODIES[:3]
        until(lambda: depth(reader) == 4)
        last = reader.latestOffset(end, ALL)
        assert rows(reader, end, last) == BODIES[3:]
        until(lambda: depth(reader) == 0)


def is_reported_while_rows_pend(broker: RealBroker, queue: str, folder: Path) -> None:
    fill(broker, queue)
    few = {"maxPendingRows": "2", "segmentRows": "2", "prefetch": "1"}
    with stream(DriverStreamReader, broker.amqp_url, queue, folder, **few) as reader:
        start = reader.initialOffset()
        end = reader.latestOffset(start, ALL)
        until(lambda: depth(reader) in range(1, 7))  # what may not pend stays there
        reader.prepareForTriggerAvailableNow()
        found: list[str] = []
        while start != end:
            found += rows(reader, start, end)
            reader.commit(end)
            start, end = end, reader.latestOffset(end, ALL)
        assert found == BODIES
        until(lambda: depth(reader) == 0)


def test_on_artemis_it_falls_with_what_tasks_receive(artemis: RealBroker, queue: str, tmp_path: Path) -> None:
    falls_with_what_tasks_receive(artemis, queue, tmp_path)


def test_on_broker_j_it_falls_with_what_tasks_receive(qpid: RealBroker, queue: str, tmp_path: Path) -> None:
    falls_with_what_tasks_receive(qpid, queue, tmp_path)


def test_on_artemis_it_is_reported_while_rows_pend(artemis: RealBroker, queue: str, tmp_path: Path) -> None:
    is_reported_while_rows_pend(artemis, queue, tmp_path)


def test_on_broker_j_it_is_reported_while_rows_pend(qpid: RealBroker, queue: str, tmp_path: Path) -> None:
    is_reported_while_rows_pend(qpid, queue, tmp_path)


def test_on_artemis_a_queue_of_another_address_has_its_own(artemis: RealBroker, queue: str, tmp_path: Path) -> None:
    place = f"{queue}.news::{queue}"
    fill(artemis, place)
    with stream(ExecutorStreamReader, artemis.amqp_url, place, tmp_path) as reader:
        reader.latestOffset(reader.initialOffset(), ALL)
        until(lambda: depth(reader) == 7)


def test_on_artemis_a_user_who_may_not_manage_reads_without_it(
    artemis: RealBroker, queue: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fill(artemis, queue)
    user = {"user": "restricted", "password": "restricted"}
    with (
        caplog.at_level(logging.WARNING, "redelivery"),
        stream(DriverStreamReader, artemis.amqp_url, queue, tmp_path, **user) as reader,
    ):
        start = reader.initialOffset()
        reader.prepareForTriggerAvailableNow()
        end = reader.latestOffset(start, ALL)
        until(lambda: askers() == [])
        assert rows(reader, start, end) == BODIES
        reader.commit(end)
        report = reader.reportLatestOffset()
    assert report is not None
    assert report["received"] == 7
    assert "queueDepth" not in report
    (said,) = [each.getMessage() for each in caplog.records]
    assert "no queueDepth" in said
    assert queue in said
