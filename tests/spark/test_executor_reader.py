"""`receiver=executor` without Spark: the calls that Spark makes, in its order, on an embedded broker."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows
from tests.spark.place import QUEUE, Place, texts
from tests.spark.streams import ALL, drained, given_up_for_dead, pickled, readers, rows

import redelivery
from redelivery import ConfigError, ConnectError
from redelivery.spark.log.store.interface import Tombstone
from redelivery.spark.log.wal import FencedError, Wal
from redelivery.spark.read.attempts import BatchFailedError
from redelivery.spark.read.executor import ExecutorStreamReader

Made = Callable[..., ExecutorStreamReader]

pytestmark = pytest.mark.in_turns("place")  # of what the receiver asks of a protocol: test_batch_receiver.py


@pytest.fixture
def reader(place: Place) -> Iterator[Made]:
    with readers(ExecutorStreamReader, place, receiver="executor") as made:
        yield made


def test_a_batch_is_received_where_it_is_read(place: Place, reader: Made) -> None:
    place.send("a", "b", "c")
    stream = reader()
    start = stream.initialOffset()
    end = stream.latestOffset(start, stream.getDefaultReadLimit())
    assert place.left() == ["a", "b", "c"]
    assert rows(stream, start, end) == ["a", "b", "c"]
    assert place.left() == []
    assert rows(stream, start, end) == ["a", "b", "c"]  # a second action
    stream.commit(end)


def test_nothing_there_is_no_batch(reader: Made) -> None:
    stream = reader(pollInterval="100 ms")
    start = stream.initialOffset()
    assert stream.latestOffset(start, ALL) == start
    assert stream.partitions(start, start) == []


def test_tasks_share_the_batch(place: Place, reader: Made) -> None:
    expected = [f"{number:03}" for number in range(100)]
    place.send(*expected)
    stream = reader(numPartitions=3)
    start = stream.initialOffset()
    end = stream.latestOffset(start, ReadMaxRows(50))
    assert [share.quota for share in stream.partitions(start, end)] == [17, 17, 16]
    found = rows(stream, start, end)
    assert found == expected[:50]
    rest, _ = drained(stream, end, ReadMaxRows(50))
    assert sorted(found + rest) == expected
    assert place.left() == []


def test_the_plan_of_a_batch_outlives_its_options(place: Place, reader: Made) -> None:
    place.send(*"abcd")
    stream = reader(numPartitions=2)
    start = stream.initialOffset()
    end = stream.latestOffset(start, ReadMaxRows(4))
    first, second = stream.partitions(start, end)
    assert texts(pickled(stream).read(first)) == ["a", "b"]
    stream.stop()
    again = reader(numPartitions=1, maxMessagesPerBatch=1)
    assert rows(again, start, end) == ["a", "b", "c", "d"]
    assert (second.seq, second.part) == (1, 1)


def test_a_crash_before_the_commit_brings_no_row_twice(place: Place, reader: Made) -> None:
    place.send("a", "b")
    stream = reader()
    place.broker.faults.drop("COMMIT")
    found, _ = drained(stream, stream.initialOffset())
    assert found == ["a", "b"]
    assert place.left() == []


def test_a_task_that_fails_releases_what_it_has(place: Place, reader: Made) -> None:
    place.send("a", "b")
    stream = reader(badMessages="fail", converter="tests.spark.place:shout")
    start = stream.initialOffset()
    end = stream.latestOffset(start, ALL)
    place.send("bad")
    (share,) = stream.partitions(start, end)
    with pytest.raises(Exception, match="badMessages=fail"):
        texts(pickled(stream).read(share))
    assert place.left() == ["a", "b", "bad"]


def test_an_attempt_that_comes_too_late_is_fenced(place: Place, reader: Made) -> None:
    stream = reader()
    place.send("a")
    start = stream.initialOffset()
    end = stream.latestOffset(start, ALL)
    (share,) = stream.partitions(start, end)
    stream.commit(end)  # as after limit(): nobody has read it
    with pytest.raises((Tombstone, FencedError)):
        texts(pickled(stream).read(share))
    assert place.left() == ["a"]
    assert drained(stream, end)[0] == ["a"]


def test_the_older_of_two_queries_on_one_folder_is_fenced(place: Place, reader: Made) -> None:
    place.send("a")
    older, newer = reader(), reader()
    start = older.initialOffset()
    end = older.latestOffset(start, ALL)
    (share,) = older.partitions(start, end)
    given_up_for_dead(older)
    newer.latestOffset(newer.initialOffset(), ALL)
    with pytest.raises(FencedError, match="process"):
        texts(pickled(older).read(share))
    with pytest.raises(FencedError, match="process"):
        older.commit(end)
    assert place.left() == ["a"]


def test_an_executor_that_does_not_see_the_folder_says_so(place: Place, reader: Made, tmp_path: Path) -> None:
    place.send("a")
    stream = reader()
    start = stream.initialOffset()
    (share,) = stream.partitions(start, stream.latestOffset(start, ALL))
    elsewhere = ExecutorStreamReader(place.options(receiver="executor", walLocation=tmp_path / "elsewhere"))
    with pytest.raises(ConfigError, match="same folder on all hosts"):
        texts(elsewhere.read(share))
    assert place.left() == ["a"]


def test_a_checkpoint_of_the_other_receiver_is_refused(place: Place, reader: Made) -> None:
    stream = reader()
    offset = {"v": 1, "wal": stream.initialOffset()["wal"], "seq": 3}
    with pytest.raises(ConfigError, match="receiver=driver"):
        stream.latestOffset(offset, ALL)
    assert place.left() == []


def test_a_broker_that_stays_away_fails_the_query(place: Place, reader: Made) -> None:
    place.broker.close()
    stream = reader(maxReconnectTime="500 ms")
    with pytest.raises(ConnectError, match="maxReconnectTime"):
        stream.latestOffset(stream.initialOffset(), ALL)


def test_a_batch_that_always_fails(place: Place, reader: Made) -> None:
    place.send("a", "b")
    failing = reader(maxBatchAttempts=1)
    start = failing.initialOffset()
    end = failing.latestOffset(start, ALL)
    assert rows(failing, start, end) == ["a", "b"]
    with pytest.raises(BatchFailedError, match="maxBatchAttempts=1"):
        rows(failing, start, end)
    failing.stop()
    assert rows(reader(maxBatchAttempts=1, onBatchFailure="deadLetter"), start, end) == []
    assert place.left("ActiveMQ.DLQ") == ["a", "b"]


def test_what_another_query_left_unread_is_read(place: Place, reader: Made) -> None:
    place.send(*"abcd")
    stream = reader(numPartitions=4)
    start = stream.initialOffset()
    end = stream.latestOffset(start, ReadMaxRows(4))
    assert rows(stream, start, end) == ["a", "b", "c", "d"]
    stream.stop()  # and its checkpoint is gone
    place.send("e")
    again = reader(numPartitions=2, maxMessagesPerBatch=2)
    found, _ = drained(again, again.initialOffset())
    assert found == ["a", "b", "c", "d", "e"]


def test_what_a_fenced_task_has_published_beyond_the_newer_plan_comes_again(
    place: Place, reader: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.send(*"abcd")
    older, newer = reader(numPartitions=2), reader()
    start = older.initialOffset()
    _, share = older.partitions(start, older.latestOffset(start, ReadMaxRows(4)))
    plans: list[Any] = []
    publish = Wal.publish

    def late(wal: Wal, seq: int, part: int, data: bytes) -> bool:
        monkeypatch.undo()
        given_up_for_dead(older)
        plans.append(newer.initialOffset())
        plans.append(newer.latestOffset(plans[0], ALL))
        return publish(wal, seq, part, data)

    monkeypatch.setattr(Wal, "publish", late)
    with pytest.raises(FencedError, match="another query"):
        texts(pickled(older).read(share))
    found = rows(newer, *plans)
    newer.commit(plans[1])
    assert sorted(found + drained(newer, plans[1])[0]) == ["a", "b", "c", "d"]


def test_available_now_looks_again_after_a_run_that_ended_with_nothing(place: Place, reader: Made) -> None:
    place.send("a")
    stream = reader()
    start = stream.initialOffset()
    end = stream.latestOffset(start, ALL)
    with redelivery.connect(place.url) as connection, connection.session() as session:
        assert session.consumer(QUEUE).receive(timeout=5) is not None  # another consumer was first
    assert rows(stream, start, end) == []
    stream.commit(end)
    stream.stop()
    place.send("b")
    assert drained(reader(), end)[0] == ["b"]


def test_available_now_waits_for_a_broker_that_is_slow_to_push(place: Place, reader: Made) -> None:
    place.send("a")
    stream = reader(availableNowIdle="20 s")
    start = stream.initialOffset()
    stream.prepareForTriggerAvailableNow()
    end = stream.latestOffset(start, ALL)
    with redelivery.connect(place.url) as connection:
        session = connection.session("transacted")
        assert session.consumer(QUEUE).receive(timeout=5) is not None  # what is held is not pushed
        release = threading.Timer(0.4, session.close)
        release.start()
        assert rows(stream, start, end) == ["a"]  # long before 20 s
        release.join()
