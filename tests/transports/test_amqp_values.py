"""AMQP types as JMS values: each constructor, both ways, and what a broken peer may send."""

from __future__ import annotations

import math
import struct
import time
from contextlib import suppress
from enum import IntEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redelivery.model.errors import MessageFormatError
from redelivery.model.values import LONG_MAX, LONG_MIN, Byte, Float, Long, Short, Value
from redelivery.transports.amqp.codec.encoding import (
    write,
    write_key,
    write_list,
    write_map,
    write_symbol,
    write_timestamp,
    write_uint,
    write_ulong,
)
from redelivery.transports.amqp.codec.values import read, read_usual_map, skip

# What stands on the wire, and what JMS has for it.
READ: list[tuple[str, Any]] = [
    ("40", None),
    ("41", True),
    ("42", False),
    ("56 01", True),
    ("56 00", False),
    ("50 ff", 255),
    ("51 ff", Byte(-1)),
    ("60 ffff", 65_535),
    ("61 8000", Short(-32_768)),
    ("43", 0),
    ("52 ff", 255),
    ("70 ffffffff", 4_294_967_295),
    ("54 80", -128),
    ("71 7fffffff", 2_147_483_647),
    ("44", 0),
    ("53 ff", 255),
    ("80 7fffffffffffffff", LONG_MAX),
    ("80 ffffffffffffffff", "18446744073709551615"),
    ("55 ff", Long(-1)),
    ("81 0000000000000007", Long(7)),
    ("81 000000007fffffff", Long(2_147_483_647)),
    ("81 0000000080000000", 2_147_483_648),
    ("81 8000000000000000", LONG_MIN),
    ("72 3fc00000", Float(1.5)),
    ("82 3ff8000000000000", 1.5),
    ("73 0001f600", "\U0001f600"),
    ("83 0000018bcfe56800", Long(1_700_000_000_000)),
    ("83 ffffffffffffffff", Long(-1)),
    ("98 000102030405060708090a0b0c0d0e0f", "00010203-0405-0607-0809-0a0b0c0d0e0f"),
    ("a0 02 00ff", b"\x00\xff"),
    ("b0 00000002 00ff", b"\x00\xff"),
    ("a1 03 61c3a9", "aé"),
    ("b1 00000003 61c3a9", "aé"),
    ("a1 03 610062", "a\0b"),
    ("a1 00", ""),
    ("a3 03 616263", "abc"),
    ("b3 00000003 616263", "abc"),
    ("45", []),
    ("c0 05 02 54 01 a1 00", [1, ""]),
    ("d0 00000006 00000002 41 42", [True, False]),
    ("c1 01 00", {}),
    ("c1 06 02 a1 01 61 54 01", {"a": 1}),
    ("d1 00000009 00000002 a3 01 61 54 01", {"a": 1}),
    ("e0 04 02 54 01 ff", [1, -1]),
    ("f0 0000000d 00000002 71 00000001 ffffffff", [1, -1]),
    ("e0 07 02 a1 01 61 02 c3a9", ["a", "é"]),
    ("e0 02 03 41", [True, True, True]),
    ("e0 02 00 40", []),
    ("e0 05 01 00 53 11 44", [0]),  # an array of described values
    ("00 53 70 a1 01 78", "x"),
    ("00 a3 01 61 00 53 71 54 05", 5),
]
DECIMALS = (0x74, 0x84, 0x94)
TYPES = {0, *DECIMALS, *(bytes.fromhex(wire)[0] for wire, _ in READ)}


@pytest.mark.parametrize(("wire", "value"), READ, ids=[wire for wire, _ in READ])
@pytest.mark.parametrize("form", [bytes, bytearray])
def test_each_type_is_read(wire: str, value: Any, form: type[bytes] | type[bytearray]) -> None:
    raw = form(b"\xff" + bytes.fromhex(wire) + b"\xff")
    got, end = read(raw, 1)
    assert got == value
    assert type(got) is type(value)
    assert end == len(raw) - 1 == skip(raw, 1)


@pytest.mark.parametrize(
    ("wire", "text"),
    [
        ("74 3200000f", "1.5"),
        ("74 b200000f", "-1.5"),
        ("74 6cb8967f", "9999999"),
        ("84 31a000000000000f", "1.5"),
        ("84 31c0000000000000", "0"),
        ("84 7800000000000000", "Infinity"),
        ("84 f800000000000000", "-Infinity"),
        ("84 7c00000000000000", "NaN"),
        ("94 303e000000000000000000000000000f", "1.5"),
        ("94 30400000000000000000000000000001", "1"),
        ("74 6cbfffff", "0"),  # a significand of more digits than it may have is 0
    ],
)
def test_decimals_are_their_text(wire: str, text: str) -> None:
    raw = bytes.fromhex(wire)
    assert read(raw, 0) == (text, len(raw))


def test_nan_and_infinite_floats_arrive() -> None:
    assert math.isnan(read(write(math.nan, "x"), 0)[0])
    assert read(write(-math.inf, "x"), 0)[0] == -math.inf
    got = read(write(Float(math.inf), "x"), 0)[0]
    assert got == math.inf
    assert type(got) is Float


@pytest.mark.parametrize("wire", [wire for wire, _ in READ])
def test_what_is_cut_off_is_an_error(wire: str) -> None:
    raw = bytes.fromhex(wire)
    for end in range(len(raw)):
        with pytest.raises(MessageFormatError):
            read(raw[:end], 0)


def test_unknown_types_are_an_error() -> None:
    for code in set(range(256)).difference(TYPES):
        for reader in (read, skip):
            with pytest.raises(MessageFormatError, match="is not an AMQP type"):
                reader(bytes((code,)) + bytes(300), 0)


@pytest.mark.parametrize(
    ("wire", "error"),
    [
        ("c0 04 01 54 01 00", "should end"),  # a list that ends before its size
        ("c0 02 01 54 01", "should end"),  # and one that goes on behind it
        ("e0 05 02 54 01 ff 07", "should end"),  # an array likewise
        ("e0 04 01 a1 03 6162 63", "should end"),
        ("c0 02 05 40", "5 items in 1 bytes"),
        ("c1 02 01 40", "a key without a value"),
        ("c1 03 02 45 40", "as a key"),
        ("d0 00000005 ffffffff 40", "4294967295 items"),
        ("f0 00000005 ffffffff 40", "4294967295 items"),  # of nothing each
        ("f0 00000006 ffffffff 50 01", "4294967295 items"),
        ("e0 02 01 3f", "1 items of 0x3f"),
        ("a1 01 ff", "utf-8"),
        ("b1 00000002 c328", "utf-8"),
        ("a3 01 ff", "ascii"),
        ("73 0000d800", "char"),
        ("73 7fffffff", "char"),
    ],
)
def test_broken_values_are_an_error(wire: str, error: str) -> None:
    with pytest.raises(MessageFormatError, match=error):
        read(bytes.fromhex(wire), 0)


@pytest.mark.parametrize(
    "start",
    [
        b"\x00",
        b"\x00\x40",
        b"\xd0\x00\x0f\xff\xff\x00\x00\x00\x01",
        b"\xf0\x00\x0f\xff\xff\x00\x00\x00\x01",
        b"\xf0\x00\x0f\xff\xff\x00\x00\x00\x01\x00\x40",
        b"\xd0\x00\x0f\xff\xff\x00\x0f\x00\x00",
        b"\x40",
    ],
    ids=["descriptors", "values", "lists", "arrays", "described arrays", "long lists", "nulls"],
)
def test_a_megabyte_of_nesting_takes_no_time(start: bytes) -> None:
    raw = start * (1_000_000 // len(start))
    began = time.process_time()
    with suppress(MessageFormatError):
        read(raw, 0)
    with suppress(MessageFormatError, IndexError):
        skip(raw, 0)
    assert time.process_time() - began < 5


def test_values_nest_32_deep() -> None:
    raw = b"\x45"
    for _ in range(32):
        raw = write_list([raw])
    assert read(raw, 0)[1] == len(raw)
    with pytest.raises(MessageFormatError, match="nests values"):
        read(write_list([raw]), 0)


PROPERTIES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(LONG_MIN, LONG_MAX),
    st.integers(-128, 127).map(Byte),
    st.integers(-32_768, 32_767).map(Short),
    st.integers(-(1 << 31), (1 << 31) - 1).map(Long),
    st.floats(allow_nan=False),
    st.floats(allow_nan=False, width=32).map(Float),
    st.text(),
    st.binary(),
)


@given(PROPERTIES)
def test_what_is_written_is_read(value: Value) -> None:
    raw = write(value, "x")
    got, end = read(raw, 0)
    assert got == value
    assert type(got) is type(value)
    assert end == len(raw) == skip(raw, 0)


@given(st.lists(PROPERTIES, max_size=300), st.dictionaries(st.text(min_size=1), PROPERTIES, max_size=200))
def test_lists_and_maps_are_read(items: list[Value], entries: dict[str, Value]) -> None:
    assert read(write_list([write(item, "x") for item in items]), 0)[0] == items
    encoded = [part for name, value in entries.items() for part in (write_key(name), write(value, "x"))]
    assert read(write_map(encoded), 0)[0] == entries


@pytest.mark.parametrize("length", [0, 1, 255, 256, 65_536])
def test_long_values_have_long_lengths(length: int) -> None:
    for value in ("x" * length, b"x" * length):
        assert read(write(value, "x"), 0) == (value, length + (2 if length < 256 else 5))
    assert read(write_list([b"\x40"] * length), 0)[0] == [None] * length


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_are_an_error(raw: bytes) -> None:
    try:
        _, end = read(raw, 0)
    except MessageFormatError:
        return
    assert end == skip(raw, 0) <= len(raw)


class Colour(IntEnum):
    RED = 3


class Name(str):
    pass


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Colour.RED, 3),
        (Name("n"), "n"),
        (True, True),
        (255, 255),
        (127, 127),
        (128, 128),
        (-128, -128),
        (-129, -129),
        (Long(127), Long(127)),
        (Long(128), Long(128)),
        (1 << 31, 1 << 31),
        (Long(-200), Long(-200)),
    ],
)
def test_subclasses_and_edges_are_written_as_their_type(value: Value, expected: Value) -> None:
    got = read(write(value, "x"), 0)[0]
    assert got == expected
    assert type(got) is type(expected)


def test_what_cannot_be_written_is_named() -> None:
    with pytest.raises(MessageFormatError, match=r"property 'p': AMQP cannot carry '\\ud800'"):
        write("\ud800", "property", "p")
    with pytest.raises(MessageFormatError, match="stream item 3: AMQP cannot carry 9223372036854775808"):
        write(LONG_MAX + 1, "stream item", 3)
    with pytest.raises(MessageFormatError, match=r"^body: .*object"):
        write(object(), "body")  # type: ignore[arg-type]  # what a caller may do


def test_the_types_of_fields() -> None:
    assert write_symbol("abc") == b"\xa3\x03abc"
    assert write_uint(255) == b"\x52\xff"
    assert write_uint(256) == b"\x70\x00\x00\x01\x00"
    assert write_ulong(1) == b"\x80" + struct.pack(">Q", 1)
    assert read(write_timestamp(-1), 0)[0] == -1


@given(st.dictionaries(st.text("aü", max_size=3), PROPERTIES, max_size=4), st.data())
def test_a_usual_map_is_read_as_any_other(sent: dict[str, Value], data: st.DataObject) -> None:
    """Also where a byte of it is another one, or it is cut off: then it is not usual, or is the same all the same."""
    raw = bytearray(write_map([part for name, value in sent.items() for part in (write_key(name), write(value, "x"))]))
    assert read_usual_map(raw, 0) in (None, read(raw, 0)[0])
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    for broken in (raw, raw[: data.draw(st.integers(0, len(raw)))]):
        found = read_usual_map(broken, 0)
        if found is not None:
            assert repr(found) == repr(read(broken, 0)[0])


@pytest.mark.parametrize(
    ("encoded", "expected"),
    [
        ("c1 0b 04 a1 01 61 a1 01 78 a1 01 62 43", {"a": "x", "b": 0}),
        ("c1 01 00", {}),
        ("c1 07 02 a1 01 61 a0 01 78", None),
        ("d1 0000000b 00000002 a1 01 61 a1 02 78 79", None),
        ("c1 04 01 a1 01 61", None),
        ("c1 07 02 a1 01 61 a1 01 ff", None),
        ("c1 07 02 a1 01 61 a1 02 78", None),
        ("45", None),
    ],
)
def test_which_maps_are_usual(encoded: str, expected: dict[str, Any] | None) -> None:
    assert read_usual_map(bytes.fromhex(encoded), 0) == expected
