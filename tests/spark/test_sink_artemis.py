"""What a repeated task does on the real Artemis, which knows by an id what it has committed."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from pyspark.sql.types import MapType, StringType, StructField, StructType
from tests.faults.proxy import Cut, Proxy

import redelivery
from redelivery import InDoubtError, Message
from redelivery.spark.options.query import SinkOptions
from redelivery.spark.write.rows import DEDUPE_ID
from redelivery.spark.write.task import TaskCommit
from redelivery.spark.write.writers import BatchWriter
from redelivery.testing.brokers.real import RealBroker

SCHEMA = StructType([StructField("body", StringType()), StructField("properties", MapType(StringType(), StringType()))])

# "settled, accepted": the answer to a discharge. A send in a transaction is settled with its transactional state, and
# the next transaction is declared before, so that a cut there would leave open whether the commit is done by now.
DISCHARGED = b"\x41\x00\x53\x24"


class _Task:
    def get(self) -> _Task:
        return self

    def partitionId(self) -> int:
        return 0

    def getLocalProperty(self, _name: str) -> None:
        return None


@pytest.fixture(autouse=True)
def task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redelivery.spark.write.task.TaskContext", _Task())


@pytest.fixture
def queue() -> str:
    return f"sink-{uuid.uuid4().hex[:12]}"


def _writer(artemis: RealBroker, queue: str, **given: str) -> BatchWriter:
    return BatchWriter(SinkOptions.parse({"url": artemis.amqp_url, "destination": queue, **given}), SCHEMA)


def _rows(*bodies: str, **properties: str) -> Iterator[Any]:
    pairs = pa.array([list(properties.items())] * len(bodies), pa.map_(pa.string(), pa.string()))
    yield pa.RecordBatch.from_arrays([pa.array(bodies), pairs], names=["body", "properties"])


def _take(artemis: RealBroker, queue: str) -> list[Message]:
    """All that the queue holds; it stays empty."""
    with redelivery.connect(artemis.amqp_url) as connection, connection.session() as session:
        consumer = session.consumer(queue)
        found = []
        while (message := consumer.receive(timeout=1)) is not None:
            found.append(message)
        return found


def test_a_task_that_was_committed_before_succeeds_and_sends_nothing(
    artemis: RealBroker, queue: str, caplog: pytest.LogCaptureFixture
) -> None:
    writer = _writer(artemis, queue, jobId="load")
    assert writer.write(_rows("a", "b", "c")) == TaskCommit(0, 3, 3)
    with caplog.at_level(logging.WARNING, "redelivery.spark.write.task"):
        assert writer.write(_rows("a", "b", "c")) == TaskCommit(0, 3, 3, repeated=True)
    assert "an earlier attempt has committed these 3 rows" in caplog.text
    messages = _take(artemis, queue)
    assert [message.body for message in messages] == ["a", "b", "c"]
    assert [message.properties[DEDUPE_ID] for message in messages] == ["load-0-0", "load-0-1", "load-0-2"]


def test_the_broker_knows_it_when_everything_was_consumed_meanwhile(artemis: RealBroker, queue: str) -> None:
    writer = _writer(artemis, queue, jobId="load")
    writer.write(_rows("a", "b"))
    with redelivery.connect(artemis.amqp_url) as connection, connection.session() as session:
        consumer = session.consumer(queue)
        assert len(consumer.receive_many(2, 5)) == 2
        assert writer.write(_rows("a", "b")).repeated
        assert consumer.receive(timeout=1) is None


def test_an_attempt_whose_answer_was_lost_is_repeated_and_nothing_is_sent_twice(
    artemis: RealBroker, queue: str
) -> None:
    url = urlsplit(artemis.amqp_url)
    with Proxy(url.hostname or "", url.port or 0) as proxy:

        def cut_at_the_end() -> Iterator[Any]:
            yield from _rows("a", "b")
            proxy.cut(Cut(DISCHARGED, "down", after=b"\x00\x53\x32"))
            yield from _rows("c")

        options = SinkOptions.parse({"url": f"amqp://127.0.0.1:{proxy.port}", "destination": queue, "jobId": "load"})
        writer = BatchWriter(options, SCHEMA)
        with pytest.raises(InDoubtError, match=r"whether the 3 rows .* sends them only if this one did not"):
            writer.write(cut_at_the_end())
        assert proxy.happened.wait(10)
        assert writer.write(_rows("a", "b", "c")) == TaskCommit(0, 3, 3, repeated=True)
    assert [message.body for message in _take(artemis, queue)] == ["a", "b", "c"]


def test_an_attempt_that_failed_does_not_hinder_the_next(artemis: RealBroker, queue: str) -> None:
    def failing() -> Iterator[Any]:
        yield from _rows("a", "b")
        raise RuntimeError("upstream")

    writer = _writer(artemis, queue, jobId="load")
    with pytest.raises(RuntimeError, match="upstream"):
        writer.write(failing())
    assert writer.write(_rows("a", "b")) == TaskCommit(0, 2, 2)
    assert [message.body for message in _take(artemis, queue)] == ["a", "b"]


def test_other_rows_under_the_same_numbers_are_sent(artemis: RealBroker, queue: str) -> None:
    """A batch that is cut into other partitions when it is tried again, or a jobId used again."""
    writer = _writer(artemis, queue, jobId="load")
    for bodies in ("ab", "abc", "ac", "ba"):
        assert not writer.write(_rows(*bodies)).repeated
    assert [message.body for message in _take(artemis, queue)] == list("ababcacba")


def test_without_a_job_id_or_dedupe_everything_is_sent(artemis: RealBroker, queue: str) -> None:
    for writer in (_writer(artemis, queue), _writer(artemis, queue, dedupe="false")):
        for _ in range(2):
            assert not writer.write(_rows("a")).repeated
    assert len(_take(artemis, queue)) == 4


def test_rows_that_the_sink_sent_before_can_be_sent_again_by_another_job(artemis: RealBroker, queue: str) -> None:
    """A replay: the id of the earlier send must not make the broker refuse it."""
    _writer(artemis, queue, jobId="load").write(_rows("a"))
    (first,) = _take(artemis, queue)
    assert "_AMQ_DUPL_ID" in first.properties
    properties = {name: str(value) for name, value in first.properties.items()}
    for given in ({"jobId": "replay"}, {}):
        assert not _writer(artemis, queue, **given).write(_rows("a", **properties)).repeated
    assert [message.body for message in _take(artemis, queue)] == ["a", "a"]


def test_a_large_task_is_refused_as_a_whole(artemis: RealBroker, queue: str) -> None:
    bodies = [str(number) for number in range(3000)]
    writer = _writer(artemis, queue, jobId="load")
    assert writer.write(_rows(*bodies)) == TaskCommit(0, 3000, sum(map(len, bodies)))
    assert writer.write(_rows(*bodies)).repeated
    assert [message.body for message in _take(artemis, queue)] == bodies
