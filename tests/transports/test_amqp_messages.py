"""AMQP messages as deliveries: what any client or broker may have written is what Qpid JMS makes of it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from tests.transports.amqp_samples import delivery, encoded, kind, listed, received, section

from redelivery.model.destinations import Destination, Queue, TemporaryQueue, TemporaryTopic, Topic
from redelivery.model.errors import MessageFormatError
from redelivery.model.messages import HEADERS, Message
from redelivery.model.values import Byte, Float, Long, Short
from redelivery.transports.dialects import activemq, artemis, qpid, rabbitmq
from redelivery.transports.dialects.amqp import AmqpDialect

proton = pytest.importorskip("proton")
symbol = proton.symbol
NOW = 1_800_000_000_000


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redelivery.transports.amqp.codec.messages.epoch_ms", lambda: NOW)


def test_a_delivery_is_ready_for_the_ledger() -> None:
    one = received("x")
    assert (one.redeliveries, one.state, one.cause, one.credited) == (0, 0, None, False)
    assert one.handle == "handle"
    assert one.link is one.receiver.link


@pytest.mark.parametrize(("count", "expected"), [(0, 1), (1, 2), (300, 301)])
def test_the_header_counts_failed_deliveries(count: int, expected: int) -> None:
    one = delivery(encoded("x", delivery_count=count, durable=True), artemis.AMQP)
    assert one.wire_count() == expected
    message = Message.received(one, 2, None)
    assert message.delivery_count == expected + 2


@pytest.mark.parametrize(
    ("header", "dialect", "count"),
    [
        (listed(""), rabbitmq.AMQP, 1),
        (listed("41 5004 40 41"), rabbitmq.AMQP, 1),
        (listed("41 5004 40 42"), rabbitmq.AMQP, 2),
        (listed("41 5004 40 42"), activemq.AMQP, 1),
        (listed("41 5004 40 42 5203"), rabbitmq.AMQP, 4),
        (listed("41 40 40 42 43"), rabbitmq.AMQP, 2),
        ("d0 0000000a 00000004 41 40 40 42 5203", activemq.AMQP, 1),  # of a wrong length
        ("a1 00", activemq.AMQP, 1),  # no list
        (listed("40 40 40 40 54ff"), activemq.AMQP, 1),
        (listed("40 40 40 40 41"), activemq.AMQP, 1),  # a count that is not a number
    ],
)
def test_redelivered_by_first_acquirer(header: str | bytes, dialect: AmqpDialect, count: int) -> None:
    one = delivery(section(0x70, header) + section(0x77, "a1 01 61"), dialect)
    assert one.wire_count() == count
    assert one.body() == "a"


def test_expiry_is_the_absolute_one_or_the_ttl_from_now(monkeypatch: pytest.MonkeyPatch) -> None:
    assert received("x").expires_at() == 0
    assert received("x", expiry_time=1_700_000_000.5).expires_at() == 1_700_000_000_500
    assert received("x", expiry_time=1_700_000_000.5, ttl=5.0).expires_at() == 1_700_000_000_500
    relative = received("x", ttl=5.0)
    assert relative.expires_at() == NOW + 5_000
    monkeypatch.setattr("redelivery.transports.amqp.codec.messages.epoch_ms", lambda: NOW + 1)
    assert relative.expires_at() == NOW + 5_000  # asked again, it is the same
    assert relative.header("expiration") == datetime.fromtimestamp((NOW + 5_000) / 1000, UTC)


ID_TEXTS = [
    ("ID:a-1", "ID:a-1", "ID:a-1"),
    ("ID:é", "ID:é", "ID:é"),
    ("ID:" + "x" * 300, "ID:" + "x" * 300, "ID:" + "x" * 300),
    ("plain", "ID:AMQP_NO_PREFIX:plain", "plain"),
    ("", "ID:AMQP_NO_PREFIX:", ""),
    ("ID:AMQP_OTHER:x", "ID:AMQP_OTHER:x", "ID:AMQP_OTHER:x"),
    ("ID:AMQP_UUID:x", "ID:AMQP_STRING:ID:AMQP_UUID:x", "ID:AMQP_STRING:ID:AMQP_UUID:x"),
    (UUID(int=7), f"ID:AMQP_UUID:{UUID(int=7)}", f"ID:AMQP_UUID:{UUID(int=7)}"),
    (proton.ulong(7), "ID:AMQP_ULONG:7", "ID:AMQP_ULONG:7"),
    (proton.ulong(0), "ID:AMQP_ULONG:0", "ID:AMQP_ULONG:0"),
    (proton.ulong((1 << 64) - 1), "ID:AMQP_ULONG:18446744073709551615", "ID:AMQP_ULONG:18446744073709551615"),
    (b"\x00\xab", "ID:AMQP_BINARY:00AB", b"\x00\xab"),
    (b"", "ID:AMQP_BINARY:", b""),
]


@pytest.mark.parametrize(("wire", "message_id", "correlation_id"), ID_TEXTS)
def test_ids_of_any_type(wire: Any, message_id: str, correlation_id: str | bytes) -> None:
    one = received("x", id=wire, correlation_id=wire)
    assert one.header("message_id") == message_id
    assert one.header("correlation_id") == correlation_id


def test_headers_that_are_not_set() -> None:
    one = received("x")
    expected = {"destination": Queue("orders"), "priority": 4, "persistent": False}
    assert {name: one.header(name) for name in HEADERS} == {name: expected.get(name) for name in HEADERS}


def test_a_priority_beyond_those_of_jms_is_the_highest() -> None:
    assert received("x", priority=200).header("priority") == 9


def test_headers() -> None:
    one = received(
        "x",
        id="ID:1",
        address="news",
        reply_to="answers",
        correlation_id="c",
        subject="type",
        creation_time=1_700_000_000.25,
        expiry_time=1_700_000_001.5,
        priority=9,
        durable=True,
        group_id="g",
        group_sequence=7,
        annotations={
            "x-opt-jms-dest": proton.byte(1),
            "x-opt-jms-reply-to": proton.byte(0),
            "x-opt-delivery-time": 1_700_000_002_000,
        },
    )
    assert {name: one.header(name) for name in HEADERS} == {
        "message_id": "ID:1",
        "destination": Topic("news"),
        "reply_to": Queue("answers"),
        "correlation_id": "c",
        "type": "type",
        "timestamp": datetime.fromtimestamp(1_700_000_000.25, UTC),
        "expiration": datetime.fromtimestamp(1_700_000_001.5, UTC),
        "delivery_time": datetime.fromtimestamp(1_700_000_002, UTC),
        "priority": 9,
        "persistent": True,
        "group_id": "g",
        "group_sequence": 7,
    }


def test_a_delay_is_counted_from_the_creation() -> None:
    delay = {"x-opt-delivery-delay": proton.ulong(2_000)}
    delayed = received("x", creation_time=1_700_000_000.0, annotations=delay)
    assert delayed.header("delivery_time") == datetime.fromtimestamp(1_700_000_002, UTC)
    assert received("x", annotations=delay).header("delivery_time") is None


@pytest.mark.parametrize(
    ("annotations", "address", "link", "expected"),
    [
        ({}, "a", Queue("q"), Queue("a")),
        ({}, "a", Topic("t"), Topic("a")),
        ({}, "topic://a", Queue("q"), Topic("a")),
        ({}, "queue://a", Topic("t"), Queue("a")),
        ({"x": proton.byte(1)}, "a", Queue("q"), Topic("a")),
        ({"x": proton.byte(2)}, "temp-queue://a", Queue("q"), TemporaryQueue("temp-queue://a")),
        ({"x": proton.byte(3)}, "a", Queue("q"), TemporaryTopic("a")),
        ({"x": proton.byte(9)}, "a", Queue("q"), Queue("a")),
        ({"x": proton.byte(-1)}, "a", Queue("q"), Queue("a")),
        ({"old": "queue,temporary"}, "a", Topic("t"), TemporaryQueue("a")),
        ({"old": "topic"}, "a", Queue("q"), Topic("a")),
        ({"old": "other"}, "a", Topic("t"), Topic("a")),
        ({"x": 1.5}, "a", Topic("t"), Topic("a")),
    ],
)
def test_destinations(annotations: dict[str, Any], address: str, link: Destination, expected: Destination) -> None:
    to = {{"x": "x-opt-jms-dest", "old": "x-opt-to-type"}[name]: value for name, value in annotations.items()}
    reply = {{"x": "x-opt-jms-reply-to", "old": "x-opt-reply-type"}[name]: value for name, value in annotations.items()}
    raw = encoded("x", address=address, reply_to=address, annotations={**to, **reply})
    one = delivery(raw, destination=link)
    assert one.header("destination") == expected
    assert one.header("reply_to") == expected


def test_an_address_that_is_none_is_the_links_destination() -> None:
    for address in ("a100", "a1022061", "a103610062", "5401"):
        one = delivery(section(0x73, listed(f"40 40 {address} 40 {address}")) + section(0x77, "40"), qpid.AMQP)
        assert one.header("destination") == Queue("orders")
        assert one.header("reply_to") is None


def test_properties_have_the_types_of_jms() -> None:
    own = {
        "bool": (True, True),
        "byte": (proton.byte(-1), Byte(-1)),
        "short": (proton.short(-2), Short(-2)),
        "int": (proton.int32(-3), -3),
        "long": (5, Long(5)),
        "large": (1 << 40, 1 << 40),
        "float": (proton.float32(1.5), Float(1.5)),
        "double": (2.5, 2.5),
        "text": ("é\0", "é\0"),
        "null": (None, None),
        "ubyte": (proton.ubyte(200), 200),
        "symbol": (symbol("s"), "s"),
        "char": (proton.char("c"), "c"),
        "when": (proton.timestamp(7), Long(7)),
        "binary": (b"\xc3\xa9", "é"),
        "noise": (b"\xff\x01", "FF01"),
    }
    one = received(
        "x",
        properties={name: wire for name, (wire, _) in own.items()},
        annotations={"x-opt-ORIG-ADDRESS": "orders", **kind(5)},
    )
    got = one.properties()
    assert got == {name: value for name, (_, value) in own.items()}
    assert {name: type(value) for name, value in got.items()} == {name: type(value) for name, (_, value) in own.items()}
    with pytest.raises(TypeError):
        got["x"] = 1  # type: ignore[index]  # what the application may try
    assert Message.received(one, 0, None).copy().properties == got


def test_properties_that_there_are_none_of() -> None:
    assert received("x").properties() == {}
    raw = section(0x74, "c1 0a 04 a1 01 61 45 a1 01 62 54 01") + section(0x77, "40")
    assert delivery(raw).properties() == {"a": [], "b": 1}  # a list is nothing that AMQP allows there, yet it came
    with pytest.raises(MessageFormatError, match="not a map"):
        delivery(section(0x74, "45") + section(0x77, "40")).properties()


def test_the_user_is_a_property_that_is_not_copied() -> None:
    one = received("x", user_id=b"guest", properties={"a": "b"})
    assert one.properties() == {"a": "b", "JMSXUserID": "guest"}
    assert Message.received(one, 0, None).copy().properties == {"a": "b"}


def test_another_prefix_of_the_dialect() -> None:
    one = delivery(encoded("x", address="/topic/news"), rabbitmq.AMQP)
    assert one.header("destination") == Topic("news")
