"""From a row back to a message: what was in it, as far as a row can tell."""

from __future__ import annotations

import math
import struct
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark")

from pyspark.sql.types import VariantVal

from redelivery import (
    Byte,
    Float,
    InvalidDestinationError,
    Long,
    Message,
    MessageFormatError,
    Queue,
    Short,
    TemporaryQueue,
    TemporaryTopic,
    Topic,
)
from redelivery.model.values import Body, Value
from redelivery.spark.rows.columns import Columns
from redelivery.spark.rows.to_message import destination_of, message_of, messages, properties_of
from redelivery.spark.rows.variants import NO_NAMES, decode, encode
from redelivery.transports.amqp.codec.ids import write_id


def back(message: Message, properties_type: str = "variant") -> Message:
    columns = Columns(properties_type)
    columns.add(message)
    (batch,) = columns.batches()
    (found,) = messages(batch)
    return found


def test_headers_come_back() -> None:
    sent = datetime(2026, 11, 21, 18, 6, 29, 250_000, UTC)
    message = Message(
        "text", correlation_id="c", reply_to=TemporaryQueue("ID:x:1"), type="order", group_id="g", group_sequence=3
    )
    message.stamp(
        **{"message_id": "ID:1", "destination": Topic("news"), "timestamp": sent, "expiration": sent},
        **{"priority": 7, "persistent": False},
    )
    for properties_type in ("string", "variant"):
        found = back(message, properties_type)
        for name in ("body", "correlation_id", "reply_to", "type", "group_id", "group_sequence"):
            assert getattr(found, name) == getattr(message, name), name
        for name in ("message_id", "destination", "timestamp", "expiration", "priority", "persistent"):
            assert getattr(found, name) == getattr(message, name), name
        assert found.properties == {}
        found.body = "it can be written"


def test_a_correlation_id_of_bytes_is_bytes_again_over_amqp() -> None:
    found = back(Message(correlation_id=b"\x0a\xff")).correlation_id
    assert isinstance(found, str)
    assert write_id("correlation_id", found) == write_id("correlation_id", b"\x0a\xff")


texts = st.text(max_size=100)
names = texts.filter(lambda name: bool(name) and not name.startswith("JMSX"))
wholes = st.integers(-(2**63), 2**63 - 1)
values = st.none() | st.booleans() | wholes | st.floats(allow_nan=False) | texts
typed = (
    values
    | st.integers(-128, 127).map(Byte)
    | st.integers(-(2**15), 2**15 - 1).map(Short)
    | wholes.map(Long)
    | st.floats(width=32, allow_nan=False).map(Float)
)


def kinds(properties: dict[str, Value]) -> dict[str, str]:
    """JMS's types: a long is one, whether it had to be or not."""
    return {
        name: "Long" if type(value) is int and not -(2**31) <= value < 2**31 else type(value).__name__
        for name, value in properties.items()
    }


@given(st.dictionaries(names, typed, max_size=4))
def test_variants_bring_the_types_back(properties: dict[str, Value]) -> None:
    found = dict(back(Message(properties=properties)).properties)
    assert found == properties
    assert kinds(found) == kinds(properties)


def test_texts_bring_the_values_back() -> None:
    found = back(Message(properties={"a": True, "b": 5, "c": 1e10, "d": None, "e": "x"}), "string")
    assert found.properties == {"a": "true", "b": "5", "c": "1.0E10", "d": None, "e": "x"}


@given(
    texts
    | st.binary(max_size=50)
    | st.none()
    | st.dictionaries(names, values.filter(lambda value: value not in (math.inf, -math.inf)), max_size=4)
    | st.lists(values.filter(lambda value: value not in (math.inf, -math.inf)), max_size=4)
)
def test_bodies_come_back(body: Body) -> None:
    assert back(Message(body)).body == body


def test_what_json_has_no_type_for_is_a_text() -> None:
    assert back(Message({"b": b"\xff", "n": math.inf, "s": Short(1)})).body == {"b": "/w==", "n": "Infinity", "s": 1}


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"body": b"\xff", "body_type": "text"}, "the body is not valid as body_type='text'"),
        ({"body": b"{", "body_type": "map"}, "the body is not valid as body_type='map'"),
        ({"body": b"[]", "body_type": "map"}, "must be a JSON object"),
        ({"body": b"{}", "body_type": "stream"}, "must be a JSON array"),
        ({"body": b'{"a": []}', "body_type": "map"}, "map entry 'a'"),
        ({"body": b"x", "body_type": "none"}, "has 1 bytes"),
        ({"body": b"x", "body_type": "xml"}, "body_type='xml'"),
        ({"properties": [("JMSXGroupSeq", "x")]}, "JMSXGroupSeq='x'"),
        ({"properties": [("a", {"value": b"\x03\x00\x00", "metadata": NO_NAMES})]}, "not a JMS value"),
    ],
)
def test_rows_that_are_not_messages(row: dict[str, Any], said: str) -> None:
    with pytest.raises(MessageFormatError, match=said):
        message_of(row)


def test_a_row_of_few_columns() -> None:
    found = message_of({"body": bytearray(b"x")})
    assert (found.body, found.properties, found.priority, found.persistent) == (b"x", {}, 4, True)
    assert message_of({"body": None, "body_type": "text"}).body is None
    assert message_of({"body": b"", "body_type": "none"}).body is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *(("orders", Queue("orders")), ("queue://a.b", Queue("a.b")), ("topic://t", Topic("t"))),
        *(("temp-queue://ID:1", TemporaryQueue("ID:1")), ("temp-topic://x", TemporaryTopic("x")), (None, None)),
    ],
)
def test_destinations(text: str | None, expected: object) -> None:
    found = destination_of(text)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize("text", ["", "http://x", "temp-queue://"])
def test_no_destinations(text: str) -> None:
    with pytest.raises(InvalidDestinationError):
        destination_of(text)


@given(typed)
def test_spark_reads_our_variants(value: Value) -> None:
    assert VariantVal(encode(value), NO_NAMES).toPython() == value


@pytest.mark.parametrize(
    "json", ["null", "true", "false", "5", "-70000", "12345678901", "1.5", "-0.25", '"x"', "1e300"]
)
def test_we_read_sparks_variants(json: str) -> None:
    """Spark makes decimals of numbers with a point, and the narrowest type of whole ones."""
    variant = VariantVal.parseJson(json)
    expected = variant.toPython()
    assert decode(variant.value) == (float(expected) if isinstance(expected, Decimal) else expected)


@pytest.mark.parametrize("length", [0, 63, 64, 300])
def test_texts_of_every_length(length: int) -> None:
    text = "x" * length
    assert encode(text) == VariantVal.parseJson(f'"{text}"').value
    assert decode(encode(text)) == text


def test_a_long_text_and_bytes() -> None:
    long = VariantVal.parseJson('"' + "ü" * 100 + '"')
    assert decode(long.value) == "ü" * 100
    assert decode(encode(b"\x00\xff")) == b"\x00\xff"
    assert properties_of({"a": {"value": long.value, "metadata": long.metadata}, "b": 5}) == {"a": "ü" * 100, "b": 5}


@given(st.binary(max_size=12))
def test_any_bytes_are_a_value_or_no_variant(value: bytes) -> None:
    try:
        decode(value)
    except MessageFormatError:
        return
    assert len(value) > 0


@pytest.mark.parametrize(
    "value", [b"", b"\x0c", b"\x1c\x00", b"\x15a", struct.pack("<BI", 64, 9) + b"short", b"\x05\xff"]
)
def test_cut_off_variants(value: bytes) -> None:
    with pytest.raises(MessageFormatError, match="is not a Variant"):
        decode(value)
