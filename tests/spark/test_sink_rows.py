"""What a row becomes, and which rows the sink refuses before anything is sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampType,
    VarcharType,
    VariantType,
)

from redelivery import ConfigError, InvalidDestinationError, Message, MessageFormatError, Queue, Topic
from redelivery.spark.options.query import SinkOptions
from redelivery.spark.rows.columns import Columns
from redelivery.spark.rows.schema import struct_type
from redelivery.spark.rows.variants import NO_NAMES, encode
from redelivery.spark.write.rows import DEDUPE_ID, Outgoing, Rows, check_columns

_VARIANT = pa.struct([pa.field("value", pa.binary()), pa.field("metadata", pa.binary())])


def _schema(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


def _options(**given: str) -> SinkOptions:
    return SinkOptions.parse({"url": "stomp://host:61613", "destination": "orders", **given})


def _batch(rows: Iterable[Mapping[str, Any]], **types: Any) -> Any:
    rows = list(rows)
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.RecordBatch.from_arrays(
        [pa.array([row.get(name) for row in rows], types.get(name)) for name in names], names=list(names)
    )


def _sent(*rows: Mapping[str, Any], options: SinkOptions | None = None, **types: Any) -> list[Outgoing]:
    return list(Rows(options or _options(), None).outgoing([_batch(rows, **types)]))


@pytest.mark.parametrize(
    "column",
    [
        {"body": BinaryType()},
        {"body": VarcharType(10)},
        {"body_type": StringType()},
        {"destination": StringType()},
        {"properties": MapType(StringType(), StringType())},
        {"properties": MapType(StringType(), VariantType())},
        {"properties": MapType(StringType(), LongType())},
        {"properties": MapType(StringType(), BooleanType())},
        {"correlation_id": StringType()},
        {"reply_to": StringType()},
        {"type": StringType()},
        {"group_id": StringType()},
        {"persistent": BooleanType()},
        {"priority": ShortType()},
        {"ttl": IntegerType()},
        {"ttl": DoubleType()},
        {"ttl": DecimalType(4, 1)},
        {"ttl": DayTimeIntervalType()},
    ],
)
def test_every_column_is_taken_in_each_of_its_types(column: dict[str, DataType]) -> None:
    check_columns(_schema(**{"body": StringType(), **column}), destination_given=True)


def test_rows_of_the_source_are_taken_as_they_are() -> None:
    check_columns(struct_type(), destination_given=False)
    check_columns(struct_type("variant"), destination_given=False)


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("body", IntegerType(), "the column 'body' is int; it must be string or binary"),
        ("body_type", IntegerType(), "the column 'body_type' is int; it must be string (text, bytes, map, stream or"),
        ("destination", ArrayType(StringType()), "the column 'destination' is array<string>; it must be string"),
        ("properties", StringType(), "the column 'properties' is string; it must be map<string, string>, or"),
        ("properties", MapType(StringType(), BinaryType()), "is map<string,binary>; it must be map<string, string>"),
        ("properties", MapType(IntegerType(), StringType()), "is map<int,string>; it must be map<string, string>"),
        ("properties", MapType(StringType(), DecimalType(4, 1)), "is map<string,decimal(4,1)>; it must be"),
        ("persistent", StringType(), "the column 'persistent' is string; it must be boolean"),
        ("priority", DoubleType(), "the column 'priority' is double; it must be an integer from 0 to 9"),
        ("ttl", TimestampType(), "the column 'ttl' is timestamp; it must be a number of seconds, or an interval"),
        ("group_id", BinaryType(), "the column 'group_id' is binary; it must be string"),
    ],
)
def test_a_column_of_another_type_is_named_with_what_it_is_and_must_be(name: str, kind: DataType, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        check_columns(_schema(**{"body": StringType(), name: kind}), destination_given=True)
    assert said in str(error.value)


def test_unknown_columns_are_all_named_with_what_can_be_done() -> None:
    schema = _schema(body=StringType(), color=StringType(), Body=StringType(), _error=StringType())
    with pytest.raises(ConfigError) as error:
        check_columns(schema, destination_given=True)
    text = str(error.value)
    assert "no column 'color', 'Body', '_error'" in text
    assert "put it into the map column 'properties', or drop it" in text


def test_a_column_that_is_there_twice_is_named() -> None:
    schema = StructType([StructField("body", StringType()), StructField("type", StringType())] * 2)
    with pytest.raises(ConfigError, match="the column 'body' occurs twice"):
        check_columns(schema, destination_given=True)


def test_body_and_destination_must_be_there() -> None:
    with pytest.raises(ConfigError, match="the column 'body' is missing"):
        check_columns(_schema(type=StringType()), destination_given=True)
    with pytest.raises(ConfigError, match=r"destination is missing: give the option, or .* column 'destination'"):
        check_columns(_schema(body=StringType()), destination_given=False)


def test_a_string_is_a_text_and_binary_is_bytes_and_null_is_no_body() -> None:
    assert [each.message.body for each in _sent({"body": "tëxt"}, {"body": ""}, {"body": None})] == ["tëxt", "", None]
    assert [each.message.body for each in _sent({"body": b"\0b"}, {"body": b""}, {"body": None})] == [b"\0b", b"", None]


@pytest.mark.parametrize("binary", [True, False])
def test_the_body_type_decides_what_a_body_is(binary: bool) -> None:
    bodies = {"text": "one", "bytes": "two", "map": '{"a": 1}', "stream": '[1, "b"]', "none": None}
    rows = [
        {"body": body.encode() if binary and body is not None else body, "body_type": kind}
        for kind, body in bodies.items()
    ]
    assert [each.message.body for each in _sent(*rows)] == ["one", b"two", {"a": 1}, [1, "b"], None]


def test_every_column_reaches_the_message_and_its_send() -> None:
    row = {
        "body": "b",
        "properties": [("color", "red"), ("gone", None)],
        "correlation_id": "c-1",
        "reply_to": "topic://answers",
        "type": "order",
        "group_id": "g",
        "persistent": False,
        "priority": 7,
        "ttl": 2.5,
    }
    (outgoing,) = _sent(row, properties=pa.map_(pa.string(), pa.string()))
    message = outgoing.message
    assert dict(message.properties) == {"color": "red", "gone": None}
    assert (message.correlation_id, message.reply_to, message.type) == ("c-1", Topic("answers"), "order")
    assert message.group_id == "g"
    assert (outgoing.persistent, outgoing.priority, outgoing.ttl) == (False, 7, 2.5)


def test_where_a_row_says_nothing_the_options_count() -> None:
    options = _options(persistent="false", priority="9", ttl="3 s")
    nulls = {"body": "b", "persistent": None, "priority": None, "ttl": None}
    types = {"persistent": pa.bool_(), "priority": pa.int32(), "ttl": pa.float64()}
    for outgoing in (*_sent({"body": "b"}, options=options), *_sent(nulls, options=options, **types)):
        assert (outgoing.persistent, outgoing.priority, outgoing.ttl) == (False, 9, 3.0)


def test_a_time_to_live_may_be_an_interval_or_a_decimal() -> None:
    assert _sent({"body": "b", "ttl": timedelta(minutes=1)})[0].ttl == timedelta(minutes=1)
    assert _sent({"body": "b", "ttl": Decimal("1.5")})[0].ttl == 1.5


def test_properties_keep_the_types_of_their_column() -> None:
    numbers = _sent(
        {"body": "b", "properties": [("n", 1), ("big", 1 << 40)]}, properties=pa.map_(pa.string(), pa.int64())
    )
    assert dict(numbers[0].message.properties) == {"n": 1, "big": 1 << 40}
    values: dict[str, Any] = {"s": "x", "n": 5, "f": 0.5, "t": True, "nothing": None}
    variants = [(name, {"value": encode(value), "metadata": NO_NAMES}) for name, value in values.items()]
    (outgoing,) = _sent({"body": "b", "properties": variants}, properties=pa.map_(pa.string(), _VARIANT))
    assert dict(outgoing.message.properties) == values


def test_the_option_destination_counts_more_than_the_rows_own() -> None:
    rows: list[dict[str, Any]] = [{"body": "b", "destination": "topic://news"}, {"body": "b", "destination": None}]
    assert [each.destination for each in _sent(*rows)] == [None, None]
    own = SinkOptions.parse({"url": "stomp://host:61613"})
    assert [each.destination for each in _sent(rows[0], options=own)] == [Topic("news")]
    with pytest.raises(InvalidDestinationError, match="'destination' is null") as error:
        _sent(*rows, options=own)
    assert error.value.__notes__ == ["in row 1 of the task, counted from 0"]


def test_what_a_broker_would_obey_is_not_sent_again_but_the_reasons_of_a_dead_letter_are() -> None:
    properties = [
        ("_AMQ_DUPL_ID", "of an earlier send"),
        ("_HQ_DUPL_ID", "x"),
        ("AMQ_SCHEDULED_DELAY", "60000"),
        ("JMSXDeliveryCount", "7"),
        ("dlqDeliveryFailureCause", "because"),
        ("color", "red"),
    ]
    (outgoing,) = _sent({"body": "b", "properties": properties}, properties=pa.map_(pa.string(), pa.string()))
    assert dict(outgoing.message.properties) == {"dlqDeliveryFailureCause": "because", "color": "red"}


def test_a_row_that_is_no_message_is_named() -> None:
    with pytest.raises(MessageFormatError, match="the body is not valid as body_type='map'") as error:
        _sent({"body": "{}", "body_type": "map"}, {"body": "no json", "body_type": "map"})
    assert error.value.__notes__ == ["in row 1 of the task, counted from 0"]


def test_a_row_of_the_source_becomes_the_message_that_it_was() -> None:
    original = Message(
        {"n": 1, "s": "x"},
        properties={"color": "red", "JMSXGroupSeq": 3},
        correlation_id="c",
        reply_to="queue://answers",
        type="t",
        group_id="g",
    )
    original.stamp(message_id="ID:1", destination=Queue("orders"), priority=8, persistent=False)
    columns = Columns("variant")
    columns.add(original)
    (batch,) = columns.batches()
    (outgoing,) = Rows(SinkOptions.parse({"url": "stomp://host:61613"}), None).outgoing([batch])
    again = outgoing.message
    assert (again.body, dict(again.properties)) == ({"n": 1, "s": "x"}, dict(original.properties))
    assert (again.correlation_id, again.reply_to, again.type) == ("c", Queue("answers"), "t")
    assert (again.group_id, again.group_sequence) == ("g", 3)
    assert (outgoing.destination, outgoing.priority, outgoing.persistent) == (Queue("orders"), 8, False)


def test_each_row_has_its_number_over_all_batches_in_its_id() -> None:
    rows = Rows(_options(), "query-7-2")
    batches = [_batch([{"body": "a"}, {"body": "bc"}]), _batch([{"body": "d"}])]
    ids = [each.message.properties[DEDUPE_ID] for each in rows.outgoing(batches)]
    assert ids == ["query-7-2-0", "query-7-2-1", "query-7-2-2"]
    assert (rows.count, rows.bytes) == (3, 4)


def _task_id(*rows: Mapping[str, Any], batch: int = 10) -> str:
    reader = Rows(_options(), "job-0")
    reader.start_digest()
    types = {"properties": pa.map_(pa.string(), pa.string())}
    parts = [_batch(rows[at : at + batch], **types) for at in range(0, len(rows), batch)]
    assert len(list(reader.outgoing(parts))) == len(rows)
    return reader.task_id


def test_the_id_of_a_task_depends_on_its_rows_and_on_nothing_else() -> None:
    rows: list[dict[str, Any]] = [{"body": "a", "properties": [("n", "1")]}, {"body": "b", "properties": [("n", "2")]}]
    usual = _task_id(*rows)
    assert usual.startswith("job-0-1-")
    assert _task_id(*rows, batch=1) == usual
    assert _task_id(*({**row, "message_id": f"ID:{at}"} for at, row in enumerate(rows))) == usual
    others: list[list[dict[str, Any]]] = [
        rows[::-1],
        [rows[0], {**rows[1], "body": "c"}],
        [rows[0], {**rows[1], "properties": [("n", "3")]}],
        [{**rows[0], "body": "ab"}, {**rows[1], "body": ""}],
        [{**rows[0], "body": None}, {**rows[1], "body": "ab"}],
    ]
    assert len({usual, *(_task_id(*each) for each in others)}) == 1 + len(others)
