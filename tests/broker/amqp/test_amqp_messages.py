"""What a message is after the broker: over AMQP as it came; over the other protocols as they can carry it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import proton
import pytest
from proton import Described, symbol, ulong
from tests.broker.amqp.amqp_client import ACCEPTED, REJECTED, Peer, Refused, decoded
from tests.broker.raw_stomp import Raw

import redelivery
from redelivery import Byte, Float, Long, Short
from redelivery.broker import EmbeddedBroker
from redelivery.transports.wire.clock import epoch_ms, monotonic

EVERYTHING = {
    "id": uuid.uuid4(),
    "user_id": b"ada",
    "subject": "order",
    "reply_to": "topic://replies",
    "correlation_id": ulong(2**63),
    "content_type": symbol("application/x-own"),
    "content_encoding": symbol("gzip"),
    "creation_time": 1.5,
    "group_id": "g",
    "group_sequence": 7,
    "reply_to_group_id": "rg",
    "priority": 9,
    "durable": True,
    "annotations": {symbol("x-opt-list"): [1, {"deep": [None]}], symbol("x-opt-decimal"): proton.decimal64(5)},
    "properties": {"byte": proton.byte(-1), "char": proton.char("é"), "uint": proton.uint(7), "none": None},
    "body": Described(symbol("my:own:type"), {"nested": [uuid.uuid4(), proton.timestamp(9)], 5: proton.float32(0.5)}),
}
FOOTER = b"\x00\x53\x78\xc1\x04\x02\xa3\x01h\x54\x05"


@pytest.fixture
def stomp(broker: EmbeddedBroker) -> Iterator[Raw]:
    with Raw(broker.stomp_url) as client:
        yield client


def bare(data: bytes) -> bytes:
    """Without the header, which brokers may rewrite."""
    return data[data.index(b"\x00\x53\x72") :]


def test_amqp_to_amqp_nothing_is_lost(client: Peer) -> None:
    data = bytes(proton.Message(**EVERYTHING).encode()) + FOOTER
    client.send(client.sender("q"), data)
    client.receiver("q")
    client.until(lambda: bool(client.received))
    _, delivery, received = client.received.pop()
    assert bare(received) == bare(data)
    message = decoded(received)
    assert (message.durable, message.priority, message.delivery_count, message.first_acquirer) == (True, 9, 0, True)
    client.settle(delivery, ACCEPTED)


def test_a_dead_letter_keeps_all_but_its_address(client: Peer) -> None:
    own = {**EVERYTHING, "address": "q", "expiry_time": (epoch_ms() + 60_000) / 1000}
    data = bytes(proton.Message(**own).encode())
    client.send(client.sender("q"), data + FOOTER)
    client.receiver("q")
    client.reject(client.one()[0], "my:poison", "why")
    client.receiver("ActiveMQ.DLQ")
    client.until(lambda: bool(client.received))
    _, _, received = client.received.pop()
    assert received.endswith(data[data.index(b"my:own:type") :] + FOOTER)
    letter, sent = decoded(received.removesuffix(FOOTER)), decoded(data)
    for name in ("id", "user_id", "subject", "reply_to", "correlation_id", "content_type", "group_id", "annotations"):
        assert getattr(letter, name) == getattr(sent, name), name
    assert (letter.address, letter.expiry_time, letter.ttl, letter.durable) == ("ActiveMQ.DLQ", 0, 0, True)
    assert letter.properties is not None
    kept = {name: letter.properties[name] for name in ("byte", "char", "uint", "none")}
    assert kept == EVERYTHING["properties"]
    assert isinstance(kept["byte"], proton.byte)
    assert letter.properties["dlqDeliveryFailureCause"] == "why"
    assert letter.properties["originalDestination"] == "queue://q"


def test_a_dead_letter_that_was_a_topic_of_jms_is_a_queue_for_jms(client: Peer, broker: EmbeddedBroker) -> None:
    annotations = {symbol("x-opt-jms-dest"): proton.byte(1), symbol("x-opt-own"): 1}
    client.send(client.sender("q"), {"body": "m", "durable": True, "annotations": annotations})
    client.receiver("q")
    client.settle(client.one()[0], REJECTED)
    client.receiver("ActiveMQ.DLQ")
    assert client.one()[1].annotations == {symbol("x-opt-jms-dest"): 0, symbol("x-opt-own"): 1}
    with redelivery.connect(broker.vm_url) as vm:
        letter = vm.session().consumer("ActiveMQ.DLQ").receive(0.1)
        assert letter is None or str(letter.destination) == "queue://ActiveMQ.DLQ"


@pytest.mark.parametrize(
    "body",
    [
        *("text", "", "naïve 日本語 \0", b"", b"\0\xff", None, {}, []),
        {"s": "v", "b": b"\1", "i": 5, "l": Long(5), "n": None},
        [True, Byte(1), Short(2), 3, Long(4), Float(0.5), 1.5, "s", b"b", None],
    ],
)
@pytest.mark.parametrize("way", ["amqp to vm", "vm to amqp", "amqp to amqp"])
def test_bodies_and_headers_pass_between_amqp_and_vm(broker: EmbeddedBroker, body: Any, way: str) -> None:
    urls = {"amqp": broker.amqp_url, "vm": broker.vm_url}
    start, end = (urls[name] for name in way.split(" to "))
    properties = {"s": "v", "b": True, "y": Byte(1), "h": Short(2), "i": 3, "l": Long(4), "f": Float(0.5), "d": 1.5}
    with redelivery.connect(start) as sending, redelivery.connect(end) as receiving:
        sent = (
            sending.session()
            .producer("q", priority=7, ttl=3600)
            .send(
                redelivery.Message(
                    body,
                    properties=properties,
                    correlation_id="c",
                    reply_to="topic://r",
                    type="t",
                    group_id="g",
                    group_sequence=3,
                )
            )
        )
        received = receiving.session().consumer("q").receive(20)
        assert received is not None
        assert received.body == body
        assert type(received.body) is type(body)
        if isinstance(body, list):
            assert list(map(type, received.body)) == list(map(type, body))
        assert dict(received.properties) == properties
        assert {name: type(value) for name, value in received.properties.items()} == {
            name: type(value) for name, value in properties.items()
        }
        assert (received.correlation_id, received.type, received.priority) == ("c", "t", 7)
        assert (received.group_id, received.group_sequence) == ("g", 3)
        assert str(received.reply_to) == "topic://r"
        assert str(received.destination) == "queue://q"
        assert received.message_id == sent.message_id
        assert received.timestamp == sent.timestamp
        assert received.expiration == sent.expiration
        assert received.persistent
        assert received.delivery_count == 1


@pytest.mark.parametrize("body", ["text", '{"map":', b"\0\xff", None, {"k": "v", "n": 5, "f": 1.5, "b": True}])
@pytest.mark.parametrize("way", ["amqp to stomp", "stomp to amqp", "vm to stomp", "stomp to vm"])
def test_bodies_and_headers_pass_between_stomp_and_others(broker: EmbeddedBroker, body: object, way: str) -> None:
    urls = {"amqp": broker.amqp_url, "stomp": broker.stomp_url, "vm": broker.vm_url}
    start, end = (urls[name] for name in way.split(" to "))
    with redelivery.connect(start) as sending, redelivery.connect(end) as receiving:
        producer = sending.session().producer("q", priority=7, ttl=3600)
        message = redelivery.Message(
            body, properties={"colour": "red", "n": 5}, correlation_id="c", reply_to="topic://r"
        )
        sent = producer.send(message, type="t")
        received = receiving.session().consumer("q").receive(20)
        assert received is not None
        assert received.body == body
        assert type(received.body) is type(body)
        assert {name: received.properties[name] for name in ("colour", "n")} == {"colour": "red", "n": "5"}
        assert (received.correlation_id, received.type, received.priority) == ("c", "t", 7)
        assert str(received.reply_to) == "topic://r"
        assert received.expiration == sent.expiration
        assert received.persistent
        assert not received.redelivered
        if way == "amqp to stomp":
            assert received.message_id == sent.message_id


def test_what_no_other_protocol_can_carry_is_named_there_and_stops_no_consumer(
    client: Peer, stomp: Raw, broker: EmbeddedBroker
) -> None:
    sender = client.sender("q")
    nested = {"body": {"deep": [1, 2]}, "properties": {"kept": "yes"}}
    for _ in range(2):
        client.send(sender, nested, {"body": [1, 2], "inferred": True}, "fine")
    stomp.subscribe()
    frames = stomp.messages(6)[:3]
    assert [("transformation-error" in frame.headers, frame.headers.get("kept"), frame.body) for frame in frames] == [
        (True, "yes", b""),
        (True, None, b""),
        (False, None, b"fine"),
    ]
    for number in range(3):
        stomp.ok("ACK", id=frames[number].headers["ack"])
    stomp.drop()
    with redelivery.connect(broker.vm_url) as vm:
        consumer = vm.session().consumer("q")
        message = consumer.receive(20)
        assert message is not None
        assert message.properties["kept"] == "yes"
        assert message.body == {"deep": [1, 2]}
        rest = [consumer.receive(20) for _ in range(2)]
        assert [each and each.body for each in rest] == [[1, 2], "fine"]


def test_what_stomp_cannot_carry_does_not_stop_its_consumer(broker: EmbeddedBroker) -> None:
    with redelivery.connect(broker.vm_url) as vm, redelivery.connect(broker.stomp_url) as stomp:
        producer = vm.session().producer("q")
        for body in ([1, "stream"], {"raw": b"bytes"}, "nul\0in text"):
            producer.send(body)
        producer.send("fine", properties={"nul": "a\0b", "kept": "yes"})
        consumer = stomp.session().consumer("q")
        received = [consumer.receive(20) for _ in range(4)]
        assert [message.properties.get("kept") for message in received if message] == [None, None, None, "yes"]
        assert received[2] is not None
        assert received[2].body == b"nul\0in text"
    assert broker.queue_depth("q") == 0


def test_what_amqp_cannot_carry_is_left_out_and_stops_nobody(client: Peer, broker: EmbeddedBroker) -> None:
    with redelivery.connect(broker.vm_url) as vm:
        producer = vm.session().producer("q")
        producer.send("half \ud800", properties={"kept": 5})
        producer.send("fine", properties={"batch_limit": "\ud800", "kept": 6})
        producer.send("fine", correlation_id="\ud800")
    client.receiver("q")
    received = [message for _, message in client.receive(3)]
    assert [message.body for message in received] == [None, "fine", "fine"]
    assert [(message.properties or {}).get("kept") for message in received] == [5, 6, None]
    assert ["transformation-error" in (message.properties or {}) for message in received] == [True, True, True]


def test_a_stomp_message_is_as_jms_over_amqp_says(client: Peer, stomp: Raw) -> None:
    stomp.ok("SEND", b"hi", destination="/queue/q", **{"correlation-id": "c", "persistent": "true", "own": "x"})
    client.receiver("q")
    _, message = client.one()
    assert (message.body, message.correlation_id, message.durable, message.address) == ("hi", "c", True, "q")
    assert message.properties == {"own": "x"}
    assert message.annotations == {symbol("x-opt-jms-msg-type"): 5, symbol("x-opt-jms-dest"): 0}


def test_counts_are_the_same_over_every_protocol(client: Peer, stomp: Raw, broker: EmbeddedBroker) -> None:
    client.send(client.sender("q"), "m")
    for expected in (0, 1):
        receiver = client.receiver("q", credit=1)
        assert client.one()[1].delivery_count == expected
        client.end(receiver)
    stomp.subscribe()
    assert stomp.next().headers["redelivered"] == "true"
    stomp.ok("UNSUBSCRIBE", id="s")
    with redelivery.connect(broker.vm_url) as vm:
        message = vm.session().consumer("q").receive(20)
        assert message is not None
        assert message.delivery_count == 4


def test_a_reply_finds_its_way_from_stomp_to_a_temporary_queue(client: Peer, stomp: Raw) -> None:
    inbox = client.receiver(None, "temporary-queue", dynamic=True)
    address = inbox.remote_source.address
    request = {"body": "ping", "id": "request-1", "reply_to": address}
    stomp.subscribe()
    client.send(client.sender("q"), request)
    frame = stomp.next()
    stomp.ok("SEND", b"pong", destination=frame.headers["reply-to"], **{"correlation-id": frame.headers["message-id"]})
    _, reply = client.one()
    assert (reply.body, reply.address) == ("pong", address)
    assert reply.correlation_id.endswith("request-1")
    stomp.ok("ACK", id=frame.headers["ack"])
    client.end(inbox)
    answer = stomp.call("SEND", b"late", destination=frame.headers["reply-to"])
    assert (answer.command, "does not exist" in answer.headers["message"]) == ("ERROR", True)


def test_a_ttl_ends_in_the_dead_letter_queue(client: Peer, broker: EmbeddedBroker) -> None:
    client.send(client.sender("q"), {"body": "short", "ttl": 0.05, "durable": True}, {"body": "long", "ttl": 60})
    client.receiver("ActiveMQ.DLQ")
    _, letter = client.one()
    assert letter.body == "short"
    assert letter.properties is not None
    assert "expired" in letter.properties["dlqDeliveryFailureCause"].lower()
    client.receiver("q")
    _, message = client.one()
    assert message.body == "long"
    assert 0 < message.ttl <= 60
    assert broker.queue_depth("q") == 1


@pytest.mark.parametrize("how", ["delay", "time"])
def test_a_delayed_message_comes_at_its_time(client: Peer, how: str) -> None:
    value = 300 if how == "delay" else epoch_ms() + 300
    began = monotonic()
    client.receiver("q")
    client.send(client.sender("q"), {"body": "late", "annotations": {symbol(f"x-opt-delivery-{how}"): value}}, "now")
    assert [message.body for _, message in client.receive(2)] == ["now", "late"]
    assert 0.25 <= monotonic() - began < 10


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xff\xff",
        b"\x00\x53\x73\xc0\x05\x05\xa1",
        b"\x00\x53\x74\xa1\x02no\x00\x53\x77\x40",
        b"\x00\x53\x74\xc1\x05\x02\xa1\x01\xff\x40\x00\x53\x77\x40",
        b"\x00\x53\x72" + b"\xc0\x04\x01" * 60 + b"\x45" + b"\x00\x53\x77\x40",
    ],
)
def test_what_cannot_be_read_is_refused_and_the_link_goes_on(client: Peer, data: bytes, broker: EmbeddedBroker) -> None:
    sender = client.sender("q")
    with pytest.raises(Refused, match="amqp:decode-error"):
        client.send(sender, data)
    client.send(sender, "fine")
    assert [message.body for message in broker.messages("q")] == ["fine"]


def test_a_body_that_is_cut_off_passes_and_fails_where_it_is_read(client: Peer, broker: EmbeddedBroker) -> None:
    """As ActiveMQ: the broker does not look at bodies."""
    data = b"\x00\x53\x75\xb0\xff\xff\xff\xff"
    client.send(client.sender("q"), data)
    (message,) = broker.messages("q")
    with pytest.raises(redelivery.MessageFormatError, match="cut off"):
        _ = message.body
    client.receiver("q")
    client.until(lambda: bool(client.received))
    assert client.received[0][2].endswith(data)


def test_decimals_and_other_strangers_pass_to_vm_as_texts(client: Peer, broker: EmbeddedBroker) -> None:
    properties = {"decimal": proton.decimal32(0x32800005), "uuid": uuid.UUID(int=5), "when": proton.timestamp(5)}
    client.send(client.sender("q"), {"body": "m", "properties": properties})
    (message,) = broker.messages("q")
    assert Decimal(str(message.properties["decimal"])) == 5
    assert message.properties["uuid"] == str(uuid.UUID(int=5))
    assert message.properties["when"] == 5
