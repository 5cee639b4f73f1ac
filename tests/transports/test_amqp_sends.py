"""AMQP messages as they are sent: what Qpid JMS would write, so that any JMS client reads it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.transports.test_amqp_values import PROPERTIES

from redelivery.model.destinations import Queue, TemporaryQueue, TemporaryTopic, Topic
from redelivery.model.errors import InvalidDestinationError, MessageFormatError, UnsupportedError
from redelivery.model.messages import HEADERS, Message
from redelivery.model.values import Byte, Float, Long, Short, Value
from redelivery.transports.amqp.codec.messages import AmqpFormat, AmqpMessage
from redelivery.transports.amqp.codec.sends import LARGE, encode
from redelivery.transports.dialects import activemq, qpid, rabbitmq
from redelivery.transports.dialects.amqp import AmqpDialect

proton = pytest.importorskip("proton")
CLASSIC = activemq.AMQP
NOW = 1_800_000_000_000


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redelivery.transports.amqp.codec.sends.epoch_ms", lambda: NOW)


def stamped(body: Any = "x", *, stamps: dict[str, Any] | None = None, **fields: Any) -> Message:
    message = Message(body, **fields)
    message.stamp(
        **{
            "destination": Queue("orders"),
            "persistent": True,
            "priority": 4,
            "timestamp": NOW,
            "expiration": None,
            "delivery_time": None,
            "message_id": None,
            **(stamps or {}),
        }
    )
    return message


def raw_of(message: Message, dialect: AmqpDialect = CLASSIC) -> bytes:
    return b"".join(encode(message, "ID:1", "orders", dialect))


def by_proton(message: Message, dialect: AmqpDialect = CLASSIC) -> Any:
    """As another client reads it."""
    decoded = proton.Message()
    decoded.decode(raw_of(message, dialect))
    return decoded


def by_us(message: Message, dialect: AmqpDialect = CLASSIC) -> Message:
    return Message.received(AmqpMessage(raw_of(message, dialect), AmqpFormat(dialect, Queue("orders"))), 0, None)


@pytest.mark.parametrize(
    ("body", "kind", "inferred", "expected"),
    [
        (None, 0, False, None),
        ("text é\0\U0001f600", 5, False, "text é\0\U0001f600"),
        ("", 5, False, ""),
        (b"\0\xff", 3, True, b"\0\xff"),
        (b"", 3, True, b""),
        ({"a": 1, "b": b"\1", "c": None}, 2, False, {"a": 1, "b": b"\1", "c": None}),
        ({}, 2, False, {}),
        ([1, "x", b"\1", None, True], 4, True, [1, "x", b"\1", None, True]),
        ([], 4, True, []),
    ],
)
def test_bodies_as_qpid_jms_writes_them(body: Any, kind: int, inferred: bool, expected: Any) -> None:
    message = stamped(body)
    got = by_proton(message)
    assert got.body == expected
    assert isinstance(got.body, str) == isinstance(body, str)
    assert bool(got.inferred) == inferred
    assert got.annotations == {"x-opt-jms-msg-type": kind, "x-opt-jms-dest": 0}
    assert all(type(value) is proton.byte for value in got.annotations.values())
    # Where there is none, proton says that it is "None".
    assert got.content_type == ("application/octet-stream" if kind == 3 else "None")
    assert by_us(message).body == body
    assert type(by_us(message).body) is type(body)


def test_a_usual_message() -> None:
    got = by_proton(stamped("x"))
    assert (got.id, got.address, got.durable, got.priority) == ("ID:1", "orders", True, 4)
    assert got.creation_time == NOW / 1000
    assert (got.ttl, got.expiry_time, got.delivery_count, got.subject, got.reply_to) == (0, 0, 0, None, None)
    assert (got.correlation_id, got.group_id, got.properties) == (None, None, None)


def test_each_header() -> None:
    message = stamped(
        "x",
        correlation_id="c",
        reply_to="topic://answers",
        type="type",
        group_id="g",
        group_sequence=7,
        properties={"p": 1},
        stamps={"destination": Topic("news"), "persistent": False, "priority": 9, "expiration": NOW + 5_000},
    )
    got = by_proton(message)
    assert got.annotations == {"x-opt-jms-msg-type": 5, "x-opt-jms-dest": 1, "x-opt-jms-reply-to": 1}
    assert (got.durable, got.priority, got.ttl, got.expiry_time) == (False, 9, 5.0, NOW / 1000 + 5)
    assert (got.subject, got.reply_to, got.correlation_id) == ("type", "topic://answers", "c")
    assert (got.group_id, got.group_sequence, got.properties) == ("g", 7, {"p": 1})
    ours = by_us(message)
    expected = {name: getattr(message, name) for name in HEADERS} | {
        "message_id": "ID:1",
        "destination": Topic("orders"),
    }
    assert {name: getattr(ours, name) for name in HEADERS} == expected


@pytest.mark.parametrize(
    ("destination", "kind"), [(Queue("a"), 0), (Topic("a"), 1), (TemporaryQueue("a"), 2), (TemporaryTopic("a"), 3)]
)
def test_kinds_of_destinations_are_bytes(destination: Any, kind: int) -> None:
    message = stamped("x", reply_to=destination, stamps={"destination": destination})
    got = by_proton(message)
    assert got.annotations == {"x-opt-jms-msg-type": 5, "x-opt-jms-dest": kind, "x-opt-jms-reply-to": kind}
    assert by_us(message).reply_to == destination


def test_the_reply_address_has_the_brokers_prefix() -> None:
    message = stamped("x", reply_to="topic://answers")
    assert by_proton(message, qpid.AMQP).reply_to == "amq.topic/answers"
    assert by_us(message, qpid.AMQP).reply_to == Topic("answers")


@pytest.mark.parametrize(
    ("given", "wire"),
    [
        ("text", "text"),
        ("", ""),
        ("ID:1", "ID:1"),
        ("ID:AMQP_OTHER:1", "ID:AMQP_OTHER:1"),
        ("ID:AMQP_NO_PREFIX:x", "x"),
        ("ID:AMQP_STRING:ID:AMQP_UUID:x", "ID:AMQP_UUID:x"),
        (f"ID:AMQP_UUID:{UUID(int=7)}", UUID(int=7)),
        ("ID:AMQP_ULONG:18446744073709551615", (1 << 64) - 1),
        ("ID:AMQP_BINARY:00aB", b"\x00\xab"),
        (b"\x00\xff", b"\x00\xff"),
        (b"", b""),
    ],
)
def test_correlation_ids(given: str | bytes, wire: Any) -> None:
    message = by_proton(stamped("x", correlation_id=given))  # keeps the bytes that a memoryview of it shows
    got = message.correlation_id
    assert got == wire
    assert isinstance(got, str) == isinstance(wire, str)


@pytest.mark.parametrize(
    "given",
    [
        "ID:AMQP_UUID:x",
        "ID:AMQP_ULONG:-1",
        "ID:AMQP_ULONG:",
        "ID:AMQP_ULONG:18446744073709551616",
        "ID:AMQP_ULONG:" + "9" * 100_000,
        "ID:AMQP_ULONG:٣",
        "ID:AMQP_BINARY:0",
        "ID:AMQP_BINARY:zz",
        "\ud800",
    ],
)
def test_correlation_ids_that_are_none(given: str) -> None:
    with pytest.raises(MessageFormatError, match="correlation_id="):
        raw_of(stamped("x", correlation_id=given))


def test_what_was_received_can_be_answered() -> None:
    """JMS: the id of a request is the correlation id of its reply, of whatever type the request's was."""
    for request_id in ("plain", UUID(int=3), proton.ulong(5), b"\1\2", "ID:AMQP_STRING:x"):
        request = proton.Message(id=request_id, body="x").encode()
        message_id = AmqpMessage(request, AmqpFormat(CLASSIC, Queue("orders"))).header("message_id")
        assert by_proton(stamped("reply", correlation_id=message_id)).correlation_id == request_id


def test_an_expiry_beyond_what_a_ttl_can_say_is_absolute_only() -> None:
    for expiration in (NOW + (1 << 32), datetime(9999, 1, 1, tzinfo=UTC)):
        got = by_proton(stamped("x", stamps={"expiration": expiration}))
        assert got.ttl == 0
        assert got.expiry_time > NOW / 1000 + 4_000_000
    assert by_proton(stamped("x", stamps={"expiration": NOW + (1 << 32) - 1})).ttl == ((1 << 32) - 1) / 1000


def test_what_has_expired_has_the_shortest_ttl() -> None:
    got = by_proton(stamped("x", stamps={"expiration": NOW - 5_000}))
    assert (got.ttl, got.expiry_time) == (0.001, NOW / 1000 - 5)


def test_a_ttl_is_counted_from_now_and_not_from_the_timestamp() -> None:
    late = stamped("x", stamps={"timestamp": NOW - 60_000, "expiration": NOW + 5_000})
    assert by_proton(late).ttl == 5.0


def test_delays_are_the_dialects_annotation() -> None:
    message = stamped("x", stamps={"delivery_time": NOW + 5_000})
    got = by_proton(message)
    assert got.annotations["x-opt-delivery-delay"] == 5_000
    assert type(got.annotations["x-opt-delivery-delay"]) is int  # a long
    assert by_us(message).delivery_time == datetime.fromtimestamp((NOW + 5_000) / 1000, UTC)
    as_time = replace(CLASSIC, delay_annotation="x-opt-delivery-time", delay_is_time=True)
    assert by_proton(message, as_time).annotations["x-opt-delivery-time"] == NOW + 5_000
    due = stamped("x", stamps={"delivery_time": NOW})
    assert (
        by_proton(due).annotations
        == by_proton(due, rabbitmq.AMQP).annotations
        == {"x-opt-jms-msg-type": 5, "x-opt-jms-dest": 0}
    )
    with pytest.raises(UnsupportedError, match="no delayed delivery"):
        raw_of(message, rabbitmq.AMQP)


def test_times_may_be_datetimes() -> None:
    stamps = {
        "timestamp": datetime.fromtimestamp(NOW / 1000, UTC),
        "expiration": datetime.fromtimestamp(NOW / 1000 + 5, UTC),
    }
    message = stamped("x", stamps=stamps)
    assert raw_of(message) == raw_of(stamped("x", stamps={"expiration": NOW + 5_000}))
    assert by_us(message).timestamp == stamps["timestamp"]


def test_properties_have_the_types_of_jms() -> None:
    types = {
        "byte": (Byte(-1), proton.byte),
        "short": (Short(-2), proton.short),
        "int": (3, proton.int32),
        "large": (-(1 << 40), int),
        "long": (Long(5), int),
        "float": (Float(1.5), proton.float32),
        "double": (2.5, float),
        "text": ("é\0", str),
        "true": (True, bool),
        "null": (None, type(None)),
    }
    message = stamped("x", properties={name: value for name, (value, _) in types.items()})
    got = by_proton(message).properties
    assert got == message.properties
    assert {name: type(value) for name, value in got.items()} == {name: kind for name, (_, kind) in types.items()}


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (stamped("\ud800"), "^body: "),
        (stamped({"a": "\ud800"}), "^map entry 'a': "),
        (stamped({"\ud800": 1}), "^map entry "),
        (stamped(["x", "\ud800"]), "^stream item 1: "),
        (stamped("x", properties={"p": "\ud800"}), "^property 'p': "),
        (stamped("x", properties={"\ud800": 1}), "^property "),
        (stamped("x", type="\ud800"), "^type: "),
        (stamped("x", group_id="\ud800"), "^group_id: "),
        (stamped("x", group_sequence=1 << 32), "^group_sequence="),
        (stamped("x", reply_to=Queue("\ud800")), "^reply_to "),
    ],
)
def test_what_amqp_cannot_carry_is_named(message: Message, error: str) -> None:
    with pytest.raises(MessageFormatError, match=error):
        raw_of(message)


def test_an_address_or_id_that_amqp_cannot_carry_is_named() -> None:
    with pytest.raises(MessageFormatError, match=r"^destination "):
        encode(stamped("x"), "ID:1", "\ud800", CLASSIC)
    with pytest.raises(MessageFormatError, match=r"^message_id="):
        encode(stamped("x"), "ID:\ud800", "orders", CLASSIC)


def test_destinations_that_cannot_be_sent_to() -> None:
    with pytest.raises(InvalidDestinationError, match="without a destination"):
        encode(Message("x"), "ID:1", "orders", CLASSIC)
    for message in (
        stamped("x", stamps={"destination": Topic("a.*")}),
        stamped("x", type="t", stamps={"destination": Topic(">")}),
    ):
        with pytest.raises(InvalidDestinationError, match="is a pattern"):
            raw_of(message)


@pytest.mark.parametrize("body", ["é" * (8 << 20), b"\1" * (16 << 20), "x" * LARGE, b"x" * (LARGE + 1)])
def test_a_large_body_is_a_part_of_its_own(body: Any) -> None:
    parts = encode(stamped(body), "ID:1", "orders", CLASSIC)
    size = len(body.encode()) if isinstance(body, str) else len(body)
    assert len(parts) == (2 if size > LARGE else 1)
    if isinstance(body, bytes) and size > LARGE:
        assert parts[1] is body  # not copied
    assert by_us(stamped(body)).body == body


BODIES = st.one_of(
    st.none(), st.text(), st.binary(), st.lists(PROPERTIES), st.dictionaries(st.text(min_size=1), PROPERTIES)
)


@given(
    BODIES,
    st.dictionaries(
        st.text(min_size=1).filter(lambda name: not name.startswith("JMS")),
        PROPERTIES.filter(lambda value: not isinstance(value, bytes)),
    ),
    st.one_of(st.none(), st.text(), st.binary()),
    st.one_of(st.none(), st.text()),
)
def test_any_message_arrives_as_it_was_sent(
    body: Any, properties: dict[str, Value], correlation_id: str | bytes | None, text: str | None
) -> None:
    message = stamped(body, properties=properties, correlation_id=correlation_id, type=text, group_id=text)
    got = by_us(message)
    assert got.body == body
    assert type(got.body) is type(body)
    assert got.properties == properties
    assert {name: type(value) for name, value in got.properties.items()} == {
        name: type(value) for name, value in properties.items()
    }
    assert (got.correlation_id, got.type, got.group_id) == (correlation_id, text, text)
    others = by_proton(message)
    assert (others.properties or {}) == properties
    assert others.body == body
