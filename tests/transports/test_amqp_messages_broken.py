"""AMQP messages that a broken or hostile peer may send: MessageFormatError, and nothing else."""

from __future__ import annotations

from contextlib import suppress
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.transports.amqp_samples import delivery, encoded, kind, listed, received, section

from redelivery.model.errors import MessageFormatError
from redelivery.model.messages import HEADERS

proton = pytest.importorskip("proton")


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (b"\x00", "cut off"),
        (b"hello", "does not begin a section"),
        (section(0x70, "c0 20 01 41"), "cut off after 7 bytes"),
        (section(0x73, "c0 07 07 40 40 40 40 40 a1") + section(0x77, "40"), "go on after their end"),
        (section(0x73, "c0 01 07"), "cut off after 6 bytes"),
        (section(0x60, "45"), "does not follow the name of a section"),
        (section(0x79, "45"), "does not begin a section"),
        (b"\x00\xa3\x01x\x45", "does not begin a section"),
        (section(0x77, "a1 05 61"), "cut off"),
        (section(0x77, "a1 01 ff"), "not utf-8"),
        (section(0x77, "40") + section(0x77, "40"), "more than one"),
        (section(0x75, "a0 00") + section(0x77, "40"), "mixes"),
        (section(0x77, "40") + section(0x73, "45"), "belongs before the body"),
        (section(0x75, "a1 00"), "not a binary"),
        (section(0x76, "a1 00"), "not a list"),
        (section(0x77, "c0 07 01 c1 04 02 54 01 40"), "the map of the message has 1 as a key"),
        (section(0x77, "c1 05 02 54 01 54 01"), "1 as a key"),
        (section(0x77, "c1 04 02 a1 00 40"), "'' as a key"),
        (section(0x77, "74 3200000f") + b"\x00", "cut off"),
        (section(0x72, "45") + section(0x77, "40"), "annotations of the message are not a map"),
        (section(0x72, "c1 06 02 a3 01 61 40 40") + section(0x77, "40"), "should end"),
        (section(0x73, "a1 00") + section(0x77, "40"), "properties of the message are not a list"),
    ],
)
def test_broken_messages_are_an_error_when_they_are_read(raw: bytes, error: str) -> None:
    one = delivery(raw)
    assert one.wire_count() >= 1
    assert one.expires_at() == 0
    with pytest.raises(MessageFormatError, match=error):
        one.body()


def test_a_text_of_another_encoding_is_an_error() -> None:
    for fields in ({"content_type": "text/plain"}, {"annotations": kind(5)}):
        with pytest.raises(MessageFormatError, match="is not utf-8"):
            received(b"\xff", inferred=True, **fields).body()
    with pytest.raises(MessageFormatError, match="is not ISO-8859-77"):
        received(b"x", inferred=True, content_type="text/plain;charset=ISO-8859-77").body()


def test_an_id_of_no_type_of_ids_is_an_error() -> None:
    one = delivery(section(0x73, listed("823ff8000000000000 40 40 40 40 41")) + section(0x77, "40"))
    with pytest.raises(MessageFormatError, match="an id in the message is none"):
        one.header("message_id")
    with pytest.raises(MessageFormatError, match="an id in the message is none"):
        one.header("correlation_id")
    assert one.body() is None


FULL = encoded(
    {"key": "é", "n": [1][0], "b": b"\1\2"},
    id="ID:1",
    address="topic://news",
    reply_to="answers",
    correlation_id=UUID(int=5),
    subject="type",
    user_id=b"guest",
    creation_time=1_700_000_000.25,
    expiry_time=1_700_000_001.5,
    ttl=5.0,
    priority=9,
    durable=True,
    delivery_count=3,
    group_id="g",
    group_sequence=7,
    content_type="text/plain",
    properties={"a": 1, "b": "text", "c": 1.5, "d": None, "e": b"\1"},
    annotations={**kind(2), "x-opt-jms-dest": proton.byte(1), "x-opt-delivery-time": 1, "x-opt-list": [{"a": [1]}]},
)
TEXT = encoded("text", id="ID:1", address="a", annotations=kind(5), durable=True)
DATA = encoded(b"data", inferred=True, id=b"1", content_type="text/plain; charset=utf-16", ttl=1.0)
STREAM = encoded([1, "x", None], inferred=True, annotations={"x-opt-jms-dest": proton.byte(1)}, address="a")


def look_at_all(raw: bytes) -> None:
    """Whatever the bytes are: an answer or MessageFormatError."""
    one = delivery(raw)
    assert one.wire_count() >= 1
    assert one.expires_at() >= 0
    for read_all in (one.body, one.properties, *(lambda name=name: one.header(name) for name in HEADERS)):
        with suppress(MessageFormatError):
            read_all()


@pytest.mark.parametrize("raw", [FULL, TEXT, DATA, STREAM])
def test_a_message_cut_off_anywhere(raw: bytes) -> None:
    look_at_all(raw)
    for end in range(len(raw)):
        look_at_all(raw[:end])
        look_at_all(raw[end:])


@given(
    st.sampled_from([FULL, TEXT, DATA, STREAM]), st.lists(st.tuples(st.integers(0), st.integers(0, 255)), max_size=4)
)
def test_a_message_with_any_bytes_changed(raw: bytes, changes: list[tuple[int, int]]) -> None:
    changed = bytearray(raw)
    for at, byte in changes:
        changed[at % len(raw)] = byte
    look_at_all(bytes(changed))


def test_a_message_with_each_byte_changed() -> None:
    for raw in (FULL, TEXT, DATA, STREAM):
        for at in range(len(raw)):
            for byte in (0, 0x40, 0x45, 0x80, 0xB1, 0xC1, 0xF0, 0xFF):
                look_at_all(raw[:at] + bytes((byte,)) + raw[at + 1 :])


@given(st.binary(max_size=100))
def test_any_bytes(raw: bytes) -> None:
    look_at_all(raw)
    look_at_all(TEXT[:40] + raw)
