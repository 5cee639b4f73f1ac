"""Maps and destinations as text, both ways."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from redelivery.model.destinations import Queue, TemporaryQueue, TemporaryTopic, Topic
from redelivery.transports.dialects import activemq
from redelivery.transports.stomp.codec.maps import read_map, write_map
from redelivery.transports.stomp.codec.names import from_wire, to_wire

ACTIVEMQ = activemq.STOMP


@given(st.binary(max_size=60))
def test_no_bytes_break_the_reading_of_a_map(data: bytes) -> None:
    read_map(b'{"map":' + data)


def test_write_map_keeps_names_apart() -> None:
    assert read_map(write_map({"a": "1", "b": 1})) == {"a": "1", "b": 1}


def test_destinations_as_the_broker_writes_them() -> None:
    assert to_wire(Queue("a.#"), ACTIVEMQ) == "/queue/a.>"
    assert to_wire(Topic("a.*.>"), ACTIVEMQ) == "/topic/a.*.>"
    assert to_wire(Queue("a#b"), ACTIVEMQ) == "/queue/a#b"
    assert from_wire("/queue/a b", ACTIVEMQ) == Queue("a b")
    assert from_wire("/queue/", ACTIVEMQ) is None
    assert from_wire("/nowhere/x", ACTIVEMQ) is None
    for name in ("/remote-temp-queue/ID:1:1", "/temp-queue/ID:1:1"):  # of others, and its maker's own
        assert from_wire(name, ACTIVEMQ) == TemporaryQueue("temp-queue://ID:1:1")
    assert from_wire("/remote-temp-topic/ID:1:2", ACTIVEMQ) == TemporaryTopic("temp-topic://ID:1:2")
    assert to_wire(TemporaryQueue("temp-queue://ID:1:1"), ACTIVEMQ) == "/remote-temp-queue/ID:1:1"
    assert to_wire(TemporaryTopic("temp-topic://ID:1:2"), ACTIVEMQ) == "/remote-temp-topic/ID:1:2"
