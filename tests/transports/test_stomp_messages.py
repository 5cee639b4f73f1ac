"""Messages and frames: what is sent is what a JMS client gets, and the other way round; no header becomes another."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.transports.scripted import text

from redelivery.model.destinations import Queue, Topic
from redelivery.model.errors import InvalidDestinationError, MessageFormatError, UnsupportedError
from redelivery.model.messages import Message
from redelivery.model.values import Byte, Float, Long, Short
from redelivery.transports.dialects import activemq, artemis, hornetq, rabbitmq, unknown
from redelivery.transports.dialects.dialect import StompDialect
from redelivery.transports.seam import Link, LinkSpec
from redelivery.transports.stomp.codec.frames import Frame, encode
from redelivery.transports.stomp.codec.maps import read_map
from redelivery.transports.stomp.codec.reader import FrameReader
from redelivery.transports.stomp.codec.sends import SendEncoder
from redelivery.transports.stomp.connection.subscriptions import StompDelivery, StompSubscription

ACTIVEMQ = activemq.STOMP
DIALECTS = [ACTIVEMQ, artemis.STOMP, hornetq.STOMP, rabbitmq.STOMP, unknown.STOMP]


def sent(message: Message, dialect: StompDialect = ACTIVEMQ, version: str = "1.2") -> Frame:
    """The SEND frame, as the broker reads it."""
    head, body = SendEncoder(version, dialect).encode(message)
    reader = FrameReader()
    reader.version = version
    (raw,) = reader.feed(head + b"\n" + body + b"\0")
    return Frame(*raw, version)


def delivery(body: bytes = b"", dialect: StompDialect = ACTIVEMQ, **headers: str) -> StompDelivery:
    """The MESSAGE frame, as the session reads it."""
    named = {"message-id": "m", "ack": "a", **{name.replace("_", "-"): value for name, value in headers.items()}}
    (raw,) = FrameReader().feed(encode("MESSAGE", named, body))
    link = Link(LinkSpec(Queue("orders")))
    return StompDelivery(*raw, StompSubscription(link, None, dialect, "1.2"))  # type: ignore[arg-type]  # nobody listens


def through(message: Message, dialect: StompDialect = ACTIVEMQ) -> Message:
    """Sent, and received from a broker that passes headers on and keeps text text, as this dialect's do."""
    frame = sent(message, dialect)
    headers = {**frame.headers, "message-id": "m", "ack": "a", "redelivered": "true", "receipt-id": "x"}
    if dialect.map_transformation is not None:
        headers["transformation"] = dialect.map_transformation
    else:
        headers["content-length"] = str(len(frame.body))
    (raw,) = FrameReader().feed(encode("MESSAGE", headers, frame.body))
    link = Link(LinkSpec(Queue("orders")))
    source = StompDelivery(*raw, StompSubscription(link, None, dialect, "1.2"))  # type: ignore[arg-type]  # as above
    return Message.received(source, 0, None)


plain = st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
values = st.one_of(plain, st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False))
names = plain.filter(
    lambda name: bool(name) and name not in unknown.STOMP.owned_headers and not name.startswith(("JMS", "_", "x-"))
)


@pytest.mark.parametrize("dialect", DIALECTS)
@given(body=st.one_of(st.none(), plain, st.binary()), properties=st.dictionaries(names, values))
def test_bodies_and_properties_survive(dialect: StompDialect, body: object, properties: dict[str, Any]) -> None:
    got = through(text(Message(body, properties=properties)), dialect)
    assert got.body == body
    assert type(got.body) is type(body)
    texts = {name: str(each).lower() if isinstance(each, bool) else str(each) for name, each in properties.items()}
    assert got.properties == texts


@pytest.mark.parametrize("body", ['{"map":{"entry":{"string":["a","b"]}}}', '{"map":""}', '{"map":'])
def test_a_text_that_looks_like_a_map_stays_text(body: str) -> None:
    assert through(text(body)).body == body


map_texts = st.text(alphabet=st.characters(max_codepoint=0xFFFF, exclude_characters="\0", exclude_categories=["Cs"]))
map_values = st.one_of(
    map_texts.filter(lambda each: each != "null"),
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.integers(-128, 127).map(Byte),
    st.integers(-(2**15), 2**15 - 1).map(Short),
    st.floats(width=32).map(Float),
)


@given(st.dictionaries(map_texts.filter(lambda each: each not in ("", "null")), map_values))
def test_maps_survive(body: dict[str, Any]) -> None:
    got = through(text(body)).body
    assert {name: repr(each) for name, each in got.items()} == {name: repr(each) for name, each in body.items()}


def test_a_map_has_the_json_of_xstream_and_java_types() -> None:
    body = {
        "t": "x",
        "i": 5,
        "l": 2**40,
        "L": Long(5),
        "b": Byte(1),
        "s": Short(2),
        "d": 1.5,
        "f": Float(0.5),
        "y": True,
        "n": None,
    }
    frame = sent(text(body))
    assert frame.headers["transformation"] == "jms-map-json"
    assert "content-length" not in frame.headers
    assert json.loads(frame.body) == {
        "map": {
            "entry": [
                {"string": ["t", "x"]}, {"string": "i", "int": 5}, {"string": "l", "long": 2**40},
                {"string": "L", "long": 5}, {"string": "b", "byte": 1}, {"string": "s", "short": 2},
                {"string": "d", "double": 1.5}, {"string": "f", "float": 0.5}, {"string": "y", "boolean": True},
                {"string": "n", "null": ""},
            ]
        }
    }  # fmt: skip


@pytest.mark.parametrize(
    ("wire", "body"),
    [
        ('{"map":""}', {}),
        ('{"map":{"entry":{"string":["n",123]}}}', {"n": "123"}),  # the broker unquotes numbers in texts
        ('{"map":{"entry":{"string":["n",true]}}}', {"n": "true"}),
        ('{"map":{"entry":[{"string":"d","double":"NaN"}]}}', None),
        ('{"map":{"entry":[{"string":"d","double":1.0E300}]}}', {"d": 1e300}),
        ('{"map":{"entry":{"string":"b","byte-array":"AAEC/w=="}}}', {"b": b"\x00\x01\x02\xff"}),
    ],
)
def test_maps_as_the_broker_writes_them(wire: str, body: dict[str, Any] | None) -> None:
    got = read_map(wire.encode())
    assert got is not None
    assert got["d"] != got["d"] if body is None else got == body


@pytest.mark.parametrize(
    "wire",
    [
        "{}", '{"map":5}', '{"map":{"entry":5}}', '{"map":{"entry":{"string":"a"}}}', '{"map":{"entry":{"int":5}}}',
        '{"map":{"entry":{"string":"a","int":"x"}}}', '{"map":{"entry":{"string":"a","byte":"999"}}}',
        '{"map":{"entry":{"string":"a","object":{}}}}', '{"map":"","x":1}', '{"map":{"entry":[],"x":1}}',
        '{"map":' + "[" * 100_000, '{"map":{"entry":{"string":"a","int":' + "9" * 10_000 + "}}}", "\xff",
    ],
)  # fmt: skip
def test_json_that_is_no_map_stays_a_text(wire: str) -> None:
    assert read_map(wire.encode("latin-1")) is None
    if "\xff" not in wire:
        assert delivery(wire.encode(), transformation="jms-map-json").body() == wire


def test_a_map_that_the_broker_could_not_write_is_its_text() -> None:
    wire = b'{"map":{"entry":{"string":["a","b"]}}}'
    got = delivery(wire, transformation="jms-map-json", transformation_error="[B").body()
    assert got == wire.decode()


@pytest.mark.parametrize(
    "body", [{"a": b"x"}, {"a": "null"}, {"a": "x\0"}, {"a": "\U0001f600"}, {"a": "\ud800"}, ["x"]]
)
def test_what_would_arrive_as_something_else_is_refused(body: object) -> None:
    with pytest.raises(MessageFormatError):
        sent(text(body))


@pytest.mark.parametrize("body", [{"a": 1}, ["x"]])
def test_an_unknown_broker_has_neither_maps_nor_streams(body: object) -> None:
    with pytest.raises(MessageFormatError, match="cannot travel over STOMP"):
        sent(text(body), unknown.STOMP)


@pytest.mark.parametrize("body", ["a\0b", "\ud800"])
def test_a_text_that_stomp_cannot_carry_is_refused(body: str) -> None:
    with pytest.raises(MessageFormatError):
        sent(text(body))


def test_only_bytes_have_a_content_length() -> None:
    assert "content-length" not in sent(text("é")).headers
    assert sent(text(b"\0\0")).headers["content-length"] == "2"
    assert sent(text(b"")).headers["content-length"] == "0"
    assert delivery(b"\xc3\xa9").body() == "é"
    assert delivery(b"\xc3\xa9", content_length="2").body() == b"\xc3\xa9"


def test_a_text_that_is_not_utf_8_raises_and_can_still_be_acknowledged() -> None:
    bad = delivery(b"\xff\xfe")
    with pytest.raises(MessageFormatError, match="message m is not UTF-8"):
        bad.body()
    assert bad.subscription.ack(bad, b"\n\n\0") == b"ACK\nid:a\n\n\0"


def test_of_a_broker_that_hides_the_kind_what_is_not_utf_8_is_bytes() -> None:
    dialect = unknown.STOMP
    assert delivery(b"\xff", dialect, content_length="1").body() == b"\xff"
    assert delivery(b"x", dialect, content_length="1").body() == "x"


def test_jms_headers_as_stomp_writes_them() -> None:
    now = datetime.now(UTC)
    message = Message("x", correlation_id="c", reply_to="topic://t", type="ty", group_id="g", group_sequence=0)
    headers = sent(text(message, persistent=False, priority=9, expiration=now + timedelta(seconds=5))).headers
    expires = int(headers.pop("expires"))
    assert abs(expires - (now.timestamp() + 5) * 1000) < 2
    assert headers == {
        "destination": "/queue/orders", "priority": "9", "correlation-id": "c",
        "reply-to": "/topic/t", "type": "ty", "JMSXGroupID": "g", "JMSXGroupSeq": "0",
    }  # fmt: skip
    assert sent(text()).headers == {"destination": "/queue/orders", "persistent": "true"}


def test_a_delay_is_relative_and_refused_where_it_would_be_ignored() -> None:
    due = datetime.now(UTC) + timedelta(seconds=10)
    assert 9_000 < int(sent(text(delivery_time=due)).headers["AMQ_SCHEDULED_DELAY"]) <= 10_001
    assert "AMQ_SCHEDULED_DELAY" not in sent(text(delivery_time=datetime.now(UTC) - timedelta(seconds=1))).headers
    with pytest.raises(UnsupportedError, match="no delayed delivery"):
        sent(text(delivery_time=due), unknown.STOMP)


def test_headers_are_read_as_jms_has_them() -> None:
    got = Message.received(
        delivery(
            b"x", destination="/topic/a.b", reply_to="/queue/r", correlation_id="c:1", type="ty", priority="7",
            persistent="true", timestamp="1700000000123", expires="1800000000000", redelivered="true",
            JMSXGroupID="g", JMSXGroupSeq="3", foo="bar",
        ),
        0,
        None,
    )  # fmt: skip
    assert (got.message_id, got.destination, got.reply_to) == ("m", Topic("a.b"), Queue("r"))
    assert (got.correlation_id, got.type, got.priority, got.persistent) == ("c:1", "ty", 7, True)
    assert got.timestamp == datetime(2023, 11, 14, 22, 13, 20, 123000, UTC)
    assert got.expiration == datetime(2027, 1, 15, 8, tzinfo=UTC)
    assert (got.delivery_count, got.redelivered, got.group_id, got.group_sequence) == (2, True, "g", 3)
    assert got.properties == {"foo": "bar"}


def test_headers_that_are_not_there_or_make_no_sense() -> None:
    source = delivery(b"x", expires="0", priority="x", timestamp="9" * 5000, reply_to="/nowhere/x")
    got = Message.received(source, 0, None)
    assert (got.expiration, got.timestamp, got.reply_to, got.priority) == (None, None, None, 0)
    assert (got.correlation_id, got.type, got.persistent, got.delivery_count) == (None, None, False, 1)
    assert got.destination == Queue("orders")
    assert source.expires_at() == 0
    assert delivery(b"x", expires="1234567890123").expires_at() == 1234567890123


@pytest.mark.parametrize(
    "name",
    [
        "destination", "receipt", "transaction", "ack", "id", "subscription", "message-id", "redelivered",
        "content-length", "expires", "priority", "persistent", "timestamp", "correlation-id", "reply-to", "type",
        "transformation", "JMS_redelivery_kind",
    ],
)  # fmt: skip
def test_a_property_cannot_be_a_header_of_the_protocol(name: str) -> None:
    with pytest.raises(MessageFormatError, match=f"property '{name}'"):
        sent(text(Message("x", properties={name: "1"})))
    headers: dict[str, Any] = {name: "1"}
    assert name not in delivery(b"x", **headers).properties()


def test_a_property_injects_nothing() -> None:
    evil = {"a\nreceipt:1": "v\ntransaction:t", "b:c": "\r\n\n\0".replace("\0", "")}
    assert sent(text(Message("x", properties=evil))).headers.items() >= evil.items()
    with pytest.raises(MessageFormatError):
        sent(text(Message("x", properties={"a": "x\0SEND"})))
    with pytest.raises(MessageFormatError):
        sent(text(Message("x", properties={"a": "x\r"})), version="1.1")
    with pytest.raises(MessageFormatError):
        sent(text(Message("x", correlation_id="\0")))


def test_what_a_property_or_header_cannot_be() -> None:
    with pytest.raises(MessageFormatError, match="property 'a': STOMP cannot carry None"):
        sent(text(Message("x", properties={"a": None})))
    assert sent(text(Message("x", correlation_id="é".encode()))).headers["correlation-id"] == "é"
    with pytest.raises(MessageFormatError, match="correlation_id of bytes"):
        sent(text(Message("x", correlation_id=b"\xff")))
    with pytest.raises(InvalidDestinationError):
        sent(text(destination="a.*"))
    with pytest.raises(InvalidDestinationError, match="without a destination"):
        sent(Message("x"))


def test_a_received_message_can_be_sent_on() -> None:
    received = Message.received(
        delivery(
            b"x", redelivered="true", receipt="r", transaction="t", browser="end", scheduledJobId="j", expires="5",
            priority="7", timestamp="1", dlqDeliveryFailureCause="why\nso", original_destination="/queue/o",
        ),
        0,
        None,
    )  # fmt: skip
    headers = sent(text(received.copy())).headers
    assert headers == {
        "destination": "/queue/orders", "persistent": "true",
        "dlqDeliveryFailureCause": "why\nso", "original-destination": "/queue/o",
    }  # fmt: skip


def test_a_text_of_javas_modified_utf_8_is_read() -> None:
    """ActiveMQ hands the text of an OpenWire client on as it came: a surrogate is three bytes, NUL is two."""
    assert delivery(b"\xed\xa0\xbd\xed\xb8\x80 a\xc0\x80b").body() == "\U0001f600 a\0b"
    with pytest.raises(MessageFormatError, match="not UTF-8"):
        delivery(b"\xed\xa0\xbd alone").body()


def test_bad_headers_raise_when_they_are_read() -> None:
    (raw,) = FrameReader().feed(b"MESSAGE\nack:a\nmessage-id:\\q\nx:\xff\n\nbody\0")
    bad = StompDelivery(*raw, StompSubscription(Link(LinkSpec(Queue("q"))), None, ACTIVEMQ, "1.2"))  # type: ignore[arg-type]  # as above
    assert (bad.body(), bad.wire_count(), bad.expires_at()) == ("body", 1, 0)
    with pytest.raises(MessageFormatError):
        bad.header("message_id")
    with pytest.raises(MessageFormatError):
        bad.properties()


def test_another_protocols_bytes_in_a_header_do_not_hide_the_others() -> None:
    wire = b"MESSAGE\nmessage-id:m\nown:1\nx-amqp-1.0-app-properties:\x00\xff\\n\x0c\nlast:2\n\nbody\0"
    ((head, body),) = FrameReader().feed(wire)
    link = Link(LinkSpec(Queue("orders")))
    source = StompDelivery(head, body, StompSubscription(link, None, rabbitmq.STOMP, "1.2"))  # type: ignore[arg-type]  # as above
    assert source.properties() == {"own": "1", "last": "2"}


@pytest.mark.parametrize("value", ["1795270452", "1795270452000"])
def test_a_timestamp_is_in_seconds_or_in_milliseconds(value: str) -> None:
    found = delivery(dialect=rabbitmq.STOMP, timestamp=value).header("timestamp")
    assert found == datetime.fromtimestamp(1795270452, UTC)


def test_an_id_is_the_senders_where_it_has_one() -> None:
    assert delivery(dialect=artemis.STOMP, message_id="7,12").header("message_id") == "12"
