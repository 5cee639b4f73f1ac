"""A plain stomp.py client at the embedded broker, as its documentation shows."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
import stomp

from redelivery.broker import EmbeddedBroker


class Listener(stomp.ConnectionListener):  # type: ignore[misc]  # stomp.py has no types
    """Puts what comes into a queue."""

    def __init__(self) -> None:
        self.frames: queue.Queue[Any] = queue.Queue()
        self.gone = threading.Event()

    def on_message(self, frame: Any) -> None:
        self.frames.put(frame)

    def on_error(self, frame: Any) -> None:
        self.frames.put(frame)

    def on_disconnected(self) -> None:
        self.gone.set()

    def next(self) -> Any:
        return self.frames.get(timeout=20)


@pytest.fixture(params=[stomp.Connection12, stomp.Connection11], ids=["1.2", "1.1"])
def connected(request: pytest.FixtureRequest, redelivery_broker: EmbeddedBroker) -> Iterator[tuple[Any, Listener]]:
    parts = urlsplit(redelivery_broker.stomp_url)
    connection = request.param([(parts.hostname, parts.port)], heartbeats=(5000, 5000))
    listener = Listener()
    connection.set_listener("", listener)
    connection.connect("user", "pass", wait=True)
    yield connection, listener
    if connection.is_connected():
        connection.disconnect()
        assert listener.gone.wait(20)


def test_send_subscribe_ack(connected: tuple[Any, Listener], redelivery_broker: EmbeddedBroker) -> None:
    connection, listener = connected
    connection.subscribe("/queue/orders", id="1", ack="client-individual")
    connection.send("/queue/orders", "hällo", headers={"persistent": "true", "colour": "red:ish"})
    frame = listener.next()
    assert (frame.cmd, frame.body) == ("MESSAGE", "hällo")
    assert frame.headers["colour"] == "red:ish"
    if isinstance(connection, stomp.Connection12):
        connection.ack(frame.headers["ack"])
    else:
        connection.ack(frame.headers["message-id"], "1")
    connection.send("/queue/orders", "next")
    assert listener.next().body == "next"
    assert redelivery_broker.queue_depth("orders") == 1


def test_a_transaction_with_nack_outside_of_it(
    connected: tuple[Any, Listener], redelivery_broker: EmbeddedBroker
) -> None:
    connection, listener = connected
    connection.subscribe("/queue/orders", id="1", ack="client-individual")
    connection.send("/queue/orders", "bad", headers={"persistent": "true"})
    frame = listener.next()
    transaction = connection.begin()
    connection.send("/queue/out", "done", transaction=transaction)
    connection.abort(transaction)
    if isinstance(connection, stomp.Connection12):
        connection.nack(frame.headers["ack"])
    else:
        connection.nack(frame.headers["message-id"], "1")
    connection.subscribe("/queue/ActiveMQ.DLQ", id="2", ack="auto")
    letter = listener.next()
    assert (letter.body, letter.headers["original-destination"]) == ("bad", "/queue/orders")
    assert redelivery_broker.queue_depth("out") == 0


def test_an_error_frame_reaches_the_listener(connected: tuple[Any, Listener]) -> None:
    connection, listener = connected
    connection.commit("never-begun")
    frame = listener.next()
    assert frame.cmd == "ERROR"
    assert "never-begun" in frame.headers["message"]


def test_the_end_of_the_broker_is_noticed(connected: tuple[Any, Listener], redelivery_broker: EmbeddedBroker) -> None:
    _, listener = connected
    redelivery_broker.close()
    assert listener.gone.wait(20)
