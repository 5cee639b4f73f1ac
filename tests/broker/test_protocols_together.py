"""One broker, two protocols: what is sent over one arrives over the other as it was."""

from __future__ import annotations

import pytest

import redelivery
from redelivery.broker import EmbeddedBroker

BODIES = ["text", '{"map":', b"\0\xff", None, {"k": "v", "n": 5, "f": 1.5, "b": True, "nothing": None}]


@pytest.mark.parametrize("way", ["vm to stomp", "stomp to vm"])
def test_bodies_and_headers_arrive(redelivery_broker: EmbeddedBroker, way: str) -> None:
    urls = [redelivery_broker.vm_url, redelivery_broker.stomp_url]
    if way == "stomp to vm":
        urls.reverse()
    with redelivery.connect(urls[0]) as sending, redelivery.connect(urls[1]) as receiving:
        producer = sending.session().producer("q", priority=7, ttl=3600)
        consumer = receiving.session().consumer("q")
        for body in BODIES:
            message = redelivery.Message(body, properties={"colour": "red"}, correlation_id="c", reply_to="topic://r")
            sent = producer.send(message, type="t")
            received = consumer.receive(20)
            assert received is not None
            assert received.body == body
            assert type(received.body) is type(body)
            assert received.properties["colour"] == "red"
            assert (received.correlation_id, received.type, received.priority) == ("c", "t", 7)
            assert str(received.reply_to) == "topic://r"
            assert received.expiration == sent.expiration
            assert received.persistent
            assert not received.redelivered


def test_what_vm_gave_back_is_redelivered_over_stomp(redelivery_broker: EmbeddedBroker) -> None:
    with redelivery.connect(redelivery_broker.vm_url) as vm, vm.session(ack_mode="transacted") as session:
        vm.session().producer("q").send("m")
        first = session.consumer("q").receive(20)
        assert first is not None
        assert not first.redelivered
    with redelivery.connect(redelivery_broker.stomp_url) as stomp:
        again = stomp.session().consumer("q").receive(20)
        assert again is not None
        assert (again.body, again.redelivered, again.delivery_count) == ("m", True, 2)


def test_what_stomp_cannot_carry_does_not_stop_its_consumer(redelivery_broker: EmbeddedBroker) -> None:
    with (
        redelivery.connect(redelivery_broker.vm_url) as vm,
        redelivery.connect(redelivery_broker.stomp_url) as stomp,
    ):
        producer = vm.session().producer("q")
        for body in ([1, "stream"], {"raw": b"bytes"}, "nul\0in text"):
            producer.send(body)
        producer.send("fine", properties={"nul": "a\0b", "kept": "yes"})
        consumer = stomp.session().consumer("q")
        received = [consumer.receive(20) for _ in range(4)]
        assert [message.properties.get("kept") for message in received if message] == [None, None, None, "yes"]
        assert received[2] is not None
        assert received[2].body == b"nul\0in text"
    assert redelivery_broker.queue_depth("q") == 0
