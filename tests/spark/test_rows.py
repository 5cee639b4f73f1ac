"""The schema: Spark's and Arrow's say the same, and Spark takes the batches and sees what was in the messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("pyspark")

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema

from redelivery import Byte, Float, Long, Message, Queue, Short
from redelivery.spark.log.segments import SegmentWriter, segment_batches
from redelivery.spark.rows.columns import Columns
from redelivery.spark.rows.schema import arrow_schema, struct_type

COLUMNS = [
    *("message_id", "body", "body_type", "destination", "correlation_id", "reply_to", "type", "timestamp"),
    *("expiration", "priority", "persistent", "redelivered", "delivery_count", "properties"),
]


@pytest.mark.parametrize("properties_type", ["string", "variant"])
@pytest.mark.parametrize("errors", [False, True])
def test_arrow_and_spark_agree(properties_type: str, errors: bool) -> None:
    spark, arrow = struct_type(properties_type, errors), arrow_schema(properties_type, errors)
    assert to_arrow_schema(spark, timezone="UTC").equals(arrow, check_metadata=True)
    assert spark.names == [*COLUMNS, "_error"] if errors else COLUMNS
    assert Columns(properties_type, errors).schema == arrow


@pytest.mark.timeout(300, func_only=True)  # starting the JVM is not its own; minutes where cores are few
def test_spark_reads_a_segment(spark: Any) -> None:
    """Both kinds of properties, through the same door as the source: RecordBatches of a DataSourceReader."""
    message = Message(
        {"n": 1, "b": b"\x00\xff", "t": "ü", "inf": float("inf")},
        properties={
            **{"yes": True, "byte": Byte(-5), "short": Short(300), "int": 70_000, "long": Long(7), "text": "x" * 70},
            **{"double": 1e10, "float": Float(0.1), "null": None},
        },
        correlation_id=b"\x0a\xff",
        reply_to="topic://answers",
        group_id="g",
    )
    message.stamp(destination=Queue("orders"), message_id="ID:1", timestamp=1_700_000_000_123)
    files: dict[str, bytes] = {}
    for kind in ("string", "variant"):
        columns = Columns(kind)
        columns.add(message)
        columns.add(Message(None))
        writer = SegmentWriter(columns.schema, "zstd", "a")
        columns.write(writer)
        files[kind] = writer.finish()

    class Reader(DataSourceReader):
        def __init__(self, kind: str) -> None:
            self.kind = kind

        def partitions(self) -> list[InputPartition]:
            return [InputPartition(0)]

        def read(self, partition: InputPartition) -> Iterator[Any]:  # noqa: ARG002 - Spark's signature
            yield from segment_batches(pa.ipc.open_file(files[self.kind]))

    class Source(DataSource):
        @classmethod
        def name(cls) -> str:
            return "segment"

        def schema(self) -> Any:
            return struct_type(self.options["kind"])

        def reader(self, schema: Any) -> Reader:  # noqa: ARG002 - Spark's signature
            return Reader(self.options["kind"])

    spark.dataSource.register(Source)
    text = spark.read.format("segment").option("kind", "string").load()
    row, nothing = text.selectExpr(
        "*", "unix_millis(timestamp) sent", "from_json(string(body), 'n int, b binary, t string, inf double') json"
    ).collect()
    assert (row.message_id, row.body_type, row.destination, row.reply_to) == (
        *("ID:1", "map", "queue://orders"),
        "topic://answers",
    )
    assert (row.correlation_id, row.sent, row.expiration) == ("ID:AMQP_BINARY:0AFF", 1_700_000_000_123, None)
    assert (row.priority, row.persistent, row.redelivered, row.delivery_count) == (4, True, False, None)
    assert tuple(row.json) == (1, bytearray(b"\x00\xff"), "ü", float("inf"))
    assert row.properties == {
        **{"yes": "true", "byte": "-5", "short": "300", "int": "70000", "long": "7", "text": "x" * 70},
        **{"double": "1.0E10", "float": "0.1", "null": None, "JMSXGroupID": "g"},
    }
    assert (nothing.body, nothing.body_type, nothing.properties) == (None, "none", {})

    variant = spark.read.format("segment").option("kind", "variant").load()
    asked = ["yes", "byte", "short", "int", "long", "text", "double", "float", "null", "JMSXGroupID"]
    row, _ = variant.selectExpr(
        "variant_get(properties['byte'], '$', 'int') + variant_get(properties['long'], '$', 'long') sum",
        "cast(properties['text'] as string) text",
        "cast(properties['yes'] as boolean) yes",
        *(f"schema_of_variant(properties['{name}'])" for name in asked),
    ).collect()
    assert tuple(row)[:3] == (2, "x" * 70, True)
    assert tuple(row)[3:] == (
        *("BOOLEAN", "BIGINT", "BIGINT", "BIGINT", "BIGINT", "STRING", "DOUBLE", "FLOAT", "VOID", "STRING"),
    )
