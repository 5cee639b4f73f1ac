"""The bytes of a body are there on each message that was received, made or copied."""

from __future__ import annotations

from typing import Any

import pytest
from tests.conformance.foreign import Foreign, binary, mapping, properties, section, sequence, string
from tests.conformance.record import AMQP_HAS_THEM, READABLE
from tests.conformance.stage import SOON, Stage

from redelivery import Message, MessageFormatError

BODIES = [("Grüße", "Grüße".encode()), (b"\x00\xff", b"\x00\xff"), (None, b"")]


@pytest.mark.parametrize(("body", "raw"), BODIES, ids=["text", "bytes", "none"])
def test_a_received_message_has_the_bytes_of_its_body(stage: Stage, body: Any, raw: bytes) -> None:
    stage.send(body)
    with stage.connect() as connection, connection.session() as session:
        message = session.consumer(stage.queue).receive(timeout=SOON)
        assert message is not None
        assert message.raw_body == raw
        assert message.body == body
        copy = message.copy()
        assert copy.raw_body == raw
        assert copy.body == body
        session.producer(stage.queue).send(copy)
    (again,) = stage.left(at_least=1)
    assert (again.body, again.raw_body) == (body, raw)


def test_a_copy_s_new_body_is_what_is_sent(stage: Stage) -> None:
    stage.send("old")
    with stage.connect() as connection, connection.session() as session:
        message = session.consumer(stage.queue).receive(timeout=SOON)
        assert message is not None
        copy = message.copy()
        copy.body = "new"
        assert copy.raw_body == b"new"
        session.producer(stage.queue).send(copy)
    assert stage.left_bodies() == ["new"]


def test_what_the_application_has_made_has_them_too() -> None:
    assert Message("Grüße").raw_body == "Grüße".encode()
    assert Message(b"\xff").raw_body == b"\xff"
    assert Message().raw_body == b""
    assert Message({"a": 1, "b": b"\xff"}).raw_body == b'{"a": 1, "b": {"$bytes": "/w=="}}'
    assert Message([1, "é"]).raw_body == '[1, "é"]'.encode()


def test_maps_and_lists_of_other_clients_are_read_and_sent_on(stage: Stage) -> None:
    """In the body, and in a property, which AMQP forbids and brokers carry."""
    pair = stage.pair
    if pair.kind.protocol != "amqp":
        pytest.skip(AMQP_HAS_THEM)
    foreign = Foreign("amqp", pair.kind.broker or "embedded", pair.url)
    with stage.connect() as connection, connection.session() as session:
        consumer = session.consumer(stage.queue)
        body = mapping(
            string(b"order"), mapping(string(b"id"), b"\x54\x01", string(b"tags"), sequence(b"\x41", b"\x40"))
        )
        nested = [] if pair.kind.broker == "qpid" else [string(b"inner"), mapping(string(b"n"), b"\x54\x01")]
        own = section(0x74, mapping(string(b"kept"), string(b"yes"), *nested))
        foreign.send(stage.queue, section(0x70, sequence(b"\x41")) + own + section(0x77, body))
        message = consumer.receive(timeout=SOON)
        assert message is not None
        assert message.body == {"order": {"id": 1, "tags": [True, None]}}
        assert repr(message.properties.get("inner")) == ("{'n': 1}" if nested else "None")
        changed = message.copy()
        changed.body["order"]["id"] = 2
        producer = session.producer(stage.queue)
        for copy in (message.copy(), changed):
            producer.send(copy)
            again = consumer.receive(timeout=SOON)
            assert again is not None
            assert again.properties == message.properties
            assert again.body == {"order": {"id": 1 + (copy is changed), "tags": [True, None]}}


def test_a_body_that_cannot_be_read_is_sent_on_as_it_came(stage: Stage) -> None:
    pair = stage.pair
    if pair.kind.protocol != "amqp":
        pytest.skip(READABLE)
    foreign = Foreign("amqp", pair.kind.broker or "embedded", pair.url)
    with stage.connect() as connection, connection.session() as session:
        consumer = session.consumer(stage.queue)
        head = section(0x70, sequence(b"\x41")) + properties(b"text/plain")
        foreign.send(stage.queue, head + section(0x75, binary(b"Gr\xfc\xdfe")))
        message = consumer.receive(timeout=SOON)
        assert message is not None
        session.producer(stage.queue).send(message)
        again = consumer.receive(timeout=SOON)
        assert again is not None
        for each in (message, again):
            assert each.raw_body == b"Gr\xfc\xdfe"
            with pytest.raises(MessageFormatError, match="not utf-8"):
                _ = each.body
