"""Messages: what the application writes, what it is handed, and JMS's rules of types."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redelivery.model.content.typed.converter import convert_body
from redelivery.model.destinations import Queue, Topic
from redelivery.model.errors import IllegalStateError, MessageFormatError, MessageNotWriteableError
from redelivery.model.messages import HEADERS, Message
from redelivery.model.values import Body, Byte, Float, Long, Short, Value, from_epoch_ms, to_epoch_ms


class Source:
    """What a transport hands over; counts how often it is asked."""

    def __init__(self, body: Body = "text", count: int = 1, **headers: object) -> None:
        self.content, self.count, self.headers = body, count, headers
        self.asked: list[str] = []

    def body(self) -> Body:
        self.asked.append("body")
        return self.content

    def properties(self) -> Mapping[str, Value]:
        self.asked.append("properties")
        return {"color": "red", "JMSXGroupID": "g", "JMSXDeliveryCount": 1}

    def header(self, name: str) -> object:
        self.asked.append(name)
        return self.headers.get(name)

    def wire_count(self) -> int:
        return self.count


class Receipts:
    def __init__(self) -> None:
        self.acknowledged: list[Message] = []

    def acknowledge(self, message: Message) -> None:
        self.acknowledged.append(message)


def test_a_new_message_has_jms_defaults() -> None:
    message = Message()
    assert message.body is None
    assert message.properties == {}
    assert (message.priority, message.persistent, message.delivery_count, message.redelivered) == (4, True, 0, False)
    unset = set(HEADERS) - {"priority", "persistent"}
    assert {name: getattr(message, name) for name in unset} == dict.fromkeys(unset)


def test_what_the_application_may_set() -> None:
    message = Message(
        "hello",
        properties={"n": 1},
        correlation_id=b"\1\2",
        reply_to="topic://answers",
        type="greeting",
        group_id="g",
        group_sequence=3,
    )
    assert message.reply_to == Topic("answers")
    assert (message.correlation_id, message.type, message.group_id, message.group_sequence) == (
        b"\1\2",
        "greeting",
        "g",
        3,
    )
    message.body = {"a": 1}
    message.properties = {"m": 2}
    message.correlation_id, message.reply_to, message.type = "c", Queue("q"), None
    message.group_id, message.group_sequence = None, 0
    assert (message.body, dict(message.properties), message.reply_to, message.type) == (
        {"a": 1},
        {"m": 2},
        Queue("q"),
        None,
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("correlation_id", 1),
        ("type", b"x"),
        ("group_id", 5),
        ("group_sequence", -2),
        ("group_sequence", True),
        ("group_sequence", "1"),
    ],
)
def test_headers_of_a_wrong_type_are_named(name: str, value: object) -> None:
    with pytest.raises(MessageFormatError, match=name):
        setattr(Message(), name, value)
    arguments: dict[str, Any] = {name: value}
    with pytest.raises(MessageFormatError, match=name):
        Message(**arguments)


@pytest.mark.parametrize(
    ("given_body", "body"),
    [
        ("text", "text"),
        ("", ""),
        (b"bytes", b"bytes"),
        (bytearray(b"bytes"), b"bytes"),
        (memoryview(b"bytes"), b"bytes"),
        ({"a": 1, "b": b"x", "c": None}, {"a": 1, "b": b"x", "c": None}),
        ([1, 2.5, "x", b"y", True, None], [1, 2.5, "x", b"y", True, None]),
        ((1, 2), [1, 2]),
        (range(2), [0, 1]),
        (None, None),
    ],
)
def test_bodies(given_body: object, body: Body) -> None:
    message = Message(given_body)
    assert message.body == body
    assert type(message.body) is type(body)


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (5, "int"),
        (5.5, "float"),
        (object(), "object"),
        ({"a": [1]}, "map entry 'a'.*list"),
        ({1: "a"}, "1 is not the name"),
        ({"": "a"}, "'' is not the name"),
        ([{}], "stream item 0.*dict"),
        ([1, 2**63], "stream item 1.*64 bits"),
        ({"a": -(2**63) - 1}, "map entry 'a'.*64 bits"),
        ({1, 2}, "set"),
        (datetime.now(UTC), "datetime"),
    ],
)
def test_what_is_no_body_is_refused(body: object, named: str) -> None:
    with pytest.raises(MessageFormatError, match=named):
        Message(body)


def test_a_body_is_copied_so_that_a_later_change_does_not_reach_the_message() -> None:
    given_map: dict[str, object] = {"a": 1}
    given_properties: dict[str, object] = {"n": 1}
    message = Message(given_map, properties=given_properties)
    given_map["a"] = given_properties["n"] = 2
    assert message.body == {"a": 1}
    assert message.properties == {"n": 1}


@pytest.mark.parametrize("value", [True, 1, -(2**63), 2**63 - 1, 1.5, "x", None, Byte(1), Short(2), Long(3), Float(4)])
def test_property_values(value: Value) -> None:
    kept = Message(properties={"p": value}).properties["p"]
    assert kept == value
    assert type(kept) is type(value)


@pytest.mark.parametrize(
    ("properties", "named"),
    [
        ({"p": 2**63}, "'p'.*64 bits"),
        ({"p": b"bytes"}, "'p'.*bytes"),
        ({"p": [1]}, "'p'.*list"),
        ({"p": object()}, "'p'.*object"),
        ({"": 1}, "''"),
        ({3: 1}, "3"),
    ],
)
def test_what_is_no_property_is_refused(properties: Any, named: str) -> None:
    with pytest.raises(MessageFormatError, match=named):
        Message(properties=properties)


def test_properties_are_read_only_in_place() -> None:
    properties: Any = Message(properties={"p": 1}).properties
    with pytest.raises(TypeError):
        properties["p"] = 2


def test_the_groups_properties_are_its_headers_and_the_providers_are_dropped() -> None:
    message = Message(properties={"JMSXGroupID": "g", "JMSXGroupSeq": 2, "JMSXDeliveryCount": 9, "JMSXother": 1})
    assert (message.group_id, message.group_sequence) == ("g", 2)
    assert message.properties == {"JMSXother": 1}
    assert message.delivery_count == 0


@pytest.mark.parametrize(
    ("kind", "fits", "does_not"),
    [
        (Byte, (-128, 127), (-129, 128)),
        (Short, (-32768, 32767), (-32769, 32768)),
        (Long, (-(2**63), 2**63 - 1), (2**63,)),
    ],
)
def test_forced_whole_numbers(kind: Any, fits: tuple[int, ...], does_not: tuple[int, ...]) -> None:
    for value in fits:
        assert kind(value) == value
        assert isinstance(kind(value), int)
    for value in does_not:
        with pytest.raises(MessageFormatError, match=f"{value} does not fit a JMS {kind.__name__.lower()}"):
            kind(value)
    for wrong in (1.5, "1", True, None):
        with pytest.raises(MessageFormatError, match="is not an integer"):
            kind(wrong)


def test_a_forced_float_has_the_range_of_32_bits() -> None:
    assert Float(0.5) == 0.5
    assert str(Float(0.1)) == "0.1"  # as Java writes it, where a protocol carries texts
    assert Float(float("inf")) == float("inf")
    with pytest.raises(MessageFormatError, match="32 bits"):
        Float(1e39)
    wrong: Any = "1.5"
    with pytest.raises(MessageFormatError, match="not a number"):
        Float(wrong)


def test_a_received_message_is_read_only() -> None:
    message = Message.received(Source(), 0, None)
    changes: dict[str, Any] = {
        "body": "x",
        "properties": {},
        "correlation_id": "c",
        "reply_to": Queue("q"),
        "type": "t",
        "group_id": "g",
        "group_sequence": 1,
    }
    for name, value in changes.items():
        with pytest.raises(MessageNotWriteableError, match="copy"):
            setattr(message, name, value)


@pytest.mark.parametrize("name", ["message_id", "destination", "timestamp", "expiration", "priority", "persistent"])
def test_what_the_provider_sets_the_application_cannot(name: str) -> None:
    with pytest.raises(AttributeError):
        setattr(Message(), name, None)


def test_a_received_message_reads_its_source_once_and_only_when_looked_at() -> None:
    source = Source(body=None, message_id="ID:1", priority=7)
    message = Message.received(source, 0, None)
    assert source.asked == []
    for _ in range(2):
        assert message.body is None
        assert message.message_id == "ID:1"
        assert message.priority == 7
        assert message.correlation_id is None
        assert message.properties["color"] == "red"
    assert sorted(source.asked) == ["body", "correlation_id", "message_id", "priority", "properties"]


def test_a_body_that_cannot_be_decoded_can_still_be_acknowledged() -> None:
    class Broken(Source):
        def body(self) -> Body:
            raise MessageFormatError("not UTF-8")

    receipts = Receipts()
    message = Message.received(Broken(), 0, receipts)
    for _ in range(2):
        with pytest.raises(MessageFormatError, match="UTF-8"):
            _ = message.body
    message.acknowledge()
    assert receipts.acknowledged == [message]


@pytest.mark.parametrize(
    ("wire", "local", "count", "redelivered"), [(1, 0, 1, False), (1, 1, 2, True), (2, 0, 2, True), (2, 3, 5, True)]
)
def test_delivery_count(wire: int, local: int, count: int, redelivered: bool) -> None:
    message = Message.received(Source(count=wire), local, None)
    assert (message.delivery_count, message.redelivered) == (count, redelivered)


def test_only_a_received_message_can_be_acknowledged() -> None:
    with pytest.raises(IllegalStateError, match="received"):
        Message("x").acknowledge()
    with pytest.raises(IllegalStateError, match="received"):
        Message.received(Source(), 0, Receipts()).copy().acknowledge()


def test_a_copy_is_writable_and_keeps_what_is_the_applications() -> None:
    source = Source(
        {"a": 1}, 3, message_id="ID:1", destination=Queue("q"), correlation_id="c", reply_to=Queue("r"), type="t",
        group_id="g", group_sequence=2, priority=9, persistent=False,
    )  # fmt: skip
    original = Message.received(source, 2, Receipts())
    copy = original.copy()
    assert (copy.body, copy.correlation_id, copy.reply_to, copy.type) == ({"a": 1}, "c", Queue("r"), "t")
    assert (copy.group_id, copy.group_sequence) == ("g", 2)
    assert copy.properties == {"color": "red"}
    assert (copy.message_id, copy.destination, copy.delivery_count, copy.priority) == (None, None, 0, 4)
    copy.body["a"] = 2
    copy.correlation_id = "d"
    assert (original.body, original.correlation_id) == ({"a": 1}, "c")


@pytest.mark.parametrize(("body", "kind"), [("x", str), (b"x", bytes), ({"a": 1}, dict), ([1], list)])
def test_convert_body(body: object, kind: type) -> None:
    message = Message(body)
    assert convert_body(message, kind) == body
    for other in {str, bytes, dict, list} - {kind}:
        with pytest.raises(MessageFormatError, match=r"the message holds \w+, not"):
            convert_body(message, other)


def test_convert_body_of_an_unknown_kind_or_an_empty_message() -> None:
    with pytest.raises(MessageFormatError, match="ask for str, bytes, dict or list"):
        convert_body(Message("x"), int)
    with pytest.raises(MessageFormatError, match="holds none"):
        convert_body(Message(), str)


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_times_survive_to_the_millisecond(ms: int) -> None:
    time = from_epoch_ms(ms)
    assert to_epoch_ms(time) == ms
    assert time is None or time.tzinfo is UTC


def test_no_time_and_times_beyond_pythons() -> None:
    assert from_epoch_ms(0) is None
    assert to_epoch_ms(None) == 0
    never = from_epoch_ms(2**63 - 1)
    assert never is not None
    assert never.year == 9999
    ancient = from_epoch_ms(-(2**63))
    assert ancient is not None
    assert ancient.year == 1
