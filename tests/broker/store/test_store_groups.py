"""A long group whose owner is full: a page of it is in memory at a time, and all is given as by a queue in memory."""

from __future__ import annotations

import pytest
from hypothesis import settings
from tests.broker.engine.bench import Box
from tests.broker.store.test_engine_machine_stored import StoredMachine
from tests.broker.store.turns import LONG, NUMBERS, PAGE, Turns
from tests.broker.test_engine_machine import QUEUES
from tests.run import forms

from redelivery.broker.engine import moves
from redelivery.broker.engine.subscriptions import Subscription


class TestGroups:
    def two(self, bench: Turns) -> tuple[Subscription, Box, Box]:
        owner, full = bench.consumer(prefetch=1)
        bench.send("first", group_id="g")
        _, other = bench.consumer(prefetch=5)
        return owner, full, other

    def test_a_full_owner_does_not_bring_its_group_into_memory(self, bench: Turns) -> None:
        _, full, other = self.two(bench)
        bench.send(*NUMBERS, group_id="g")
        bench.settle()
        assert (full.bodies(), other.bodies()) == (["first"], [])
        assert bench.peak <= 2 * PAGE + 2
        bench.send("free")
        bench.settle()
        assert other.bodies() == ["free"]
        assert bench.all_of(full) == ["first", *NUMBERS]
        assert bench.peak <= 3 * PAGE
        assert bench.engine.depth("q") == 1

    def test_a_long_queue_of_one_group_is_passed_a_page_at_a_time(self, bench: Turns) -> None:
        bench.send(*NUMBERS, group_id="g")
        _, full = bench.consumer(prefetch=1)
        _, other = bench.consumer(prefetch=5)
        bench.send("free")
        assert bench.settle() >= LONG // PAGE - 2
        assert (full.bodies(), other.bodies()) == (["0"], ["free"])
        assert bench.peak <= 3 * PAGE
        assert bench.held("q") == [*NUMBERS, "free"]
        assert bench.all_of(full) == NUMBERS

    def test_an_owner_gets_its_group_before_what_came_later(self, bench: Turns) -> None:
        bench.send(*NUMBERS, group_id="g")
        owner, box = bench.credited(1)
        other, _ = bench.consumer(prefetch=5)
        bench.settle()
        bench.engine.unsubscribe(other, 0, all_seen=False)
        bench.send("free")
        bench.engine.grant(owner, LONG + 1, 0)
        bench.settle()
        assert box.bodies() == [*NUMBERS, "free"]

    @pytest.mark.parametrize("selector", [None, "JMSXGroupID = 'g'"])
    def test_when_the_owner_leaves_the_others_get_the_group_in_order(self, bench: Turns, selector: str | None) -> None:
        owner, full = bench.consumer(prefetch=1)
        bench.send("first", group_id="g")
        _, other = bench.consumer(prefetch=5, selector=selector)
        bench.send(*NUMBERS, group_id="g")
        bench.settle()
        assert full.bodies() == ["first"]
        bench.engine.unsubscribe(owner, 0, all_seen=False)
        bench.settle()
        assert bench.all_of(other) == ["first", *NUMBERS]
        assert bench.peak <= 3 * PAGE

    def test_what_follows_the_end_of_a_group_is_another_ones(self, bench: Turns) -> None:
        """Though its owner has not got the end of it yet."""
        _, full, other = self.two(bench)
        bench.send(*NUMBERS, group_id="g")
        bench.send("last", group_id="g", group_sequence=-1)
        bench.send("next", group_id="g")
        bench.settle()
        assert other.bodies() == ["next"]
        assert bench.all_of(full) == ["first", *NUMBERS, "last"]

    def test_what_is_released_comes_before_what_is_left_to_the_store(self, bench: Turns) -> None:
        owner, full, _ = self.two(bench)
        bench.send(*NUMBERS, group_id="g")
        bench.settle()
        bench.engine.stop(owner)
        bench.engine.release(full.take(), 0)
        bench.engine.start(owner, 0)
        bench.settle()
        assert bench.all_of(full) == ["first", *NUMBERS]


class TurnsMachine(StoredMachine):
    """The engine's machine, where each call reads a page of two messages at most."""

    def all_is_well(self) -> None:
        state = self.engine._state
        while state.searched or state.starved:
            self.engine.begin()
            moves.go_on(state, self.now)
        super().all_is_well()
        self._nobody_has_passed_what_it_wants()
        self.engine.begin()

    def _nobody_has_passed_what_it_wants(self) -> None:
        for name in QUEUES:
            queue = self.engine.queues.get(name)
            if queue is None:
                continue
            assert queue.paged_out == len(queue.left) + sum(
                len(places) for each in queue.consumers for places in each.later.values()
            )
            held = {entry.order: entry for entry in self.engine.entries(name)}
            for consumer in self.live:
                if consumer.queue == name and len(consumer.held.keys() - consumer.free) < consumer.prefetch:
                    assert not consumer.subscription.later
                    waiting = [held[order].message for order in queue.left.some(0, len(queue.left))]
                    numbers = [int(message.message_id.removeprefix("ID:")) for message in waiting]
                    assert not any(self._wants(consumer, number) for number in numbers)


TurnsMachine.TestCase.settings = settings(max_examples=forms.examples(5), stateful_step_count=60, deadline=None)
TestEngineInTurns = pytest.mark.timeout(300)(TurnsMachine.TestCase)  # as the engine's machine
