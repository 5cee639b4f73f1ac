"""Messages become columns: what each column holds, and that a message that cannot be a row leaves no trace."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark")

from tests.spark.column_rows import HALF, SENT, Source, received, row, rows

from redelivery import Byte, Float, Long, Message, MessageFormatError, Queue, Short
from redelivery.model.values import Body, Value
from redelivery.spark.log.segments import SegmentWriter
from redelivery.spark.rows import columns as columns_module
from redelivery.spark.rows.columns import Columns
from redelivery.spark.rows.from_message import property_string
from redelivery.spark.rows.variants import decode


def test_each_header_has_its_column() -> None:
    source = Source(
        "text",
        count=3,
        headers={
            **{"message_id": "ID:7", "correlation_id": "c-1", "reply_to": Queue("answers"), "type": "order"},
            **{"timestamp": SENT, "expiration": SENT, "priority": 9, "persistent": False},
        },
    )
    assert row(received(source)) == {
        "message_id": "ID:7",
        "body": b"text",
        "body_type": "text",
        "destination": "queue://orders",
        "correlation_id": "c-1",
        "reply_to": "queue://answers",
        "type": "order",
        "timestamp": SENT,
        "expiration": SENT,
        "priority": 9,
        "persistent": False,
        "redelivered": True,
        "delivery_count": 3,
        "properties": [],
    }


def test_what_is_not_set_is_null() -> None:
    found = row(received(Source(None)))
    unset = {"message_id", "body", "correlation_id", "reply_to", "type", "timestamp", "expiration"}
    assert {name for name, value in found.items() if value is None} == unset
    assert (found["delivery_count"], found["redelivered"]) == (1, False)
    assert row(Message())["delivery_count"] is None


def test_times_of_a_transport_that_gives_milliseconds() -> None:
    found = row(received(Source(headers={"timestamp": 1_763_748_389_250, "expiration": 0})))
    assert (found["timestamp"], found["expiration"]) == (datetime(2025, 11, 21, 18, 6, 29, 250_000, UTC), None)
    forever = row(received(Source(headers={"expiration": 2**63 - 1})))["expiration"]
    assert forever.year == 9999


def test_a_correlation_id_of_bytes() -> None:
    found = row(received(Source(headers={"correlation_id": b"\x0a\xff"})))
    assert found["correlation_id"] == "ID:AMQP_BINARY:0AFF"


@pytest.mark.parametrize(
    ("body", "raw", "kind"),
    [
        ("Grüße", "Grüße".encode(), "text"),
        ("", b"", "text"),
        (b"\x00\xff", b"\x00\xff", "bytes"),
        (None, None, "none"),
        ({"a": 1, "b": b"\xff", "c": None}, b'{"a": 1, "b": "/w==", "c": null}', "map"),
        ([True, 1.5, "ü", float("nan")], '[true, 1.5, "ü", "NaN"]'.encode(), "stream"),
        ([Byte(1), Float(0.5), float("-inf")], b'[1, 0.5, "-Infinity"]', "stream"),
    ],
)
def test_bodies(body: Body, raw: bytes | None, kind: str) -> None:
    found = row(Message(body))
    assert (found["body"], found["body_type"]) == (raw, kind)


def test_the_group_is_among_the_properties() -> None:
    message = Message(properties={"a": 1}, group_id="g", group_sequence=2)
    assert row(message)["properties"] == [("a", "1"), ("JMSXGroupID", "g"), ("JMSXGroupSeq", "2")]
    assert row(Message(group_id="g"))["properties"] == [("JMSXGroupID", "g")]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((True, "true"), (False, "false"), (None, None), ("", ""), (-5, "-5"), (Long(7), "7"), (Byte(-1), "-1")),
        *((1.0, "1.0"), (-0.0, "-0.0"), (0.1, "0.1"), (100.0, "100.0"), (123.456, "123.456"), (9999999.0, "9999999.0")),
        *((1e7, "1.0E7"), (1.5e10, "1.5E10"), (0.001, "0.001"), (0.00012, "1.2E-4"), (5e-324, "4.9E-324")),
        *((1.7976931348623157e308, "1.7976931348623157E308"), (float("inf"), "Infinity"), (float("nan"), "NaN")),
        *(
            (Float(0.1), "0.1"),
            (Float(1e10), "1.0E10"),
            (Float(2e-45), "1.4E-45"),
            (2e23, "2.0E23"),
            (Float(3.4028234663852886e38), "3.4028235E38"),
        ),
        *((Float(16777216.0), "1.6777216E7"), (Float(1.17549435e-38), "1.1754944E-38"), (float("-inf"), "-Infinity")),
    ],
)
def test_a_property_reads_as_in_java(value: Value, text: str | None) -> None:
    assert property_string(value) == text


@given(st.floats(allow_nan=False) | st.floats(width=32, allow_nan=False).map(Float))
def test_the_text_of_a_number_is_that_number(value: float) -> None:
    text = property_string(value)
    assert text is not None
    again = float(text.replace("Infinity", "inf"))
    assert (Float(again) if isinstance(value, Float) else again) == pytest.approx(value, rel=1e-7, abs=1e-44)
    if not isinstance(value, Float):
        assert again == value


def test_variants_keep_the_types() -> None:
    properties: dict[str, Value] = {
        "y": True,
        "b": Byte(1),
        "s": Short(2),
        "i": 3,
        "l": Long(4),
        "d": 1.5,
        "f": Float(0.5),
    }
    found = dict(
        row(Message(properties={**properties, "t": "ü" * 40, "n": None}), properties_type="variant")["properties"]
    )
    values = {name: decode(value["value"]) for name, value in found.items()}
    assert values == {**properties, "t": "ü" * 40, "n": None}
    assert {name: type(value) for name, value in values.items() if name in properties} == {
        name: type(value) for name, value in properties.items()
    }


def test_drop_and_rows() -> None:
    columns = Columns()
    for number in range(7):
        source = Source(b"x" * number, count=1 + number % 2, headers={"message_id": f"ID:{number}"})
        columns.add(received(source))
    assert (len(columns), columns.size) == (7, 21 + 7 * columns_module.ROW_BYTES)
    assert [message_id for message_id, _ in columns.keys] == [f"ID:{number}" for number in range(7)]
    assert len({digest for _, digest in columns.keys}) == 7
    assert [batch.num_rows for batch in columns.batches(rows=2)] == [2, 2, 2, 1]
    writer = SegmentWriter(columns.schema, "none", "a")
    columns.write(writer, drop=[0, 3])
    assert [message_id for message_id, _ in writer.keys] == ["ID:1", "ID:2", "ID:4", "ID:5", "ID:6"]
    assert (writer.rows, writer.size) == (5, 18 + 5 * columns_module.ROW_BYTES)
    assert len(columns) == 7
    columns.clear()
    assert (len(columns), columns.size, columns.keys, columns.batches()) == (0, 0, [], [])


def test_a_batch_of_large_bodies_is_cut_by_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns_module, "_BATCH_BYTES", 100)
    columns = Columns()
    monkeypatch.setattr(columns_module, "ROW_BYTES", 0)
    for size in (101, 60, 40, 1, 250, 0, 99, 1):
        columns.add(Message(b"x" * size))
    batches = columns.batches(rows=6)
    sizes = [[len(body) for body in batch.column("body").to_pylist()] for batch in batches]
    assert sizes == [[101], [60, 40], [1], [250], [0], [99, 1]]


def test_a_converter_makes_the_body() -> None:
    def decoded(message: Message) -> Any:
        return {"s": "text", "b": b"bytes", "n": None}.get(message.body, 5)

    columns = Columns(converter=decoded)
    for body in "sbn":
        columns.add(Message(body))
    with pytest.raises(MessageFormatError, match=r"the converter returned a int; return bytes, str or None"):
        columns.add(Message("x"))
    assert [(each["body"], each["body_type"]) for each in rows(columns)] == [
        *((b"text", "text"), (b"bytes", "bytes"), (None, "none"))
    ]


@pytest.mark.parametrize("properties_type", ["string", "variant"])
@pytest.mark.parametrize(
    "message",
    [
        Source(f"text {HALF}"),
        Source({"map": HALF}),
        Source([HALF]),
        Source(named={"name": HALF}),
        Source(named={HALF: 1}),
        Source(headers={"message_id": HALF}),
        Source(headers={"type": HALF}),
        Source(headers={"correlation_id": HALF}),
        Source(headers={"group_id": HALF}),
        Source(headers={"destination": Queue(HALF)}),
        Source(headers={"reply_to": Queue(HALF)}),
    ],
)
def test_half_a_surrogate_pair_is_refused_at_once(message: Source, properties_type: str) -> None:
    """Arrow would refuse it too, but a whole batch late."""
    columns = Columns(properties_type, errors=True)
    with pytest.raises(MessageFormatError, match="half a surrogate pair"):
        columns.add(received(message))
    assert (len(columns), columns.size) == (0, 0)
    columns.add_error(received(message), "why")
    assert rows(columns)[0]["_error"] == "why"


def test_what_the_converter_raised_comes_out() -> None:
    columns = Columns(converter=lambda message: {}[message.body])
    with pytest.raises(KeyError):
        columns.add(Message("x"))
    assert len(columns) == 0
