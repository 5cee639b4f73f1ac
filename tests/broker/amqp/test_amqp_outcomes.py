"""What each outcome makes of a message, and the count that its next delivery shows."""

from __future__ import annotations

import pytest
from tests.broker.amqp.amqp_client import ACCEPTED, MODIFIED, REJECTED, RELEASED, Peer

from redelivery.broker import EmbeddedBroker

DEAD = "ActiveMQ.DLQ"


def durable(body: object, **more: object) -> dict[str, object]:
    """Only such become dead letters, by ActiveMQ's default strategy."""
    return {"body": body, "durable": True, **more}


def test_accepted_is_gone(client: Peer, broker: EmbeddedBroker) -> None:
    client.send(client.sender("q"), "m")
    client.receiver("q")
    delivery, message = client.one()
    assert (message.body, message.delivery_count, message.first_acquirer) == ("m", 0, True)
    assert broker.queue_depth("q") == 1
    client.settle(delivery, ACCEPTED)
    assert client.quiet()
    assert broker.queue_depth("q") == 0


@pytest.mark.parametrize(
    ("state", "failed", "counts"), [(RELEASED, False, 0), (MODIFIED, False, 0), (MODIFIED, True, 1)]
)
def test_what_comes_back_at_once_is_counted_only_where_it_failed(
    client: Peer, state: int, failed: bool, counts: int
) -> None:
    client.send(client.sender("q"), "first", "second")
    client.receiver("q", credit=1)
    delivery, _ = client.one()
    for times in range(1, 4):
        client.received.clear()
        client.settle(delivery, state, failed=failed)
        delivery.link.flow(1)
        delivery, message = client.one()
        assert message.body == "first", "it stands where it stood"
        assert message.delivery_count == counts * times
        assert not message.first_acquirer


def test_rejected_is_a_dead_letter_with_its_cause(client: Peer, broker: EmbeddedBroker) -> None:
    client.send(client.sender("q"), durable("bad", properties={"n": 5}, annotations={"x-opt-own": 7}))
    client.receiver("q")
    delivery, _ = client.one()
    client.reject(delivery, "my:poison", "no such account")
    client.receiver(DEAD)
    _, letter = client.one()
    assert letter.body == "bad"
    assert letter.address == DEAD
    assert letter.properties == {
        "n": 5,
        "dlqDeliveryFailureCause": "no such account",
        "originalExpiration": "0",
        "originalDestination": "queue://q",
    }
    assert letter.annotations["x-opt-own"] == 7
    assert letter.durable
    assert (broker.queue_depth("q"), broker.queue_depth(DEAD)) == (0, 1)


def test_a_rejection_without_a_text_names_its_condition(client: Peer) -> None:
    client.send(client.sender("q"), durable("a"), durable("b"))
    client.receiver("q")
    (first, _), (second, _) = client.receive(2)
    client.reject(first, "my:poison", "")
    client.settle(second, REJECTED)
    client.receiver(DEAD)
    (_, a), (_, b) = client.receive(2)
    assert a.properties["dlqDeliveryFailureCause"] == "my:poison"
    assert "dlqDeliveryFailureCause" not in b.properties


def test_undeliverable_here_is_a_dead_letter_too(client: Peer) -> None:
    client.send(client.sender("q"), durable("bad"))
    client.receiver("q")
    delivery, _ = client.one()
    client.settle(delivery, MODIFIED, failed=True, undeliverable=True)
    client.receiver(DEAD)
    assert "undeliverable" in client.one()[1].properties["dlqDeliveryFailureCause"]


def test_dead_letters_of_equal_message_ids_are_all_kept(client: Peer, broker: EmbeddedBroker) -> None:
    client.send(client.sender("q"), *(durable(number, id="same") for number in range(3)))
    client.receiver("q")
    for delivery, _ in client.receive(3):
        client.settle(delivery, REJECTED)
    assert client.quiet()
    assert broker.queue_depth(DEAD) == 3


def test_settled_without_an_outcome_comes_again_and_counts(client: Peer) -> None:
    client.send(client.sender("q"), "m")
    client.receiver("q")
    delivery, _ = client.one()
    delivery.settle()
    _, again = client.one()
    assert (again.body, again.delivery_count) == ("m", 1)


def test_an_outcome_without_settling_is_answered_by_settling(client: Peer, broker: EmbeddedBroker) -> None:
    client.send(client.sender("q"), "m")
    client.receiver("q")
    delivery, _ = client.one()
    delivery.update(ACCEPTED)
    client.until(lambda: delivery.settled)
    assert delivery.remote_state == ACCEPTED
    assert broker.queue_depth("q") == 0


def test_a_rejected_message_that_is_not_durable_is_dropped(client: Peer, broker: EmbeddedBroker) -> None:
    client.send(client.sender("q"), "bad")
    client.receiver("q")
    client.reject(client.one()[0], "my:poison", "as ActiveMQ's processNonPersistent=false")
    assert client.quiet()
    assert (broker.queue_depth("q"), broker.queue_depth(DEAD)) == (0, 0)


@pytest.mark.parametrize("how", ["link", "session", "connection", "drop"])
def test_what_was_sent_and_not_settled_counts_at_the_end(broker: EmbeddedBroker, how: str) -> None:
    """As over STOMP: nobody can know whether the application has seen it."""
    with Peer(broker.amqp_url) as client:
        client.send(client.sender("q"), "seen", "unsent")
        receiver = client.receiver("q", credit=1)
        client.one()
        if how == "link":
            client.end(receiver)
        elif how == "session":
            client.session.close()
            client.until(lambda: bool(client.session.state & 0o40))
        elif how == "connection":
            client.bye()
    with Peer(broker.amqp_url) as other:
        other.receiver("q")
        counts = [(message.body, message.delivery_count, message.first_acquirer) for _, message in other.receive(2)]
        assert counts == [("seen", 1, False), ("unsent", 0, True)]
        for _, delivery, _ in other.received:
            other.settle(delivery, ACCEPTED)
