"""Local transactions: declare, discharge, and what is sent and accepted within."""

from __future__ import annotations

import pytest
from proton import Described, ulong
from tests.broker.amqp.amqp_client import ACCEPTED, REJECTED, TRANSACTIONAL, Peer, Refused

from redelivery.broker import BrokerConfig, EmbeddedBroker

UNKNOWN = "amqp:transaction:unknown-id"
DEAD = "ActiveMQ.DLQ"


def left(broker: EmbeddedBroker, queue: str = "q") -> list[object]:
    return [message.body for message in broker.messages(queue)]


def durable(body: str) -> dict[str, object]:
    return {"body": body, "durable": True}


def test_sends_are_visible_after_the_commit(client: Peer, broker: EmbeddedBroker) -> None:
    coordinator, sender = client.coordinator(), client.sender("q")
    transaction = client.declare(coordinator)
    client.send(sender, "a", "b", transaction=transaction)
    assert left(broker) == []
    client.discharge(coordinator, transaction)
    assert left(broker) == ["a", "b"]


def test_sends_are_forgotten_after_a_rollback(client: Peer, broker: EmbeddedBroker) -> None:
    coordinator, sender = client.coordinator(), client.sender("q")
    transaction = client.declare(coordinator)
    client.send(sender, "a", transaction=transaction)
    client.discharge(coordinator, transaction, fail=True)
    client.send(sender, "b")
    assert left(broker) == ["b"]


def test_a_sent_message_is_answered_with_its_transaction(client: Peer) -> None:
    coordinator, sender = client.coordinator(), client.sender("q")
    transaction = client.declare(coordinator)
    data = client.outcome(client.put(sender, "a", transaction), TRANSACTIONAL)
    assert bytes(data[0]) == transaction
    assert data[1].descriptor in (ACCEPTED, "amqp:accepted:list")


@pytest.mark.parametrize("settled", [True, False])
def test_accepted_messages_go_with_the_commit(client: Peer, broker: EmbeddedBroker, settled: bool) -> None:
    client.send(client.sender("q"), "a", "b")
    coordinator = client.coordinator()
    client.receiver("q")
    (first, _), (second, _) = client.receive(2)
    transaction = client.declare(coordinator)
    client.enlist(first, transaction, settled=settled)
    client.enlist(second, transaction, settled=settled)
    assert client.quiet()
    assert left(broker) == ["a", "b"]
    client.discharge(coordinator, transaction)
    assert left(broker) == []
    if not settled:
        client.until(lambda: first.settled and second.settled)
        assert first.remote_state == ACCEPTED


def test_a_settled_accept_comes_back_counted_after_a_rollback(client: Peer, broker: EmbeddedBroker) -> None:
    client.send(client.sender("q"), "a", "b", "c")
    coordinator = client.coordinator()
    receiver = client.receiver("q", credit=2)
    (first, _), (second, _) = client.receive(2)
    transaction = client.declare(coordinator)
    client.enlist(second, transaction, settled=True)
    client.enlist(first, transaction, settled=True)
    client.discharge(coordinator, transaction, fail=True)
    receiver.flow(3)
    again = client.receive(3)
    assert [(message.body, message.delivery_count) for _, message in again] == [("a", 1), ("b", 1), ("c", 0)]
    transaction = client.declare(coordinator)
    for delivery, _ in again:
        client.enlist(delivery, transaction, settled=True)
    client.discharge(coordinator, transaction)
    assert left(broker) == []


def test_an_unsettled_accept_stays_with_the_client_after_a_rollback(client: Peer, broker: EmbeddedBroker) -> None:
    client.send(client.sender("q"), "a")
    coordinator = client.coordinator()
    client.receiver("q")
    delivery, _ = client.one()
    with Peer(broker.amqp_url) as other:
        other.receiver("q")
        for _ in range(3):
            transaction = client.declare(coordinator)
            client.enlist(delivery, transaction, settled=False)
            client.discharge(coordinator, transaction, fail=True)
        assert other.quiet()
        assert client.quiet()
        transaction = client.declare(coordinator)
        client.enlist(delivery, transaction, settled=True)
        client.discharge(coordinator, transaction)
        assert other.quiet()
    assert left(broker) == []


def test_after_rollbacks_the_message_can_be_released_counted_once(client: Peer) -> None:
    client.send(client.sender("q"), "a")
    coordinator = client.coordinator()
    receiver = client.receiver("q", credit=1)
    delivery, _ = client.one()
    for _ in range(3):
        transaction = client.declare(coordinator)
        client.enlist(delivery, transaction, settled=False)
        client.discharge(coordinator, transaction, fail=True)
    client.end(receiver)
    client.receiver("q")
    assert client.one()[1].delivery_count == 1


def test_a_message_is_rejected_outside_of_the_transaction(client: Peer, broker: EmbeddedBroker) -> None:
    client.send(client.sender("q"), durable("bad"), durable("good"))
    coordinator = client.coordinator()
    client.receiver("q")
    (bad, _), (good, _) = client.receive(2)
    transaction = client.declare(coordinator)
    client.enlist(bad, transaction, settled=False)
    client.enlist(good, transaction, settled=False)
    client.reject(bad, "my:poison", "thought again")
    assert client.quiet()
    assert left(broker, DEAD) == ["bad"]
    client.discharge(coordinator, transaction)
    assert left(broker) == []
    assert left(broker, DEAD) == ["bad"]


@pytest.mark.parametrize("fail", [False, True])
def test_a_rejection_within_a_transaction_counts_from_the_commit(
    client: Peer, broker: EmbeddedBroker, fail: bool
) -> None:
    client.send(client.sender("q"), durable("bad"))
    coordinator = client.coordinator()
    client.receiver("q", credit=1)
    delivery, _ = client.one()
    transaction = client.declare(coordinator)
    rejected = Described(ulong(REJECTED), [Described(ulong(0x1D), [None, "within"])])
    client.enlist(delivery, transaction, settled=True, outcome=rejected)
    assert client.quiet()
    assert left(broker, DEAD) == []
    client.discharge(coordinator, transaction, fail=fail)
    assert (left(broker), left(broker, DEAD)) == ((["bad"], []) if fail else ([], ["bad"]))


def test_transactions_stand_side_by_side_and_span_sessions(client: Peer, broker: EmbeddedBroker) -> None:
    coordinator, sender = client.coordinator(), client.sender("q")
    one, two = client.declare(coordinator), client.declare(coordinator)
    assert one != two
    client.send(sender, "one", transaction=one)
    client.send(sender, "two", transaction=two)
    client.session = client.connection.session()
    client.session.open()
    client.send(client.sender("q"), "also two", transaction=two)
    client.discharge(coordinator, two)
    assert left(broker) == ["two", "also two"]
    client.discharge(coordinator, one)
    assert left(broker) == ["two", "also two", "one"]


def test_one_delivery_has_an_outcome_in_one_transaction(client: Peer, broker: EmbeddedBroker) -> None:
    client.send(client.sender("q"), "a")
    coordinator = client.coordinator()
    receiver = client.receiver("q")
    delivery, _ = client.one()
    one, two = client.declare(coordinator), client.declare(coordinator)
    client.enlist(delivery, one, settled=False)
    client.enlist(delivery, one, settled=False)  # the same again changes nothing
    client.enlist(delivery, two, settled=False)
    client.until(lambda: bool(receiver.state & 0o40))
    assert receiver.remote_condition.name == "amqp:illegal-state"
    client.discharge(coordinator, one)
    assert left(broker) == []


def test_an_unknown_transaction_is_refused_by_name(client: Peer, broker: EmbeddedBroker) -> None:
    coordinator, sender = client.coordinator(), client.sender("q")
    for transaction in (b"none", b""):
        with pytest.raises(Refused) as refused:
            client.send(sender, "a", transaction=transaction)
        assert refused.value.condition == UNKNOWN
        with pytest.raises(Refused) as refused:
            client.discharge(coordinator, transaction)
        assert refused.value.condition == UNKNOWN
    done = client.declare(coordinator)
    client.discharge(coordinator, done)
    with pytest.raises(Refused) as refused:
        client.discharge(coordinator, done)
    assert refused.value.condition == UNKNOWN
    client.send(sender, "b")
    assert left(broker) == ["b"]


def test_an_accept_in_an_unknown_transaction_ends_the_link_and_loses_nothing(client: Peer) -> None:
    client.send(client.sender("q"), "a")
    receiver = client.receiver("q")
    delivery, _ = client.one()
    client.enlist(delivery, b"none", settled=True)
    client.until(lambda: bool(receiver.state & 0o40))
    assert receiver.remote_condition.name == UNKNOWN
    client.receiver("q")
    assert client.one()[1].delivery_count == 1


def test_what_is_no_request_is_refused(client: Peer) -> None:
    coordinator = client.coordinator()
    for message in (b"\x00\x53\x77\xa1\x02no", b"", b"\xff\xff", b"\x00\x53\x77\x00\x53\x99\x45"):
        with pytest.raises(Refused) as refused:
            client.outcome(client.put(coordinator, message), ACCEPTED)
        assert refused.value.condition == "amqp:decode-error"
    client.discharge(coordinator, client.declare(coordinator))


@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("fail", [True, False])
def test_a_link_that_ends_before_the_discharge_loses_nothing(client: Peer, settled: bool, fail: bool) -> None:
    client.send(client.sender("q"), "a", "b")
    coordinator = client.coordinator()
    receiver = client.receiver("q")
    (first, _), _ = client.receive(2)
    transaction = client.declare(coordinator)
    client.enlist(first, transaction, settled=settled)
    client.end(receiver)
    client.discharge(coordinator, transaction, fail=fail)
    client.receiver("q")
    expected = [("a", 1), ("b", 1)] if fail else [("b", 1)]
    assert [(message.body, message.delivery_count) for _, message in client.receive(len(expected))] == expected
    assert client.quiet()


@pytest.mark.parametrize("how", ["coordinator", "session", "connection", "drop"])
def test_what_is_open_at_the_end_is_rolled_back(broker: EmbeddedBroker, how: str) -> None:
    with Peer(broker.amqp_url) as client:
        sender = client.sender("q")
        client.send(sender, "a")
        coordinator = client.coordinator()
        client.receiver("q", credit=1)
        delivery, _ = client.one()
        transaction = client.declare(coordinator)
        client.send(sender, "invisible", transaction=transaction)
        client.enlist(delivery, transaction, settled=True)
        assert client.quiet()
        if how == "coordinator":
            client.end(coordinator)
        elif how == "session":
            client.session.close()
            client.until(lambda: bool(client.session.state & 0o40))
        elif how == "connection":
            client.bye()
        else:
            client.drop()
    with Peer(broker.amqp_url) as other:
        other.receiver("q")
        _, message = other.one()
        assert (message.body, message.delivery_count) == ("a", 1)
        assert other.quiet()


def test_a_commit_that_finds_no_room_is_rolled_back_and_says_so() -> None:
    config = BrokerConfig(memory_limit=4000)
    with EmbeddedBroker("small", amqp_port=0, config=config) as broker, Peer(broker.amqp_url) as client:
        coordinator, sender = client.coordinator(), client.sender("q")
        client.send(sender, "a")
        client.receiver("q", credit=1)
        delivery, _ = client.one()
        transaction = client.declare(coordinator)
        client.enlist(delivery, transaction, settled=True)
        client.send(sender, "x" * 5000, transaction=transaction)
        with pytest.raises(Refused) as refused:
            client.discharge(coordinator, transaction)
        assert refused.value.condition == "amqp:transaction:rollback"
        assert "memory limit" in refused.value.description
        client.receiver("q")
        assert client.one()[1].delivery_count == 1
        with pytest.raises(Refused) as refused:
            client.send(sender, "x" * 5000)
        assert refused.value.condition == "amqp:resource-limit-exceeded"


def test_many_transactions_one_after_the_other(client: Peer, broker: EmbeddedBroker) -> None:
    coordinator, sender = client.coordinator(), client.sender("q")
    receiver = client.receiver("other", credit=100)
    client.send(client.sender("other"), *(str(number) for number in range(100)))
    for number in range(100):
        delivery, message = client.one()
        assert message.body == str(number)
        transaction = client.declare(coordinator)
        client.send(sender, message.body, transaction=transaction)
        client.enlist(delivery, transaction, settled=bool(number % 2))
        client.discharge(coordinator, transaction)
    assert receiver.credit == 0
    assert left(broker) == [str(number) for number in range(100)]
    assert left(broker, "other") == []
