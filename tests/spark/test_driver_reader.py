"""`receiver=driver` without Spark: the calls that Spark makes, in its order, on an embedded broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows
from tests.spark.place import Place
from tests.spark.streams import ALL, drained, given_up_for_dead, readers, rows

from redelivery import ConfigError, ConnectError, JMSError
from redelivery.model.passport import read_passport
from redelivery.spark.log.damage import DataLossError
from redelivery.spark.log.wal import FencedError
from redelivery.spark.read.attempts import BatchFailedError
from redelivery.spark.read.driver import DriverStreamReader

Made = Callable[..., DriverStreamReader]

pytestmark = pytest.mark.in_turns("place")  # of what the receiver asks of a protocol: test_batch_receiver.py


@pytest.fixture
def reader(place: Place) -> Iterator[Made]:
    with readers(DriverStreamReader, place) as made:
        yield made


def test_a_batch_is_received_read_and_committed(place: Place, reader: Made) -> None:
    place.send("a", "b", "c")
    stream = reader()
    start = stream.initialOffset()
    stream.prepareForTriggerAvailableNow()
    end = stream.latestOffset(start, stream.getDefaultReadLimit())
    assert rows(stream, start, end) == ["a", "b", "c"]
    assert place.left() == []
    assert rows(stream, start, end) == ["a", "b", "c"]  # a second action
    stream.commit(end)
    report = stream.reportLatestOffset()
    assert report is not None
    assert (report["received"], report["pendingRows"], report["connections"]) == (3, 0, 1)


def test_nothing_new_is_the_offset_that_was(reader: Made) -> None:
    stream = reader(pollInterval="100 ms")
    start = stream.initialOffset()
    assert stream.latestOffset(start, ALL) == start
    assert stream.partitions(start, start) == []


def test_a_batch_has_no_more_rows_than_spark_allows(place: Place, reader: Made) -> None:
    place.send(*map(str, range(100)))
    stream = reader(segmentRows=10)
    start = stream.initialOffset()
    stream.prepareForTriggerAvailableNow()
    sizes = []
    while (end := stream.latestOffset(start, ReadMaxRows(25))) != start:
        sizes.append(len(rows(stream, start, end)))
        start = end
    assert sum(sizes) == 100
    assert max(sizes) <= 25


def test_all_come_in_order_in_partitions_of_neighbours(place: Place, reader: Made) -> None:
    expected = [f"{number:03}" for number in range(100)]
    place.send(*expected)
    stream = reader(segmentRows=10, numPartitions=3)
    start = stream.initialOffset()
    stream.prepareForTriggerAvailableNow()
    end = stream.latestOffset(start, ALL)
    assert len(stream.partitions(start, end)) == 3
    assert rows(stream, start, end) == expected


def test_a_restart_reads_the_planned_batch_again_without_the_broker(place: Place, reader: Made) -> None:
    place.send("a", "b")
    stream = reader()
    start = stream.initialOffset()
    stream.prepareForTriggerAvailableNow()
    end = stream.latestOffset(start, ALL)
    stream.stop()
    again = reader(numPartitions=4, segmentRows=1)
    place.broker.close()
    assert rows(again, start, end) == ["a", "b"]


def test_a_new_checkpoint_begins_behind_what_was_committed(place: Place, reader: Made) -> None:
    place.send("a")
    stream = reader()
    _, end = drained(stream, stream.initialOffset())
    place.send("b")  # received, and read by nobody
    assert stream.latestOffset(end, ALL) != end
    stream.stop()
    again = reader()
    assert drained(again, again.initialOffset())[0] == ["b"]


def test_what_is_in_no_segment_goes_back(place: Place, reader: Made) -> None:
    place.send("a")
    stream = reader()
    drained(stream, stream.initialOffset())
    stream.stop()
    stream.stop()
    place.send("b")
    assert place.left() == ["b"]


def test_a_crash_before_the_commit_brings_no_row_twice(place: Place, reader: Made) -> None:
    place.send("a", "b")
    stream = reader()
    start = stream.initialOffset()
    place.broker.faults.drop("COMMIT")
    found, _ = drained(stream, start)
    assert found == ["a", "b"]
    assert place.left() == []
    report = stream.reportLatestOffset()
    assert report is not None
    assert (report["inDoubt"], report["duplicates"], report["connections"]) == (1, 2, 2)


def test_the_older_of_two_queries_on_one_folder_is_fenced(place: Place, reader: Made) -> None:
    place.send("a")
    older, newer = reader(), reader()
    older.prepareForTriggerAvailableNow()
    end = older.latestOffset(older.initialOffset(), ALL)
    given_up_for_dead(older)
    taken = newer.latestOffset(newer.initialOffset(), ALL)
    assert rows(newer, newer.initialOffset(), taken) == ["a"]
    with pytest.raises(FencedError, match="process"):
        older.commit(end)
    older.stop()
    place.send("b")
    assert drained(newer, taken)[0] == ["b"]


def test_an_offset_of_another_folder_is_refused(reader: Made, tmp_path: Path) -> None:
    offset = reader().initialOffset()
    other = reader(walLocation=tmp_path / "other")
    with pytest.raises(ConfigError, match="other"):
        other.latestOffset(offset, ALL)


def test_a_broker_that_stays_away_fails_the_query(place: Place, reader: Made) -> None:
    place.broker.close()
    stream = reader(maxReconnectTime="500 ms")
    start = stream.initialOffset()
    stream.prepareForTriggerAvailableNow()  # it waits until the queue is empty, which nobody can say
    with pytest.raises(ConnectError, match="maxReconnectTime"):
        stream.latestOffset(start, ALL)


def test_the_time_of_available_now_is_limited(place: Place, reader: Made) -> None:
    place.send("a")
    stream = reader(availableNowMaxTime="100 ms", availableNowIdle="1 h")
    found, _ = drained(stream, stream.initialOffset())
    assert found in ([], ["a"])


def test_a_lost_segment_fails_the_query_or_is_left_out(place: Place, reader: Made, tmp_path: Path) -> None:
    place.send("a")
    stream = reader()
    start = stream.initialOffset()
    stream.prepareForTriggerAvailableNow()
    end = stream.latestOffset(start, ALL)
    stream.stop()
    (segment,) = (tmp_path / "seg").glob("*.arrow")
    segment.unlink()
    with pytest.raises(DataLossError, match="failOnDataLoss"):
        rows(reader(), start, end)
    assert rows(reader(failOnDataLoss="false"), start, end) == []


def test_no_more_is_received_than_may_be_pending(place: Place, reader: Made) -> None:
    place.send(*map(str, range(100)))
    stream = reader(segmentRows=10, maxPendingRows=20, maxMessagesPerBatch=10, prefetch=1)
    start = stream.initialOffset()
    end = stream.latestOffset(start, ReadMaxRows(10))
    for _ in range(5):
        stream.latestOffset(end, ReadMaxRows(0))
    report = stream.reportLatestOffset()
    assert report is not None
    assert report["uncommittedRows"] <= 40  # one segment may be on its way when the limit is met
    assert drained(stream, start)[0] == [str(number) for number in range(100)]


def planned(stream: DriverStreamReader, start: Any, end: Any, times: int) -> list[str]:
    """Spark plans the batch once more with each start of the query."""
    return [rows(stream, start, end) for _ in range(times)][-1]


def test_a_batch_that_always_fails_ends_the_query(place: Place, reader: Made) -> None:
    place.send("a")
    stream = reader(maxBatchAttempts=2)
    start = stream.initialOffset()
    stream.prepareForTriggerAvailableNow()
    end = stream.latestOffset(start, ALL)
    assert planned(stream, start, end, 2) == ["a"]
    with pytest.raises(BatchFailedError, match="maxBatchAttempts=2"):
        rows(stream, start, end)


def test_a_batch_that_always_fails_can_be_dead_lettered(place: Place, reader: Made) -> None:
    place.send("a", "b", properties={"kind": "test"}, correlation_id="c1")
    stream = reader(maxBatchAttempts=2, onBatchFailure="deadLetter", segmentRows=1)
    start = stream.initialOffset()
    stream.prepareForTriggerAvailableNow()
    end = stream.latestOffset(start, ALL)
    assert planned(stream, start, end, 2) == ["a", "b"]
    assert planned(stream, start, end, 2) == []
    dead = place.broker.messages("ActiveMQ.DLQ")
    assert [(each.body, each.correlation_id) for each in dead] == [("a", "c1"), ("b", "c1")]
    assert dead[0].properties["kind"] == "test"
    assert "maxBatchAttempts=2" in str(dead[0].properties["dlqDeliveryFailureCause"])
    assert dead[0].properties["originalDestination"] == "queue://orders"
    passport = read_passport(dead[0].properties["dlqPassport"])
    assert passport is not None
    assert (passport.policy, passport.fingerprint) == ("maxBatchAttempts=2", None)
    place.send("c")
    assert drained(stream, end)[0] == ["c"]


@pytest.mark.timeout(120)
def test_lanes_are_processes_that_share_the_queue(place: Place, reader: Made) -> None:
    expected = [f"{number:04}" for number in range(2000)]
    place.send(*expected)
    stream = reader(lanes=2, segmentRows=100, prefetch=10, availableNowIdle="2 s")
    found, _ = drained(stream, stream.initialOffset())
    assert sorted(found) == expected
    report = stream.reportLatestOffset()
    assert report is not None
    assert (report["received"], report["connections"], place.left()) == (2000, 2, [])


@pytest.mark.timeout(120)
def test_what_ends_a_lane_ends_the_query(place: Place, reader: Made) -> None:
    place.send("a")
    stream = reader(lanes=2, badMessages="fail", converter="tests.spark.place:nothing_is_good")
    start = stream.initialOffset()
    stream.prepareForTriggerAvailableNow()
    with pytest.raises(JMSError, match="badMessages=fail"):
        stream.latestOffset(start, ALL)
