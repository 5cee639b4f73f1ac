"""Temporary destinations over STOMP: how they are made and named, and why some brokers have none."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import redelivery
from redelivery import ProtocolError, TemporaryQueue, TemporaryTopic, UnsupportedError
from redelivery.broker import EmbeddedBroker
from redelivery.model.destinations import Destination
from redelivery.transports.dialects import detect
from redelivery.transports.dialects.dialect import StompDialect
from redelivery.transports.stomp.codec.names import to_wire
from redelivery.transports.stomp.connection.engine import Engine

SOON = 10.0


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker("stomp-temporaries", stomp_port=0) as broker:
        yield broker


def table(name: str) -> StompDialect:
    stomp = detect._DIALECTS[name].stomp
    assert stomp is not None
    return stomp


@pytest.mark.parametrize(
    ("name", "destination", "why"),
    [
        ("artemis", TemporaryQueue("x"), "ordinary queue"),
        ("artemis", TemporaryTopic("x"), "ordinary queue"),
        ("hornetq", TemporaryQueue("x"), "not configured"),
        ("rabbitmq", TemporaryTopic("x"), "routing key"),
    ],
)
def test_where_there_are_none_the_error_says_why(name: str, destination: Destination, why: str) -> None:
    with pytest.raises(UnsupportedError, match=why):
        to_wire(destination, table(name))


@pytest.mark.parametrize("client_id", [None, "a client"])
def test_its_name_is_that_of_the_broker(broker: EmbeddedBroker, client_id: str | None) -> None:
    with redelivery.connect(broker.stomp_url, client_id=client_id) as connection, connection.session() as session:
        made: list[Destination] = [session.temporary_queue(), session.temporary_topic(), session.temporary_queue()]
        assert {each.name for each in made} == broker.core.call(lambda engine, _: engine._state.temporary)
        consumers = [session.consumer(each) for each in made]
        for each, consumer in zip(made, consumers, strict=True):
            session.producer(each).send("here")
            assert consumer.receive_body(str, timeout=SOON) == "here"
    assert broker.core.call(lambda engine, _: engine._state.temporary) == set()


def test_threads_make_them_at_the_same_time(broker: EmbeddedBroker) -> None:
    with redelivery.connect(broker.stomp_url) as connection, ThreadPoolExecutor(8) as pool:
        start = threading.Barrier(8)

        def make(_: int) -> list[TemporaryQueue]:
            with connection.session() as session:
                start.wait(SOON)
                return [session.temporary_queue() for _ in range(5)]

        made = [each for many in pool.map(make, range(8)) for each in many]
        assert len(set(made)) == 40
        assert {each.name for each in made} == broker.core.call(lambda engine, _: engine._state.temporary)


def test_a_broker_that_names_them_otherwise_is_noticed(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    connected: Any = Engine.connected

    def misled(self: Engine, data: bytes, now: float) -> Any:
        frames = connected(self, data, now)
        self.session = "another"
        return frames

    monkeypatch.setattr(Engine, "connected", misled)
    with redelivery.connect(broker.stomp_url) as connection, connection.session() as session:
        with pytest.raises(ProtocolError, match="not called it temp-queue://another:1"):
            session.temporary_queue()
        session.producer("orders").send("the session goes on")
    assert broker.queue_depth("orders") == 1
