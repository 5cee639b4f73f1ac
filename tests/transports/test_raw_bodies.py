"""What is left of messages that do not decode: the bytes of the body, and the properties that can be read."""

from __future__ import annotations

import pytest

from redelivery.model.destinations import Queue
from redelivery.model.errors import MessageFormatError
from redelivery.transports.amqp.codec.messages import AmqpFormat, AmqpMessage
from redelivery.transports.amqp.codec.values import read
from redelivery.transports.dialects.activemq import AMQP
from redelivery.transports.stomp.codec.raw import readable_headers

JAVA = b"x\xed\xa0\xbd\xed\xb8\x80y"  # a character beyond U+FFFF as Java's streams write it


def message(raw: bytes) -> AmqpMessage:
    return AmqpMessage(raw, AmqpFormat(AMQP, Queue("q")))


@pytest.mark.parametrize(
    ("raw", "data"),
    [
        (b"\x00Su\xa0\x03abc", b"abc"),
        (b"\x00Su\xa0\x02ab\x00Su\xa0\x01c", b"abc"),
        (b"\x00Sw\xa1\x03abc", b"abc"),
        (b"\x00Sw\xb1\x00\x00\x00\x02\xff\xfe", b"\xff\xfe"),
        (b"\x00Sw\xa0\x01a", b"a"),
        (b"\x00Sw\xa3\x01a", b"a"),
        (b"\x00Sw\x40", b""),
        (b"\x00Ss\x45", b""),
        (b"\x00Ss\x45\x00SwT\x05", b"\x00SwT\x05"),
        (b"\x00Sv\xc0\x03\x01T\x05", b"\x00Sv\xc0\x03\x01T\x05"),
        (b"\x00Sw\xa1\x05abc", b"\x00Sw\xa1\x05abc"),  # cut off
        (b"\x00Su\xa0\x01a\x00Sw\xa1\x01b", b"\x00Su\xa0\x01a\x00Sw\xa1\x01b"),  # of two kinds
        (b"no message", b"no message"),
    ],
)
def test_the_bytes_of_a_body_over_amqp(raw: bytes, data: bytes) -> None:
    assert message(raw).raw_body().data() == data


def test_what_java_writes_is_read() -> None:
    assert read(b"\xa1" + bytes([len(JAVA)]) + JAVA, 0)[0] == "x\U0001f600y"
    assert read(b"\xb1" + len(JAVA).to_bytes(4, "big") + JAVA, 0)[0] == "x\U0001f600y"
    with pytest.raises(MessageFormatError, match="not utf-8"):
        read(b"\xa1\x03\xed\xa0\xbd", 0)  # half of it


def test_readable_properties_over_amqp() -> None:
    entries = b"\xa1\x01aT\x01" + b"\xa1\x01b\xa1\x01\xff" + b"\xa1\x01\xff\x41" + b"\xa1\x01c\x42"
    found = message(b"\x00St\xc1" + bytes([len(entries) + 1, 8]) + entries + b"\x00Sw\x40").readable()
    assert found == ({"a": 1, "c": False}, ["property 'b'", "property b'\\xa1\\x01\\xff'"])
    assert message(b"\x00St\x45\x00Sw\x40").readable() == ({}, ["its properties"])
    assert message(b"\x00St\xc1\x05\x04\xa1\x01aT\x00Sw\x40").readable()[1] == ["the rest of its properties"]


def test_readable_headers_over_stomp() -> None:
    head = b"MESSAGE\na:1\n:empty\nb:\xff\nno colon\nc:x\\cy\na:2\n"
    found, left_out = readable_headers(head, "1.2")
    assert found == {"a": "1", "c": "x:y"}
    assert left_out == ["property ''", "property 'b'", "property 'no colon'"]
