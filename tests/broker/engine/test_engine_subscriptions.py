"""The engine's rules for named subscriptions to topics."""

from __future__ import annotations

import pytest
from tests.broker.engine.bench import Bench, Box

from redelivery import IllegalStateError, InvalidDestinationError
from redelivery.broker.engine.subscriptions import Subscription
from redelivery.broker.engine.transactions import Transaction
from redelivery.model.destinations import SubscriptionName, Topic

DURABLE = SubscriptionName("sub", durable=True, shared=False)
SHARED = SubscriptionName("sub", durable=False, shared=True)
SHARED_DURABLE = SubscriptionName("sub", durable=True, shared=True)


def consume(
    bench: Bench, named: SubscriptionName, topic: str = "t", client_id: str | None = "me", **options: object
) -> tuple[Subscription, Box]:
    box = Box()
    subscription = Subscription(
        Topic(topic),
        box,
        prefetch=1,
        named=named,
        client_id=client_id,
        **options,  # type: ignore[arg-type]  # no_local
    )
    bench.engine.subscribe(subscription)
    bench.engine.start(subscription, 0)
    return subscription, box


def leave(bench: Bench, subscription: Subscription) -> None:
    bench.engine.unsubscribe(subscription, 0, all_seen=False)


def test_a_durable_one_keeps_and_charges_what_it_holds(bench: Bench) -> None:
    subscription, _ = consume(bench, DURABLE)
    bench.send("a", "b", to="topic://t")
    leave(bench, subscription)
    bench.send("c", to="topic://t")
    assert bench.engine.memory_used == 300
    _, box = consume(bench, DURABLE)
    for expected in "abc":
        assert box.bodies() == [expected]
        bench.engine.acknowledge(box.take(), 0)
    assert bench.engine.memory_used == 0


def test_names_belong_to_client_ids(bench: Bench) -> None:
    mine, yours = consume(bench, DURABLE)[1], consume(bench, DURABLE, client_id="you")[1]
    bench.send("a", to="topic://t")
    assert (mine.bodies(), yours.bodies()) == (["a"], ["a"])
    with pytest.raises(IllegalStateError, match="client id"):
        consume(bench, DURABLE, client_id=None)


def test_consumers_of_a_shared_one_share(bench: Bench) -> None:
    boxes = [consume(bench, SHARED, client_id=None)[1] for _ in range(2)]
    bench.send("a", "b", to="topic://t")
    assert [box.bodies() for box in boxes] == [["a"], ["b"]]


def test_what_a_consumer_of_a_shared_one_held_goes_to_another_in_order(bench: Bench) -> None:
    (leaving, _), (_, box) = (consume(bench, SHARED) for _ in range(2))
    bench.send("a", "b", "c", to="topic://t")
    leave(bench, leaving)
    assert box.bodies() == ["b"]
    for expected in "bac":
        assert box.bodies() == [expected]
        bench.engine.acknowledge(box.take(), 0)


@pytest.mark.parametrize("change", [{"topic": "u"}, {"no_local": True, "origin": "me"}])
def test_a_change_begins_anew_unless_somebody_consumes(bench: Bench, change: dict[str, object]) -> None:
    subscription, _ = consume(bench, SHARED_DURABLE)
    with pytest.raises(IllegalStateError, match="has consumers"):
        consume(bench, SHARED_DURABLE, **change)  # type: ignore[arg-type]  # of those above
    bench.send("gone", to="topic://t")
    leave(bench, subscription)
    _, box = consume(bench, SHARED_DURABLE, **change)  # type: ignore[arg-type]  # of those above
    bench.send("t", to="topic://t")
    bench.send("u", to="topic://u")
    assert box.bodies() == ["u" if "topic" in change else "t"]
    assert bench.engine.memory_used == 100


def test_a_shared_and_an_unshared_one_of_a_name_exclude_each_other_even_unused(bench: Bench) -> None:
    leave(bench, consume(bench, DURABLE)[0])
    with pytest.raises(IllegalStateError, match="there is the durable subscription"):
        consume(bench, SHARED_DURABLE)
    consume(bench, SHARED)  # which is another one


def test_unsubscribing_waits_for_consumers_and_transactions(bench: Bench) -> None:
    with pytest.raises(InvalidDestinationError, match="no durable subscription 'sub' of the client id 'me'"):
        bench.engine.remove_subscription("sub", "me")
    subscription, box = consume(bench, DURABLE)
    bench.send("a", to="topic://t")
    with pytest.raises(IllegalStateError, match="in use"):
        bench.engine.remove_subscription("sub", "me")
    transaction = Transaction()
    bench.engine.enlist(transaction, box, 0)
    leave(bench, subscription)
    with pytest.raises(IllegalStateError, match="not committed"):
        bench.engine.remove_subscription("sub", "me")
    bench.engine.rollback(transaction, 0)
    bench.engine.remove_subscription("sub", "me")
    assert (bench.engine.memory_used, dict(bench.engine.queues)) == (0, {})


def test_what_a_transaction_holds_of_a_shared_one_outlives_it(bench: Bench) -> None:
    subscription, box = consume(bench, SHARED)
    bench.send("a", to="topic://t")
    transaction = Transaction()
    bench.engine.enlist(transaction, box.take(), 0)
    leave(bench, subscription)
    _, box = consume(bench, SHARED)
    bench.send("b", to="topic://t")
    bench.engine.rollback(transaction, 0)
    assert box.bodies() == ["b"]
    assert bench.engine.memory_used == 100


def test_expiry_in_a_durable_one_makes_a_dead_letter(bench: Bench) -> None:
    leave(bench, consume(bench, DURABLE)[0])
    bench.send("a", to="topic://t", expiration=10)
    bench.engine.tick(10)
    assert bench.held("ActiveMQ.DLQ") == ["a"]
    assert str(bench.engine.entries("ActiveMQ.DLQ")[0].message.original_destination) == "topic://t"


def test_a_message_that_two_durable_ones_refuse_is_one_dead_letter(bench: Bench) -> None:
    """As with ActiveMQ, whose strategies know a message by its id."""
    for client_id in ("me", "you"):
        consume(bench, DURABLE, client_id=client_id)
    bench.send("bad", to="topic://t")
    for queue in list(bench.engine.queues.values()):
        (dispatch,) = queue.consumers[0].in_flight.values()
        bench.engine.poison(dispatch, "bad", 0)
    assert bench.held("ActiveMQ.DLQ") == ["bad"]
