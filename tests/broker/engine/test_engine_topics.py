"""The engine's rules for topics: everybody who listens gets the message, and nothing is kept."""

from __future__ import annotations

from tests.broker.engine.bench import Bench, bodies

from redelivery.model.destinations import Queue, Topic


def test_a_topic_gives_to_everyone_who_listens_and_keeps_nothing(bench: Bench) -> None:
    bench.send("early", to="topic://news")
    _, one = bench.consumer("topic://news")
    gone, two = bench.consumer("topic://*", prefetch=1)
    bench.send("a", "b", to="topic://news")
    assert one.bodies() == ["a", "b"]
    assert two.bodies() == ["a"]
    bench.engine.unsubscribe(gone, 0, all_seen=True)
    bench.engine.acknowledge(one.take(), 0)
    assert bench.engine.memory_used == 0


def test_a_slow_subscriber_of_a_topic_misses_nothing(bench: Bench) -> None:
    _, box = bench.consumer("topic://news", prefetch=1)
    bench.send("a", "b", "c", to="topic://news")
    seen = []
    while box:
        taken = box.take()
        seen += bodies(taken)
        bench.engine.acknowledge(taken, 0)
    assert seen == ["a", "b", "c"]


def test_no_local_keeps_ones_own_messages_away(bench: Bench) -> None:
    _, mine = bench.consumer("topic://news", no_local=True, origin="c1")
    _, other = bench.consumer("topic://news", no_local=True, origin="c2")
    bench.send("a", to="topic://news", origin="c1")
    assert (mine.bodies(), other.bodies()) == ([], ["a"])


def test_an_expired_topic_message_is_forgotten_without_a_dead_letter(bench: Bench) -> None:
    _, box = bench.consumer("topic://news", prefetch=1)
    bench.send("a", to="topic://news")
    bench.send("b", to="topic://news", expiration=1000)
    bench.engine.acknowledge(box.take(), 2000)
    assert box == []
    assert bench.held("ActiveMQ.DLQ") == []
    assert bench.engine.memory_used == 0


def test_a_topic_and_a_queue_of_one_name_are_two(bench: Bench) -> None:
    _, box = bench.consumer("topic://q")
    bench.send("a")
    assert box == []
    assert isinstance(bench.engine.entries("q")[0].message.destination, Queue)
    assert not isinstance(bench.engine.entries("q")[0].message.destination, Topic)
