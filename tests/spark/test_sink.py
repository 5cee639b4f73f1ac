"""Tasks of the sink against the embedded broker: all of a task's rows, or none, and what is said of it."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from redelivery import (
    ConfigError,
    ConnectError,
    ConnectionLostError,
    InDoubtError,
    JMSError,
    Message,
    MessageFormatError,
    TransactionRolledBackError,
)
from redelivery.broker import EmbeddedBroker
from redelivery.spark.options.query import SinkOptions
from redelivery.spark.write.rows import DEDUPE_ID
from redelivery.spark.write.task import TaskCommit
from redelivery.spark.write.writers import BatchWriter, StreamWriter
from redelivery.transports.dialects import detect

SCHEMA = StructType([StructField("body", StringType())])
QUERY = {"sql.streaming.queryId": "a1b2", "streaming.sql.batchId": "7"}


class Task:
    """Spark's TaskContext, of one attempt."""

    def __init__(self, partition: int, properties: Mapping[str, str]) -> None:
        self._partition = partition
        self._properties = properties

    def get(self) -> Task:
        return self

    def partitionId(self) -> int:
        return self._partition

    def getLocalProperty(self, name: str) -> str | None:
        return self._properties.get(name)


@pytest.fixture(autouse=True)
def task(monkeypatch: pytest.MonkeyPatch) -> None:
    _run_as(monkeypatch, 0)


def _run_as(monkeypatch: pytest.MonkeyPatch, partition: int, properties: Mapping[str, str] | None = None) -> None:
    monkeypatch.setattr("redelivery.spark.write.task.TaskContext", Task(partition, properties or {}))


@pytest.fixture(params=["stomp", "amqp"])
def url(request: pytest.FixtureRequest, broker: EmbeddedBroker) -> str:
    return broker.stomp_url if request.param == "stomp" else broker.amqp_url


def _options(url: str, **given: str) -> SinkOptions:
    return SinkOptions.parse({"url": url, "destination": "orders", **given})


def _batches(*bodies: object, size: int = 2) -> Iterator[Any]:
    for at in range(0, len(bodies), size):
        yield pa.RecordBatch.from_arrays([pa.array(bodies[at : at + size], pa.string())], names=["body"])


def _bodies(broker: EmbeddedBroker, queue: str = "orders") -> list[object]:
    return [message.body for message in broker.messages(queue)]


def _ids(broker: EmbeddedBroker) -> list[object]:
    return [message.properties.get(DEDUPE_ID) for message in broker.messages("orders")]


def test_a_task_sends_its_rows_in_order_and_says_how_much(broker: EmbeddedBroker, url: str) -> None:
    sent = BatchWriter(_options(url), SCHEMA).write(_batches("a", "bc", None, "dé"))
    assert sent == TaskCommit(partition=0, rows=4, bytes=6)
    assert _bodies(broker) == ["a", "bc", None, "dé"]


def test_options_and_columns_decide_how_a_message_is_sent(broker: EmbeddedBroker, url: str) -> None:
    options = SinkOptions.parse({"url": url, "persistent": "false", "priority": "2", "ttl": "1h"})
    schema = StructType([StructField("body", StringType()), StructField("destination", StringType())])
    rows = [
        {"body": "one", "destination": "orders", "priority": None},
        {"body": "two", "destination": "queue://others", "priority": 8},
    ]
    BatchWriter(options, schema).write(iter([pa.RecordBatch.from_pylist(rows)]))
    (one,), (two,) = broker.messages("orders"), broker.messages("others")
    assert (one.body, one.priority, one.persistent) == ("one", 2, False)
    assert (two.body, two.priority) == ("two", 8)
    assert one.expiration is not None


def test_an_empty_task_connects_to_nothing() -> None:
    nowhere = _options("stomp://127.0.0.1:1", maxReconnectTime="0")
    assert BatchWriter(nowhere, SCHEMA).write(_batches()) == TaskCommit(0, 0, 0)
    assert BatchWriter(nowhere, SCHEMA).write(iter([next(_batches("a")).slice(1)])) == TaskCommit(0, 0, 0)


def test_a_row_that_is_not_a_message_leaves_nothing_of_its_task(broker: EmbeddedBroker, url: str) -> None:
    columns = {"body": ["{}", "{}", "no json"], "body_type": ["text", "text", "map"]}
    schema = StructType([StructField(name, StringType()) for name in columns])
    with pytest.raises(MessageFormatError, match="the body is not valid as body_type='map'") as error:
        BatchWriter(_options(url), schema).write(iter([pa.RecordBatch.from_pydict(columns)]))
    assert error.value.__notes__ == ["in row 2 of the task, counted from 0"]
    assert broker.queue_depth("orders") == 0


def test_a_row_that_cannot_be_sent_is_named_and_leaves_nothing(broker: EmbeddedBroker, url: str) -> None:
    schema = StructType([StructField("body", StringType()), StructField("priority", IntegerType())])
    rows = pa.RecordBatch.from_pydict({"body": ["a", "b"], "priority": [4, 17]})
    with pytest.raises(ConfigError, match="priority=17 must be an integer from 0 to 9") as error:
        BatchWriter(_options(url), schema).write(iter([rows]))
    assert error.value.__notes__ == ["in row 1 of the task, counted from 0"]
    assert broker.queue_depth("orders") == 0


def test_what_fails_before_the_sink_leaves_nothing(broker: EmbeddedBroker, url: str) -> None:
    def failing() -> Iterator[Any]:
        yield from _batches("a", "b", "c")
        raise RuntimeError("upstream")

    with pytest.raises(RuntimeError, match="upstream"):
        BatchWriter(_options(url), SCHEMA).write(failing())
    assert broker.queue_depth("orders") == 0


def test_a_send_that_the_broker_refuses_undoes_the_task_and_the_next_attempt_sends_it(
    broker: EmbeddedBroker, url: str
) -> None:
    broker.faults.error("SEND", "no room", nth=3)
    writer = BatchWriter(_options(url), SCHEMA)
    with pytest.raises(TransactionRolledBackError, match="no room"):
        writer.write(_batches("a", "b", "c", "d"))
    assert broker.queue_depth("orders") == 0
    writer.write(_batches("a", "b", "c", "d"))
    assert _bodies(broker) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("command", ["SEND", "COMMIT"])
def test_a_connection_lost_before_the_commit_leaves_nothing(broker: EmbeddedBroker, url: str, command: str) -> None:
    broker.faults.drop(command)
    with pytest.raises((ConnectionLostError, TransactionRolledBackError, InDoubtError)):
        BatchWriter(_options(url), SCHEMA).write(_batches("a", "b", "c"))
    assert broker.queue_depth("orders") == 0


def test_a_commit_without_an_answer_says_what_another_attempt_does(broker: EmbeddedBroker, url: str) -> None:
    broker.faults.drop_after("COMMIT")
    with pytest.raises(InDoubtError, match="not known whether the 3 rows of this task were sent, all or none") as error:
        BatchWriter(_options(url), SCHEMA).write(_batches("a", "b", "c"))
    assert "may send them twice" in str(error.value)
    assert DEDUPE_ID not in str(error.value)
    assert _bodies(broker) == ["a", "b", "c"]


def test_what_is_sent_twice_has_the_same_ids(broker: EmbeddedBroker, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _run_as(monkeypatch, 3, QUERY)
    writer = StreamWriter(_options(url), SCHEMA)
    broker.faults.drop_after("COMMIT")
    with pytest.raises(InDoubtError, match=f"consumers can recognise them by the property {DEDUPE_ID}"):
        writer.write(_batches("a", "b"))
    assert writer.write(_batches("a", "b")) == TaskCommit(3, 2, 2)
    assert _ids(broker) == ["a1b2-7-3-0", "a1b2-7-3-1"] * 2


@pytest.mark.parametrize(
    ("properties", "given", "begin"),
    [({}, {}, None), ({}, {"jobId": "load"}, "load-0"), (QUERY, {"jobId": "load"}, "load-a1b2-7-0"), (QUERY, {}, None)],
)
def test_a_batch_has_ids_where_it_has_a_job_id(
    broker: EmbeddedBroker,
    monkeypatch: pytest.MonkeyPatch,
    properties: dict[str, str],
    given: dict[str, str],
    begin: str | None,
) -> None:
    _run_as(monkeypatch, 0, properties)
    BatchWriter(_options(broker.stomp_url, **given), SCHEMA).write(_batches("a", "b"))
    assert _ids(broker) == [begin and f"{begin}-0", begin and f"{begin}-1"]


def test_without_dedupe_a_stream_has_no_ids(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    _run_as(monkeypatch, 0, QUERY)
    StreamWriter(_options(broker.stomp_url, dedupe="false"), SCHEMA).write(_batches("a"))
    assert _ids(broker) == [None]


def test_a_job_id_is_refused_for_a_stream() -> None:
    with pytest.raises(ConfigError, match="jobId names a batch write"):
        StreamWriter(_options("stomp://host", jobId="load"), SCHEMA)


@pytest.mark.parametrize("kind", [BatchWriter, StreamWriter])
def test_a_schema_that_cannot_be_sent_is_refused_by_the_constructor(kind: type) -> None:
    with pytest.raises(ConfigError, match="the column 'body' is int"):
        kind(_options("stomp://host"), StructType([StructField("body", IntegerType())]))
    with pytest.raises(ConfigError, match="destination is missing"):
        kind(SinkOptions.parse({"url": "stomp://host"}), SCHEMA)


def test_a_broker_that_is_gone_fails_the_task_after_max_reconnect_time(url: str, broker: EmbeddedBroker) -> None:
    broker.close()
    with pytest.raises(ConnectError, match=r"maxReconnectTime"):
        BatchWriter(_options(url, maxReconnectTime="200 ms"), SCHEMA).write(_batches("a"))


def test_a_connection_that_fails_at_first_is_made_again(broker: EmbeddedBroker, url: str) -> None:
    broker.faults.drop("CONNECT", times=2)
    BatchWriter(_options(url), SCHEMA).write(_batches("a"))
    assert _bodies(broker) == ["a"]


def test_a_task_of_many_rows_is_one_transaction(broker: EmbeddedBroker, url: str) -> None:
    bodies = [f"{number}" for number in range(5000)]
    seen: list[int] = []

    def watched() -> Iterator[Any]:
        for batch in _batches(*bodies, size=1000):
            yield batch
            seen.append(broker.queue_depth("orders"))

    assert BatchWriter(_options(url), SCHEMA).write(watched()).rows == 5000
    assert seen == [0] * 5
    assert _bodies(broker) == bodies


@pytest.fixture
def without_transactions(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a dialect over AMQP that has none, whose queues are named as the embedded broker's."""
    found = detect._DIALECTS["rabbitmq"]
    assert found.amqp is not None
    plain = replace(found, amqp=replace(found.amqp, queue_prefix="", existing_queue_prefix=""))
    monkeypatch.setattr(detect, "_DIALECTS", {**detect._DIALECTS, "rabbitmq": plain})
    return "rabbitmq!"


def test_where_there_are_no_transactions_every_send_is_confirmed(
    broker: EmbeddedBroker, without_transactions: str
) -> None:
    bodies = [f"{number}" for number in range(1500)]
    options = _options(broker.amqp_url, dialect=without_transactions)
    assert BatchWriter(options, SCHEMA).write(_batches(*bodies, size=400)).rows == 1500
    assert _bodies(broker) == bodies


@pytest.mark.parametrize("count", [4, 1000])
def test_a_refused_send_fails_the_task_where_there_are_no_transactions(
    broker: EmbeddedBroker, without_transactions: str, count: int
) -> None:
    broker.faults.error("SEND", "no room", nth=3)
    options = _options(broker.amqp_url, dialect=without_transactions)
    with pytest.raises(JMSError, match="no room"):
        BatchWriter(options, SCHEMA).write(_batches(*["a"] * count, size=500))


def test_writers_and_what_tasks_report_can_be_pickled(broker: EmbeddedBroker) -> None:
    writer = pickle.loads(pickle.dumps(BatchWriter(_options(broker.stomp_url), SCHEMA)))  # noqa: S301  # our own
    assert pickle.loads(pickle.dumps(writer.write(_batches("a")))) == TaskCommit(0, 1, 1)  # noqa: S301  # as above


def test_the_driver_says_in_one_line_what_was_sent(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "redelivery.spark.write.writers")
    sent = [TaskCommit(0, 10, 100), TaskCommit(1, 5, 50, repeated=True)]
    BatchWriter(_options("stomp://host"), SCHEMA).commit(sent)
    StreamWriter(_options("stomp://host"), SCHEMA).commit(sent, 4)
    assert [record.getMessage() for record in caplog.records] == [
        "the write: 2 tasks have sent 15 rows, 150 bytes of bodies (1 of the tasks in an earlier attempt)",
        "batch 4: 2 tasks have sent 15 rows, 150 bytes of bodies (1 of the tasks in an earlier attempt)",
    ]


def test_the_driver_says_in_one_line_what_stays_sent(caplog: pytest.LogCaptureFixture) -> None:
    BatchWriter(_options("stomp://host"), SCHEMA).abort([TaskCommit(0, 10, 100), None])
    StreamWriter(_options("stomp://host"), SCHEMA).abort([None], 4)
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "the write has failed: what 1 finished tasks have sent stays sent, 10 rows, 100 bytes of bodies"),
        ("WARNING", "batch 4 has failed: what 0 finished tasks have sent stays sent, 0 rows, 0 bytes of bodies"),
    ]


def test_a_message_that_was_read_goes_back_as_it_was(broker: EmbeddedBroker) -> None:
    from redelivery.spark.rows.columns import Columns
    from redelivery.spark.rows.schema import struct_type

    original = Message([1, "two", 3.5], properties={"n": 1}, correlation_id="c", type="t", group_id="g")
    columns = Columns("variant")
    original.stamp(destination="queue://ActiveMQ.DLQ", priority=7, persistent=True)
    columns.add(original)
    BatchWriter(_options(broker.amqp_url), struct_type("variant")).write(iter(columns.batches()))
    (again,) = broker.messages("orders")
    assert (again.body, again.priority, again.type, again.group_id) == ([1, "two", 3.5], 7, "t", "g")
    assert (again.correlation_id, again.properties["n"]) == ("c", 1)
