"""Bodies, properties and headers arrive as they were sent."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.conformance.stage import Stage, receive

from redelivery import (
    AckMode,
    Message,
    MessageFormatError,
    MessageNotWriteableError,
    Queue,
    ResourceAllocationError,
    Topic,
    UnsupportedError,
)

BODIES = {
    "text": "plain text",
    "empty text": "",
    "text with lines": "a\nb\r\nc\\:d\n\n",
    "UTF-8": "naïve Straße 日本語 \N{GRINNING FACE}",
    "bytes": b"plain bytes",
    "empty bytes": b"",
    "all bytes": bytes(range(256)),
    "NULs": b"\0" * 100 + b"\0\n\0",
    "not UTF-8": b"\xff\xfe\xc3\x28",
    "none": None,
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_body_arrives_as_sent(stage: Stage, body: object) -> None:
    stage.send(body)
    _, consumer = stage.consuming(AckMode.AUTO)
    message = receive(consumer)
    assert message.body == body
    assert type(message.body) is type(body)


@pytest.mark.needs("map", refused=MessageFormatError)
def test_map_arrives_as_a_map(stage: Stage) -> None:
    body = {"name": "Ada", "count": 3, "yes": True, "share": 0.5, "text": "naïve\n:"}
    stage.send(body)
    _, consumer = stage.consuming(AckMode.AUTO)
    assert receive(consumer).body == body


def test_stream_arrives_as_a_stream_or_is_refused(stage: Stage) -> None:
    producer = stage.session(AckMode.AUTO).producer(stage.queue)
    if not stage.pair.can("stream"):
        with pytest.raises(MessageFormatError, match="stream"):
            producer.send([1, "two"])
        return
    producer.send([1, "two", b"three", None])
    _, consumer = stage.consuming(AckMode.AUTO)
    assert receive(consumer).body == [1, "two", b"three", None]


@pytest.mark.needs("large bodies", refused=UnsupportedError)
@pytest.mark.parametrize("mebibytes", [1, 8])
@pytest.mark.parametrize("kind", [str, bytes])
def test_large_body_arrives_as_sent(stage: Stage, mebibytes: int, kind: type) -> None:
    size = mebibytes << 20
    body = "äbcdefg" * (size // 8) if kind is str else bytes(range(256)) * (size // 256)
    if size >= (stage.pair.kind.largest or size + 1):
        with pytest.raises(ResourceAllocationError, match=f"than the {stage.pair.kind.largest} that the broker takes"):
            stage.send(body)
        return
    stage.send(body)
    _, consumer = stage.consuming(AckMode.AUTO)
    assert receive(consumer).body == body


def test_properties_arrive(stage: Stage) -> None:
    sent = {"text": "naïve:\nline\\n", "empty": "", "number": 7, "long": 1 << 40, "yes": True, "share": 0.25}
    stage.send("a", properties=sent)
    _, consumer = stage.consuming(AckMode.AUTO)
    got = receive(consumer).properties
    if stage.pair.can("typed properties"):
        assert {name: got[name] for name in sent} == sent
    else:
        assert {name: got[name] for name in sent} == {
            name: value if isinstance(value, str) else str(value).lower() for name, value in sent.items()
        }


def test_headers_arrive(stage: Stage) -> None:
    before = datetime.now(UTC)
    stage.send("a", correlation_id="c:1\n", reply_to="topic://replies", type="order", priority=7, ttl=60, group_id="g")
    _, consumer = stage.consuming(AckMode.AUTO)
    message = receive(consumer)
    assert (message.correlation_id, message.reply_to, message.type) == ("c:1\n", Topic("replies"), "order")
    assert (message.priority, message.persistent, message.destination) == (7, True, Queue(stage.said(stage.queue)))
    assert message.timestamp is not None
    assert message.expiration is not None
    assert abs(message.timestamp - before) < timedelta(seconds=10)
    assert timedelta(seconds=50) < message.expiration - before < timedelta(seconds=70)
    assert message.message_id
    if stage.pair.can("group id"):
        assert message.group_id == "g"


def test_unset_headers_are_none(stage: Stage) -> None:
    stage.send("a")
    _, consumer = stage.consuming(AckMode.AUTO)
    message = receive(consumer)
    assert (message.correlation_id, message.reply_to, message.type) == (None, None, None)
    assert (message.expiration, message.delivery_time, message.priority) == (None, None, 4)


def test_headers_of_the_sent_message_are_known_after_send(stage: Stage) -> None:
    producer = stage.session(AckMode.AUTO).producer(stage.queue, priority=3, ttl=timedelta(seconds=30))
    sent = producer.send("a", persistent=False)
    assert (sent.destination, sent.priority, sent.persistent) == (Queue(stage.queue), 3, False)
    assert sent.timestamp is not None
    assert sent.expiration == sent.timestamp + timedelta(seconds=30)


def test_message_id_stays_the_same_over_redeliveries(stage: Stage) -> None:
    stage.send("a")
    session, consumer = stage.consuming(AckMode.TRANSACTED)
    first = receive(consumer).message_id
    session.rollback()
    assert receive(consumer).message_id == first
    session.close()
    assert [message.message_id for message in stage.left(at_least=1)] == [first]


def test_non_persistent_is_visible(stage: Stage) -> None:
    stage.send("a", persistent=False)
    _, consumer = stage.consuming(AckMode.AUTO)
    assert not receive(consumer).persistent


@pytest.mark.everywhere_in_long_form
def test_received_message_is_read_only_and_its_copy_is_not(stage: Stage) -> None:
    stage.send("a", properties={"colour": "red"})
    session, consumer = stage.consuming(AckMode.AUTO)
    message = receive(consumer)
    with pytest.raises(MessageNotWriteableError):
        message.body = "b"
    copy = message.copy()
    copy.body = "b"
    session.producer(stage.queue).send(copy)
    again = receive(consumer)
    assert (again.body, again.properties["colour"]) == ("b", "red")


def test_forwarded_message_is_a_new_one(stage: Stage) -> None:
    """Nothing that the broker wrote on the first delivery leaks into the second message."""
    target = stage.beside("target")
    stage.send("a", correlation_id="c")
    session, consumer = stage.consuming(AckMode.TRANSACTED)
    message = receive(consumer)
    session.producer(target).send(message.copy())
    session.commit()
    (forwarded,) = stage.left(target, at_least=1)
    assert (forwarded.body, forwarded.correlation_id, forwarded.destination) == ("a", "c", Queue(stage.said(target)))
    assert forwarded.message_id != message.message_id
    assert forwarded.delivery_count == 1
    assert set(forwarded.properties) == {"ref"}


def test_hostile_headers_stay_values(stage: Stage) -> None:
    hostile = {"a:b\nc": "x\n\nSEND\ndestination:/queue/evil\n\n", "receipt": "1", "transaction": "t", "ack": "evil"}
    session, consumer = stage.consuming(AckMode.CLIENT)
    sent = Message("body", properties=hostile, correlation_id="1\n\0injected".replace("\0", ""))
    try:
        session.producer(stage.queue).send(sent)
    except MessageFormatError:
        return
    message = receive(consumer)
    assert message.body == "body"
    message.acknowledge()
    session.close()
    assert stage.left() == []
    assert stage.left("evil") == []


def test_text_with_a_nul_is_refused_where_it_cannot_be_carried(stage: Stage) -> None:
    producer = stage.session(AckMode.AUTO).producer(stage.queue)
    if stage.pair.can("NUL in a text body"):
        producer.send("a\0b")
        assert stage.left_bodies(at_least=1) == ["a\0b"]
        return
    with pytest.raises(MessageFormatError, match="NUL"):
        producer.send("a\0b")
    producer.send(b"a\0b")
    assert stage.left_bodies(at_least=1) == [b"a\0b"]
