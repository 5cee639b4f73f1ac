"""A consumer of a pattern: what it costs grows as the number of its queues does, and each queue has its turn."""

from __future__ import annotations

from pathlib import Path
from time import monotonic

import pytest

import redelivery
from redelivery import PrefetchPolicy, RedeliveryPolicy
from redelivery.broker import EmbeddedBroker

QUEUES = 3000
AT_ONCE = RedeliveryPolicy(initial_redelivery_delay=0, redelivery_delay=0)


@pytest.mark.parametrize("stored", [False, True], ids=["in memory", "stored"])
def test_thousands_of_queues_are_attached_and_drained_in_seconds(stored: bool, tmp_path: Path) -> None:
    """It was quadratic: 3,000 took 14 s, 10,000 did not end."""
    store = tmp_path / "shop.db" if stored else None
    with EmbeddedBroker("many", store=store) as broker, redelivery.connect(broker.vm_url) as connection:
        with connection.session("transacted") as session:
            producer = session.producer()
            for number in range(QUEUES):
                producer.send("x", f"q.{number}")
            session.commit()
        began = monotonic()
        with connection.session("transacted") as session:
            consumer = session.consumer("q.*")
            for number in range(QUEUES):
                assert consumer.receive(timeout=5) is not None
                if number % 100 == 0:
                    session.commit()
            session.commit()
            assert consumer.receive(timeout=0) is None
        assert monotonic() - began < 10


def test_a_long_queue_does_not_keep_the_others_from_their_turn() -> None:
    with (
        EmbeddedBroker("turns") as broker,
        redelivery.connect(broker.vm_url, prefetch=PrefetchPolicy(queue=2)) as connection,
        connection.session() as session,
    ):
        for number in range(50):
            broker.send("q.long", f"long {number}")
        for number in range(5):
            broker.send(f"q.{number}", f"short {number}")
        consumer = session.consumer("q.*")
        got = [message.body for _ in range(55) if (message := consumer.receive(timeout=5)) is not None]
        assert len(got) == 55
        assert [each for each in got if each.startswith("long")] == [f"long {number}" for number in range(50)]
        assert {f"short {number}" for number in range(5)} <= set(got[:20])


@pytest.mark.parametrize("selector", ["n = 1", None])
def test_what_waits_in_many_queues_comes_when_there_is_room_again(selector: str | None) -> None:
    """One that was refused, put back, or sent meanwhile is not forgotten."""
    with (
        EmbeddedBroker("room") as broker,
        redelivery.connect(broker.vm_url, prefetch=1, redelivery_policy=AT_ONCE) as connection,
        connection.session("transacted") as session,
    ):
        consumer = session.consumer("q.*", selector=selector)
        for round_ in range(3):
            for number in range(20):
                broker.send(f"q.{number}", f"{round_} {number}", properties={"n": 1})
            first = consumer.receive(timeout=5)
            assert first is not None
            session.rollback()
            got = [message.body for _ in range(20) if (message := consumer.receive(timeout=5)) is not None]
            session.commit()
            assert sorted(got) == sorted(f"{round_} {number}" for number in range(20))
