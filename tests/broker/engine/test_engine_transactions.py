"""The engine's transactions: sends and acknowledgements take effect together, or not at all."""

from __future__ import annotations

import pytest
from tests.broker.engine.bench import Bench

from redelivery.broker.engine.config import BrokerConfig
from redelivery.broker.engine.transactions import Transaction
from redelivery.model.errors import IllegalStateError, ResourceAllocationError, TransactionRolledBackError


def test_sends_of_a_transaction_are_seen_at_its_commit_only(bench: Bench) -> None:
    _, box = bench.consumer()
    transaction = Transaction()
    bench.engine.enlist_send(transaction, bench.message("a"))
    assert box == []
    bench.engine.commit(transaction, 0)
    assert box.bodies() == ["a"]
    with pytest.raises(IllegalStateError, match="ended"):
        bench.engine.commit(transaction, 0)


def test_a_rollback_leaves_deliveries_with_their_consumer_and_drops_sends(bench: Bench) -> None:
    _, box = bench.consumer()
    bench.send("a")
    transaction = Transaction()
    bench.engine.enlist(transaction, box, 0)
    bench.engine.enlist_send(transaction, bench.message("x", "other"))
    bench.engine.rollback(transaction, 0)
    assert box.bodies() == ["a"], "nothing is dispatched again"
    assert bench.held("other") == []
    bench.engine.acknowledge(box, 0)
    assert bench.held("q") == []


def test_an_ack_in_a_transaction_widens_the_window_and_cannot_be_repeated(bench: Bench) -> None:
    _, box = bench.consumer(prefetch=1)
    bench.send("a", "b")
    transaction = Transaction()
    bench.engine.enlist(transaction, [box[0]], 0)
    assert box.bodies() == ["a", "b"]
    for again in (bench.engine.acknowledge, lambda named, now: bench.engine.poison(named[0], None, now)):
        with pytest.raises(IllegalStateError, match="open transaction"):
            again([box[0]], 0)


def test_a_transaction_keeps_its_acks_when_the_consumer_leaves(bench: Bench) -> None:
    leaving, box = bench.consumer()
    bench.send("a", "b", "c")
    committed, undone = Transaction(), Transaction()
    bench.engine.enlist(committed, [box[0]], 0)
    bench.engine.enlist(undone, [box[1]], 0)
    bench.engine.unsubscribe(leaving, 0, all_seen=True)
    bench.engine.commit(committed, 0)
    assert bench.held("q") == ["b", "c"]
    bench.engine.rollback(undone, 0)
    _, box = bench.consumer()
    assert [(dispatch.message.body, dispatch.count) for dispatch in box] == [("b", 2), ("c", 2)]


def test_a_commit_that_does_not_fit_does_nothing() -> None:
    bench = Bench(BrokerConfig(memory_limit=250))
    _, box = bench.consumer()
    bench.send("a", "b")
    transaction = Transaction()
    bench.engine.enlist(transaction, [box[0]], 0)
    for body in ("x", "y"):
        bench.engine.enlist_send(transaction, bench.message(body, "other"))
    with pytest.raises(TransactionRolledBackError) as caught:
        bench.engine.commit(transaction, 0)
    assert isinstance(caught.value.__cause__, ResourceAllocationError)
    assert bench.held("other") == []
    bench.engine.acknowledge(box, 0)


def test_what_a_commit_acknowledges_makes_room_for_what_it_sends() -> None:
    bench = Bench(BrokerConfig(memory_limit=250))
    _, box = bench.consumer()
    bench.send("a", "b")
    transaction = Transaction()
    bench.engine.enlist(transaction, box, 0)
    for body in ("x", "y"):
        bench.engine.enlist_send(transaction, bench.message(body, "other"))
    bench.engine.commit(transaction, 0)
    assert bench.held("other") == ["x", "y"]
