"""Messages of one link that begin alike, or not: each is read as if it had come alone."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from tests.transports.amqp_samples import encoded

from redelivery.model.destinations import Queue
from redelivery.model.errors import MessageFormatError
from redelivery.transports.amqp.codec.messages import AmqpFormat, AmqpMessage
from redelivery.transports.dialects import activemq

TEXT = {"x-opt-jms-msg-type": 5}
HEADER = b"\x00\x53\x70\xc0\x06\x05\x40\x40\x40\x40\x43"  # of which proton writes less
PROPERTIES = b"\x00\x53\x73\xc0\x06\x01\xa1\x03ID:"
LONG_PROPERTIES = b"\x00\x80\x00\x00\x00\x00\x00\x00\x00\x73\xc0\x07\x01\xa1\x04ID:x"
APPLICATION = b"\x00\x53\x74\xc1\x07\x02\xa1\x01a\xa1\x01b"
BODY = b"\x00\x53\x77\xa1\x01x"
RAW = (
    encoded("one", id="ID:1", durable=True, annotations=TEXT),
    encoded("two", id="ID:22", durable=True, annotations=TEXT, properties={"a": 1}),
    encoded("three", id="ID:333", durable=True, delivery_count=3, annotations=TEXT, address="orders"),
    encoded(b"four", inferred=True, id="ID:4", annotations={"x-opt-jms-msg-type": 3}),
    encoded("five"),
    bytearray(encoded("six", id="ID:6", durable=True, annotations=TEXT)),
    PROPERTIES + BODY,
    HEADER + LONG_PROPERTIES + BODY,
    HEADER + PROPERTIES + APPLICATION + BODY,
    HEADER + APPLICATION + PROPERTIES + BODY,  # in the wrong order, and read all the same
    HEADER + BODY + PROPERTIES,
    HEADER,
    HEADER[:-1],
    encoded("seven", id="ID:7", durable=True, annotations=TEXT)[:-2],
)


def said(raw: bytes | bytearray, of: AmqpFormat) -> list[Any]:
    message = AmqpMessage(raw, of)
    found: list[Any] = [message.wire_count(), message.expires_at()]
    for ask in (message.body, lambda: message.header("message_id"), lambda: dict(message.properties())):
        try:
            found.append(ask())
        except MessageFormatError as error:
            found.append(str(error))
    return found


def new_format() -> AmqpFormat:
    return AmqpFormat(activemq.AMQP, Queue("orders"))


@pytest.mark.parametrize("number", range(len(RAW)))
def test_each_is_read_as_if_it_had_come_alone(number: int) -> None:
    for first, second in permutations(range(len(RAW)), 2):
        if number in (first, second):
            link = new_format()
            for each in (first, second, second, first):
                assert said(RAW[each], link) == said(RAW[each], new_format())
