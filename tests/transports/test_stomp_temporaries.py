"""Temporary destinations over STOMP: how they are made and named, and why some brokers have none."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.transports.scripted import BrokerEnd, ScriptedBroker

import redelivery
from redelivery import (
    ConnectionLostError,
    InvalidDestinationError,
    JMSError,
    ProtocolError,
    TemporaryQueue,
    TemporaryTopic,
    UnsupportedError,
)
from redelivery.broker import EmbeddedBroker
from redelivery.model.destinations import Destination
from redelivery.transports.dialects import detect
from redelivery.transports.dialects.dialect import StompDialect
from redelivery.transports.stomp.codec.names import to_wire
from redelivery.transports.stomp.connection.engine import StompEngine

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
    connected: Any = StompEngine.connected

    def misled(self: StompEngine, data: bytes, now: float) -> Any:
        frames = connected(self, data, now)
        self.session = "another"
        return frames

    monkeypatch.setattr(StompEngine, "connected", misled)
    with redelivery.connect(broker.stomp_url) as connection, connection.session() as session:
        with pytest.raises(ProtocolError, match="not called it temp-queue://another:1"):
            session.temporary_queue()
        session.producer("orders").send("the session goes on")
    assert broker.queue_depth("orders") == 1


class Guarded:
    """ActiveMQ Classic 6.3: a connection consumes those temporary queues alone that it has made.

    ``refused``: the SUBSCRIBEs of others.
    """

    def __init__(self) -> None:
        self.refused = 0

    def __call__(self, end: BrokerEnd) -> None:
        made: set[str] = set()
        try:
            end.take("CONNECT")
            end.send("CONNECTED", version="1.2", server="ActiveMQ/6.3.1", heart_beat="0,0", session=f"ID{id(end)}")
            while True:
                frame = end.take()
                place, _, name = frame.headers.get("destination", "").partition("-queue/")
                if frame.command == "SUBSCRIBE" and place == "/temp":
                    made.add(f"ID{id(end)}:{len(made) + 1}")
                if frame.command == "SUBSCRIBE" and place == "/remote-temp" and name not in made:
                    self.refused += 1
                    end.refuse(frame, "Subscribing to a temporary queue created by another connection is not permitted")
                elif "receipt" in frame.headers:
                    end.answer(frame)
        except OSError:
            return


def test_each_session_has_its_own_where_another_socket_may_not_consume_them_also_after_a_loss() -> None:
    script = Guarded()
    errors: list[JMSError] = []
    with ScriptedBroker(script) as broker:
        url = f"failover:(stomp://127.0.0.1:{broker.port})"
        with redelivery.connect(url, exception_listener=errors.append) as connection:
            sessions = [connection.session() for _ in range(3)]
            queues = [session.temporary_queue() for session in sessions for _ in range(2)]
            consumers = [sessions[number // 2].consumer(queue) for number, queue in enumerate(queues)]
            with pytest.raises(InvalidDestinationError, match="the session that made it is the one that consumes it"):
                sessions[0].consumer(queues[-1])
            broker.ends[0].sock.shutdown(socket.SHUT_RDWR)  # which loses the others, too
            for session in sessions:
                session.producer("orders").send("back")
            now = {consumer.destination for consumer in consumers}
            assert len(now) == 6
            assert not now & set(queues)
            assert script.refused == 1
            assert not any(consumer.closed for consumer in consumers)
    assert [each for each in errors if not isinstance(each, ConnectionLostError)] == []


def test_one_outlives_its_session_whose_socket_serves_another_one() -> None:
    script = Guarded()
    with ScriptedBroker(script) as broker, redelivery.connect(f"stomp://127.0.0.1:{broker.port}") as connection:
        with connection.session(), connection.session() as second, connection.session():
            queue = second.temporary_queue()
        sockets = len(broker.ends)
        assert sockets == 3
        with connection.session() as first, connection.session() as other:
            refused = 0
            for session in (first, other):
                try:
                    session.consumer(queue)
                except InvalidDestinationError:
                    refused += 1
            assert refused == 1
        assert len(broker.ends) == sockets
