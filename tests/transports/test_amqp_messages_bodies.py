"""Bodies of AMQP messages: what any client may have written is what Qpid JMS makes of it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from tests.transports.amqp_samples import KINDS, delivery, encoded, kind, listed, section

from redelivery.model.errors import MessageFormatError
from redelivery.model.values import Byte, Float, Long, Short

proton = pytest.importorskip("proton")
symbol = proton.symbol


def types(body: Any) -> list[type]:
    """Of the body and of what is in it."""
    inner = body.values() if isinstance(body, dict) else body if isinstance(body, list) else []
    return [type(body), *map(type, inner)]


# The body with the annotation of its kind, and without.
@pytest.mark.parametrize(
    ("body", "fields", "expected"),
    [
        (None, {"annotations": kind(0)}, None),
        (b"", {"inferred": True, "annotations": kind(0)}, None),  # what RabbitMQ makes of the one before
        ("text", {"annotations": kind(5)}, "text"),
        ("", {"annotations": kind(5)}, ""),
        (None, {"annotations": kind(5)}, None),
        ("a\0b é \U0001f600", {"annotations": kind(5)}, "a\0b é \U0001f600"),
        ("x" * 300, {"annotations": kind(5)}, "x" * 300),
        (b"text", {"inferred": True, "annotations": kind(5)}, "text"),
        (b"\xe9", {"inferred": True, "annotations": kind(5), "content_type": "text/plain;charset=latin-1"}, "é"),
        (b"\0\xff", {"inferred": True, "annotations": kind(3)}, b"\0\xff"),
        (b"", {"inferred": True, "annotations": kind(3)}, b""),
        (b"x" * 300, {"inferred": True, "annotations": kind(3)}, b"x" * 300),
        (b"value", {"annotations": kind(3)}, b"value"),
        (None, {"annotations": kind(3)}, b""),
        ({"a": 1, "b": b"\1", "c": None}, {"annotations": kind(2)}, {"a": Long(1), "b": b"\1", "c": None}),
        ({}, {"annotations": kind(2)}, {}),
        (None, {"annotations": kind(2)}, {}),
        (["s", proton.int32(4), b"b"], {"inferred": True, "annotations": kind(4)}, ["s", 4, b"b"]),
        (["s", proton.int32(4)], {"annotations": kind(4)}, ["s", 4]),
        ([], {"inferred": True, "annotations": kind(4)}, []),
        (None, {"annotations": kind(4)}, []),
        (
            b"\xac\xed\0\5",
            {"inferred": True, "annotations": kind(1), "content_type": "application/x-java-serialized-object"},
            b"\xac\xed\0\5",
        ),
        (None, {"annotations": kind(1)}, None),
        ({"a": proton.byte(1)}, {"annotations": kind(1)}, {"a": Byte(1)}),
        ("text", {"annotations": {"x-opt-jms-msg-type": proton.int32(5)}}, "text"),
        ("text", {"annotations": {"x-opt-jms-msg-type": "text"}}, "text"),
        ("text", {"annotations": {"x-opt-jms-msg-type": [5]}}, "text"),
        (b"text", {"inferred": True, "annotations": kind(9)}, b"text"),
        # without the annotation
        ("text", {}, "text"),
        (symbol("text"), {}, "text"),
        (None, {}, b""),  # proton writes no body at all, which Qpid JMS takes for bytes
        (b"value", {}, b"value"),
        (b"data", {"inferred": True}, b"data"),
        (b"data", {"inferred": True, "content_type": "application/octet-stream"}, b"data"),
        (b"data", {"inferred": True, "content_type": "application/x-java-serialized-object"}, b"data"),
        (b"data", {"inferred": True, "content_type": "image/png"}, b"data"),
        (b"{}", {"inferred": True, "content_type": "application/json"}, "{}"),
        (b"<a/>", {"inferred": True, "content_type": "Application/SOAP+XML; version=1"}, "<a/>"),
        ("é".encode(), {"inferred": True, "content_type": "text/plain"}, "é"),
        ("é".encode("latin-1"), {"inferred": True, "content_type": 'text/plain; charset="ISO-8859-1"'}, "é"),
        ("é".encode("utf-16"), {"inferred": True, "content_type": "text/plain;x=y; Charset=utf-16"}, "é"),
        (b"text", {"inferred": True, "content_type": "text/plain; charset=punycode"}, b"text"),
        (b"text", {"inferred": True, "content_type": "text/plain; charset=none-such"}, b"text"),
        (b"text", {"inferred": True, "content_type": "text"}, b"text"),
        (b"", {"inferred": True, "content_type": "text/plain"}, ""),
        ({"a": "b", "f": proton.float32(1.5)}, {}, {"a": "b", "f": Float(1.5)}),
        ({symbol("a"): proton.short(2)}, {}, {"a": Short(2)}),
        ([1, None, "x"], {}, [Long(1), None, "x"]),
        (proton.Array(proton.UNDESCRIBED, proton.Data.INT, 1, 2), {}, [1, 2]),
        (proton.ulong(7), {}, [7]),
        (True, {}, [True]),
        (1.5, {}, [1.5]),
        (UUID(int=7), {}, "00000000-0000-0000-0000-000000000007"),
        (proton.timestamp(5), {}, [Long(5)]),
        (proton.Described(symbol("com.example:text"), "described"), {}, "described"),
    ],
)
def test_bodies(body: Any, fields: dict[str, Any], expected: Any) -> None:
    raw = encoded(body, **fields)
    for form in (raw, bytearray(raw)):
        got = delivery(form).body()
        assert got == expected
        assert types(got) == types(expected)


@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        ([], b""),
        ([KINDS[5]], None),
        ([KINDS[4]], []),
        ([section(0x77, "40")], None),
        ([KINDS[0], section(0x77, "40")], None),
        ([KINDS[1], section(0x77, "40")], None),
        ([KINDS[2], section(0x77, "40")], {}),
        ([KINDS[3], section(0x77, "40")], b""),
        ([KINDS[4], section(0x77, "40")], []),
        ([KINDS[5], section(0x77, "40")], None),
        ([section(0x73, listed("40 40 40 40 40 40 a303612f62"))], None),
        ([section(0x73, listed("40 40 40 40 40 40 a30a746578742f706c61696e"))], None),
        ([section(0x75, "a0 01 61"), section(0x75, "b0 00000001 62"), section(0x75, "a0 00")], b"ab"),
        ([section(0x76, "c0 03 01 54 01"), section(0x76, "45"), section(0x76, "c0 03 01 54 02")], [1, 2]),
        ([section(0x77, "a1 01 61"), section(0x78, "c1 01 00")], "a"),
        ([KINDS[5], section(0x77, "a1 01 61"), section(0x78, "c1 01 00")], "a"),
        ([KINDS[3], section(0x75, "a0 01 61"), section(0x75, "a0 01 62")], b"ab"),
        ([section(0x78, "c1 01 00")], b""),
        ([b"\x00\x80\x00\x00\x00\x00\x00\x00\x00\x77" + b"\xa1\x01a"], "a"),
        ([b"\x00\xa3\x10amqp:data:binary" + b"\xa0\x01a"], b"a"),
        ([b"\x00\xb3\x00\x00\x00\x10amqp:header:list" + b"\x45", section(0x77, "a1 01 61")], "a"),
        ([section(0x70, "45"), section(0x71, "c1 01 00"), section(0x73, "45"), section(0x77, "a1 01 61")], "a"),
    ],
)
def test_sections_of_any_form(sections: list[bytes], expected: Any) -> None:
    one = delivery(b"".join(sections))
    got = one.body()
    assert type(got) is type(expected)
    assert got == expected
    assert one.wire_count() == 1
    assert one.expires_at() == 0
    assert one.header("message_id") is None


def test_lists_and_maps_within_are_read_as_they_are() -> None:
    answer = {"attributeNames": ["name", "alternateBinding"], "results": [["orders", {"destination": "DLQ"}]]}
    one = delivery(encoded(answer))
    assert one.nested_body() == answer
    assert one.body() == answer
    assert delivery(encoded("text")).nested_body() == "text"
    for sections in ([], [section(0x75, "a0 01 61"), section(0x75, "a0 01 62")]):
        with pytest.raises(MessageFormatError, match="is not one value"):
            delivery(b"".join(sections)).nested_body()


def test_large_bodies() -> None:
    text = "é" * (8 << 20)
    for form in (bytes, bytearray):
        assert delivery(form(encoded(text, annotations=kind(5)))).body() == text
        assert delivery(form(encoded(text))).body() == text
        raw = form(encoded(text.encode(), inferred=True, annotations=kind(3)))
        data = delivery(raw).body()
        assert type(data) is bytes
        assert data == text.encode()
