"""A large message leaves a piece at a time: what a client may do before it has all of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.broker.amqp.amqp_client import ACCEPTED, Peer

from redelivery.broker import EmbeddedBroker

BODY = bytes(range(256)) * (64 << 10)  # 16 MiB, far more than the sockets hold
OTHER = b"x" * len(BODY)


@pytest.fixture
def slow(broker: EmbeddedBroker) -> Iterator[Peer]:
    with Peer(broker.amqp_url, receive_buffer=64 << 10) as client:
        yield client


def begun(client: Peer) -> None:
    client.until(lambda: any(map(len, client._part.values())))
    assert not client.received


@pytest.mark.parametrize("how", ["consumed", "browsed", "settled by the broker"])
def test_it_comes_whole(client: Peer, broker: EmbeddedBroker, how: str) -> None:
    client.send(client.sender("q"), {"body": BODY}, "small", {"body": OTHER})
    client.receiver("q", browse=how == "browsed", settled=how == "settled by the broker")
    for sent in (BODY, "small", OTHER):
        delivery, message = client.one()
        assert message.body == sent
        client.settle(delivery, ACCEPTED)
    assert client.quiet()
    assert broker.queue_depth("q") == (3 if how == "browsed" else 0)


@pytest.mark.parametrize("how", ["close", "detach"])
@pytest.mark.parametrize("browse", [False, True])
def test_a_link_that_ends_within_it_leaves_its_session_to_others(
    slow: Peer, broker: EmbeddedBroker, how: str, browse: bool
) -> None:
    slow.send(slow.sender("q"), {"body": BODY})
    for number in range(1, 6):
        receiver = slow.receiver("q", browse=browse)
        begun(slow)
        slow.end(receiver) if how == "close" else slow.detach(receiver)
        assert (slow.aborted, slow.received) == (number, []), "the beginning of a message is not taken for all of it"
    slow.send(slow.sender("other"), "small")
    slow.receiver("other")
    assert slow.one()[1].body == "small"
    slow.receiver("q")
    assert slow.one()[1].body == BODY
    assert broker.queue_depth("q") == 1


def test_what_is_settled_within_it_is_settled_and_the_next_one_comes(slow: Peer, broker: EmbeddedBroker) -> None:
    slow.send(slow.sender("q"), {"body": BODY}, {"body": OTHER})
    receiver = slow.receiver("q")
    begun(slow)
    slow.settle(receiver.current, ACCEPTED)
    slow._part.clear()
    broker.wait_for("q", depth=1)
    assert slow.one()[1].body == OTHER


def test_its_credit_is_not_given_twice(slow: Peer, broker: EmbeddedBroker) -> None:
    slow.send(slow.sender("q"), {"body": BODY}, "second", "third")
    receiver = slow.receiver("q", credit=1)
    begun(slow)
    receiver.flow(1)
    slow.flush()
    with Peer(broker.amqp_url) as other:
        other.receiver("q")
        delivery, message = other.one()
        assert message.body == "third"
        other.settle(delivery, ACCEPTED)
    assert slow.one()[1].body == BODY
    assert slow.one()[1].body == "second"


@pytest.mark.parametrize("how", ["bye", "drop"])
def test_a_client_that_leaves_within_it_has_not_received_it(slow: Peer, client: Peer, how: str) -> None:
    """It counts, as what was sent as a whole does."""
    slow.send(slow.sender("q"), {"body": BODY})
    slow.receiver("q")
    begun(slow)
    slow.bye() if how == "bye" else slow.drop()
    client.receiver("q")
    delivery, message = client.one()
    assert (message.body, message.delivery_count) == (BODY, 1)
    client.settle(delivery, ACCEPTED)
