"""Planned faults, as a client of ``vm://`` meets them."""

from __future__ import annotations

import threading
import time

import pytest
from tests.broker.vm.vm_client import Client, now

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.model.errors import (
    ConfigError,
    ConnectError,
    ConnectionLostError,
    InDoubtError,
    JMSError,
    TransactionRolledBackError,
    UnsupportedError,
)


def test_a_planned_error_is_raised_and_nothing_done(client: Client, broker: EmbeddedBroker) -> None:
    fault = broker.faults.error("SEND", "no room today", nth=2)
    client.send("a")
    with pytest.raises(JMSError, match="no room today"):
        client.send("b")
    client.send("c")
    assert [message.body for message in broker.messages("q")] == ["a", "c"]
    assert fault.hits == 1


def test_a_commit_that_is_refused_on_purpose(client: Client, broker: EmbeddedBroker) -> None:
    client.consume()
    client.send("a")
    held = client.take()
    broker.faults.error("COMMIT", "not now")
    with pytest.raises(TransactionRolledBackError, match="not now"):
        now(client.channel.commit(held))
    now(client.channel.commit(held))
    assert broker.queue_depth("q") == 0


@pytest.mark.parametrize(("how", "left"), [("drop", 1), ("drop_after", 0)])
def test_a_commit_whose_answer_is_lost_is_in_doubt(broker: EmbeddedBroker, how: str, left: int) -> None:
    client = Client(broker.name)
    client.consume()
    client.send("a")
    held = client.take()
    fault = getattr(broker.faults, how)("COMMIT")
    with pytest.raises(InDoubtError):
        now(client.channel.commit(held))
    assert fault.wait(0)
    assert len(client.events.lost) == 1
    assert broker.queue_depth("q") == left
    with pytest.raises(ConnectionLostError):
        client.channel.accept(held, batched=False)


def test_a_connect_can_be_refused(broker: EmbeddedBroker) -> None:
    broker.faults.drop("CONNECT")
    with pytest.raises(ConnectError):
        Client(broker.name)
    Client(broker.name).close()


def test_faults_check_their_arguments_and_can_be_cleared(client: Client, broker: EmbeddedBroker) -> None:
    for arguments in ({"command": "PUBLISH"}, {"command": "SEND", "nth": 0}, {"command": "SEND", "times": True}):
        with pytest.raises(ConfigError):
            broker.faults.drop(**arguments)
    with pytest.raises(ConfigError, match="seconds"):
        broker.faults.delay("SEND", -1)
    broker.faults.error("SEND", "never", times=None)
    broker.faults.clear()
    client.send("a")


def test_a_delay_is_obeyed(client: Client, broker: EmbeddedBroker) -> None:
    fault = broker.faults.delay("SEND", 0.2)
    began = time.monotonic()
    client.send("a")
    assert time.monotonic() - began >= 0.2
    client.send("b")
    assert fault.hits == 1
    assert broker.queue_depth("q") == 2


def test_a_delay_ends_with_the_connection(client: Client, broker: EmbeddedBroker) -> None:
    fault = broker.faults.delay("SEND", 60)

    def abort() -> None:
        assert fault.wait(5)
        client.transport.abort()

    thread = threading.Thread(target=abort)
    thread.start()
    with pytest.raises(JMSError):
        client.send("a")
    thread.join(5)


def test_what_leaves_an_answer_out_needs_a_socket(broker: EmbeddedBroker) -> None:
    for plan in (lambda: broker.faults.swallow("SEND"), broker.faults.silence):
        with pytest.raises(UnsupportedError, match=r"^faults\.(swallow|silence) needs a socket: use broker\.stomp_url"):
            plan()
    assert broker.faults.never_struck == ()


def test_a_swallowed_frame_over_vm_is_an_error_and_no_hit() -> None:
    with EmbeddedBroker("with-sockets", stomp_port=0) as broker:
        fault = broker.faults.swallow("SEND", nth=2)
        with redelivery.connect(broker.vm_url) as connection, connection.session() as session:
            producer = session.producer("orders")
            producer.send("a")
            with pytest.raises(UnsupportedError, match="swallow needs a socket"):
                producer.send("b")
            assert fault.hits == 0
            broker.faults.clear()
            producer.send("c")
            broker.faults.swallow("COMMIT")
            with connection.session("transacted") as transacted:
                transacted.producer("orders").send("d")
                with pytest.raises(UnsupportedError, match="swallow needs a socket"):
                    transacted.commit()
        broker.faults.clear()
        broker.faults.swallow("CONNECT")
        with pytest.raises(UnsupportedError, match="swallow needs a socket"):
            redelivery.connect(broker.vm_url)
        assert broker.queue_depth("orders") == 2


def test_which_planned_faults_never_struck(client: Client, broker: EmbeddedBroker) -> None:
    broker.faults.error("SEND", "no")
    never = broker.faults.drop("COMMIT", nth=2)
    with pytest.raises(JMSError):
        client.send("a")
    assert broker.faults.never_struck == (never,)
    assert str(never) == "drop COMMIT"
    broker.faults.clear()
    assert list(broker.faults.never_struck) == []
