"""Plain python-qpid-proton, as its documentation shows it: Container with a MessagingHandler, BlockingConnection."""

from __future__ import annotations

import threading
from typing import Any

import proton
import pytest
from proton.handlers import MessagingHandler, TransactionalClientHandler
from proton.reactor import Container
from proton.utils import BlockingConnection

from redelivery.broker import EmbeddedBroker

NUMBER = 2000


class Sends(MessagingHandler):  # type: ignore[misc]  # proton has no types
    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url
        self.sent = self.confirmed = 0

    def on_start(self, event: Any) -> None:
        event.container.create_sender(f"{self.url}/q")

    def on_sendable(self, event: Any) -> None:
        while event.sender.credit and self.sent < NUMBER:
            event.sender.send(proton.Message(body=self.sent))
            self.sent += 1

    def on_accepted(self, event: Any) -> None:
        self.confirmed += 1
        if self.confirmed == NUMBER:
            event.connection.close()


class Receives(MessagingHandler):  # type: ignore[misc]  # proton has no types
    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url
        self.bodies: list[Any] = []

    def on_start(self, event: Any) -> None:
        event.container.create_receiver(f"{self.url}/q")

    def on_message(self, event: Any) -> None:
        self.bodies.append(event.message.body)
        if len(self.bodies) == NUMBER:
            event.connection.close()


class Moves(TransactionalClientHandler):  # type: ignore[misc]  # proton has no types
    """Takes messages of one queue and sends them to another, ten to a transaction; the first and each second aborts."""

    def __init__(self, url: str, number: int) -> None:
        super().__init__(prefetch=0)
        self.url = url
        self.number = number
        self.moved = self.pending = self.discharged = 0

    def on_start(self, event: Any) -> None:
        self.container = event.container
        self.connection = self.container.connect(self.url)
        self.sender = self.container.create_sender(self.connection, "other")
        self.receiver = self.container.create_receiver(self.connection, "q")
        self._declare()

    def on_transaction_declared(self, event: Any) -> None:
        self.transaction = event.transaction
        self.receiver.flow(10)

    def on_message(self, event: Any) -> None:
        self.accept(event.delivery, self.transaction)
        self.transaction.send(self.sender, proton.Message(body=event.message.body))
        self.pending += 1
        if self.pending == 10:
            self.discharged += 1
            (self.transaction.abort if self.discharged % 2 else self.transaction.commit)()

    def on_transaction_committed(self, _: Any) -> None:
        self.moved += 10
        if self.moved == self.number:
            self.connection.close()
        else:
            self._declare()

    def on_transaction_aborted(self, _: Any) -> None:
        self._declare()

    def _declare(self) -> None:
        self.pending = 0
        self.container.declare_transaction(self.connection, handler=self)


def run(handler: Any) -> None:
    container = Container(handler)
    thread = threading.Thread(target=container.run, daemon=True)
    thread.start()
    thread.join(40)
    assert not thread.is_alive(), "it did not come to its end"


def test_a_container_sends_and_receives(broker: EmbeddedBroker) -> None:
    sends, receives = Sends(broker.amqp_url), Receives(broker.amqp_url)
    run(sends)
    assert broker.queue_depth("q") == NUMBER
    run(receives)
    assert receives.bodies == list(range(NUMBER))


def test_a_container_moves_messages_in_transactions(broker: EmbeddedBroker) -> None:
    connection: Any = BlockingConnection(broker.amqp_url, timeout=20)
    sender = connection.create_sender("q")
    for number in range(100):
        sender.send(proton.Message(body=number))
    connection.close()
    run(Moves(broker.amqp_url, 100))
    assert broker.queue_depth("q") == 0
    assert sorted(message.body[0] for message in broker.messages("other")) == list(range(100))


def test_a_blocking_connection_sends_and_receives(broker: EmbeddedBroker) -> None:
    connection: Any = BlockingConnection(broker.amqp_url, timeout=20)
    try:
        sender = connection.create_sender("q")
        for number in range(20):
            sender.send(proton.Message(body=number, durable=True))
        receiver = connection.create_receiver("q", credit=5)
        for number in range(20):
            assert receiver.receive(20).body == number
            (receiver.reject if number == 7 else receiver.accept)()
        dead = connection.create_receiver("ActiveMQ.DLQ")
        assert dead.receive(20).body == 7
        dead.accept()
        with pytest.raises(proton.Timeout):
            receiver.receive(0.2)
    finally:
        connection.close()
    assert broker.queue_depth("q") == broker.queue_depth("ActiveMQ.DLQ") == 0
