"""Faults over AMQP, as a user's test plans them: by the names of the commands that do the same over STOMP."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.broker.amqp.amqp_client import ACCEPTED, Peer, Refused

from redelivery.broker import EmbeddedBroker
from redelivery.transports.wire.clock import monotonic


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker("amqp-faults", amqp_port=0, stomp_port=0) as broker:
        yield broker


@pytest.fixture
def client(broker: EmbeddedBroker) -> Iterator[Peer]:
    with Peer(broker.amqp_url) as client:
        yield client


def left(broker: EmbeddedBroker) -> list[object]:
    return [message.body for message in broker.messages("q")]


def commit_one(client: Peer, body: str) -> None:
    coordinator = client.coordinator()
    transaction = client.declare(coordinator)
    client.send(client.sender("q"), body, transaction=transaction)
    client.discharge(coordinator, transaction)


def test_drop_cuts_before_the_commit_is_done(client: Peer, broker: EmbeddedBroker) -> None:
    fault = broker.faults.drop("COMMIT")
    with pytest.raises(AssertionError, match="closed the connection"):
        commit_one(client, "m")
    assert fault.wait(5)
    assert left(broker) == []


def test_drop_after_does_it_and_answers_nothing(client: Peer, broker: EmbeddedBroker) -> None:
    fault = broker.faults.drop_after("COMMIT", nth=2)
    commit_one(client, "first")
    assert not fault.wait(0)
    with pytest.raises(AssertionError, match="closed the connection"):
        commit_one(client, "second")
    assert fault.hits == 1
    assert left(broker) == ["first", "second"]


def test_what_was_answered_before_a_cut_still_arrives(client: Peer, broker: EmbeddedBroker) -> None:
    broker.faults.drop("SEND", nth=3)
    sender = client.sender("q")
    sent = [client.put(sender, str(number)) for number in range(3)]
    assert client.closed()
    assert [delivery.remote_state for delivery in sent] == [ACCEPTED, ACCEPTED, 0]
    assert left(broker) == ["0", "1"]


def test_an_error_refuses_a_send_by_its_text(client: Peer, broker: EmbeddedBroker) -> None:
    broker.faults.error("SEND", "no room today", times=2)
    sender = client.sender("q")
    for _ in range(2):
        with pytest.raises(Refused, match="amqp:internal-error: no room today"):
            client.send(sender, "m")
    client.send(sender, "fine")
    assert left(broker) == ["fine"]


def test_a_commit_that_is_refused_is_rolled_back(client: Peer, broker: EmbeddedBroker) -> None:
    client.send(client.sender("q"), "held")
    broker.faults.error("COMMIT", "disk full")
    coordinator = client.coordinator()
    receiver = client.receiver("q", credit=1)
    delivery, _ = client.one()
    transaction = client.declare(coordinator)
    client.send(client.sender("q"), "m", transaction=transaction)
    client.enlist(delivery, transaction, settled=True)
    with pytest.raises(Refused, match="disk full"):
        client.discharge(coordinator, transaction)
    assert left(broker) == ["held"]
    receiver.flow(1)
    assert client.one()[1].delivery_count == 1


@pytest.mark.parametrize("command", ["BEGIN", "ABORT"])
def test_declare_and_rollback_can_be_refused(client: Peer, broker: EmbeddedBroker, command: str) -> None:
    coordinator = client.coordinator()
    transaction = client.declare(coordinator)
    broker.faults.error(command, "not now")
    if command == "BEGIN":
        with pytest.raises(Refused, match="not now"):
            client.declare(coordinator)
    else:
        with pytest.raises(Refused, match="not now"):
            client.discharge(coordinator, transaction, fail=True)
    client.discharge(coordinator, transaction)


def test_swallow_leaves_one_waiting(client: Peer, broker: EmbeddedBroker) -> None:
    fault = broker.faults.swallow("SEND")
    delivery = client.put(client.sender("q"), "m")
    assert client.quiet()
    assert (fault.hits, delivery.remote_state, delivery.settled) == (1, 0, False)
    assert left(broker) == []


def test_an_acknowledgement_can_be_swallowed_or_end_the_link(client: Peer, broker: EmbeddedBroker) -> None:
    client.send(client.sender("q"), "a", "b")
    receiver = client.receiver("q")
    (first, _), (second, _) = client.receive(2)
    broker.faults.swallow("ACK")
    broker.faults.error("ACK", "no")
    client.settle(first, ACCEPTED)
    client.settle(second, ACCEPTED)
    client.until(lambda: bool(receiver.state & 0o40))
    assert receiver.remote_condition.description == "no"
    client.receiver("q")
    assert [message.delivery_count for _, message in client.receive(2)] == [1, 1]


def test_delay_holds_one_connection_in_order_and_no_other(client: Peer, broker: EmbeddedBroker) -> None:
    broker.faults.delay("SEND", 0.3)
    sender = client.sender("q")
    began = monotonic()
    late = client.put(sender, "late")
    client.put(sender, "behind")
    client.flush()
    with Peer(broker.amqp_url) as other:
        other.send(other.sender("q"), "other")
        assert left(broker) == ["other"]
    client.outcome(late, ACCEPTED)
    assert 0.3 <= monotonic() - began < 5
    assert client.quiet()
    assert left(broker) == ["other", "late", "behind"]


def test_silence_keeps_what_it_would_say(client: Peer, broker: EmbeddedBroker) -> None:
    sender = client.sender("q")
    broker.faults.silence()
    delivery = client.put(sender, "m")
    assert not client.step(0.3)
    assert left(broker) == ["m"]
    broker.faults.clear()
    client.outcome(delivery, ACCEPTED)


def test_an_open_can_be_refused_or_cut(broker: EmbeddedBroker) -> None:
    broker.faults.error("CONNECT", "closed on Sundays")
    broker.faults.drop("CONNECT")
    with Peer(broker.amqp_url, connect=False) as client, pytest.raises(Refused, match="closed on Sundays"):
        client.until(lambda: False)
    with Peer(broker.amqp_url, connect=False) as client:
        assert client.closed()
    with Peer(broker.amqp_url):
        pass


@pytest.mark.parametrize("command", ["SUBSCRIBE", "UNSUBSCRIBE", "DISCONNECT"])
def test_attaching_and_leaving_can_fail(client: Peer, broker: EmbeddedBroker, command: str) -> None:
    fault = broker.faults.error(command, "not so")
    if command == "SUBSCRIBE":
        with pytest.raises(Refused, match="not so"):
            client.receiver("q")
    elif command == "UNSUBSCRIBE":
        receiver = client.receiver("q")
        client.end(receiver)
        assert receiver.remote_condition.description == "not so"
    else:
        client.bye()
        assert client.connection.remote_condition.description == "not so"
    assert fault.hits == 1


def test_a_rejection_can_be_lost_with_the_connection(client: Peer, broker: EmbeddedBroker) -> None:
    client.send(client.sender("q"), {"body": "bad", "durable": True})
    client.receiver("q")
    delivery, _ = client.one()
    broker.faults.drop_after("NACK")
    client.reject(delivery, "my:poison", "why")
    assert client.closed()
    assert (left(broker), broker.queue_depth("ActiveMQ.DLQ")) == ([], 1)
