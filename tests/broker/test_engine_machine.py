"""The engine against a model of its own: every message is in exactly one place, in order, and nothing is lost.

The model knows messages only by number. It says where each must be (waiting, in flight at a consumer, in a transaction,
dead, gone), how often each was seen, and that waiting ones are in the order in which they came.
"""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, precondition, rule
from tests.broker.engine.clients import SELECTORS, Consumer, OpenTransaction
from tests.broker.engine.lives import DEAD, Lives
from tests.run import forms

from redelivery.broker.engine.config import BrokerConfig
from redelivery.broker.engine.engine import Engine
from redelivery.broker.engine.stored import StoredMessage
from redelivery.broker.engine.subscriptions import Dispatch, Subscription
from redelivery.broker.engine.transactions import Transaction
from redelivery.model.destinations import Queue
from redelivery.model.selectors.selector import Selector

QUEUES = ("a", "b")


class EngineMachine(RuleBasedStateMachine):
    """Rules are what clients do; the invariants hold after each."""

    consumers = Bundle("consumers")
    open_transactions = Bundle("open_transactions")

    def __init__(self) -> None:
        super().__init__()
        self.lives = Lives()
        self.engine = Engine(BrokerConfig(), self.lives)
        self.now = 1000
        self.number = 0
        self.counts: dict[int, int] = {}  # deliveries to be shown with the next dispatch
        self.home: dict[int, str] = {}  # the queue of each message that is not gone
        self.expires: dict[int, int] = {}
        self.groups: dict[int, str | None] = {}
        self.kinds: dict[int, int] = {}
        self.due: dict[int, tuple[str, int]] = {}  # delayed: queue and time
        self.order: dict[int, int] = {}  # when it came to its queue
        self.arrivals = 0
        self.live: list[Consumer] = []
        self.open: list[OpenTransaction] = []
        self.orphans: set[int] = set()  # acknowledged in a transaction, their consumer is gone

    # what clients do

    @rule(
        queue=st.sampled_from(QUEUES),
        life=st.sampled_from((0, 0, 0, 5, 50)),
        delay=st.sampled_from((0, 0, 20)),
        group=st.sampled_from((None, None, "g", "h")),
        kind=st.integers(0, 2),
    )
    def send(self, queue: str, life: int, delay: int, group: str | None, kind: int) -> None:
        number = self._new(queue, life, delay)
        self.groups[number] = group
        self.kinds[number] = kind
        self.engine.send(self._stored(number, queue, delay), self.now)
        if not delay:
            self._arrive(number, queue)

    @rule(
        target=consumers,
        queue=st.sampled_from(QUEUES),
        prefetch=st.integers(1, 3),
        selector=st.sampled_from((None, *SELECTORS)),
    )
    def subscribe(self, queue: str, prefetch: int, selector: str | None) -> Consumer:
        consumer = Consumer(queue, prefetch, selector)
        consumer.subscription = Subscription(Queue(queue), consumer, prefetch=prefetch)
        self.live.append(consumer)
        self.engine.subscribe(consumer.subscription, selector=None if selector is None else Selector(selector))
        self.engine.start(consumer.subscription, self.now)
        return consumer

    @rule(consumer=consumes(consumers), lost=st.booleans())
    def leave(self, consumer: Consumer, lost: bool) -> None:
        self.engine.unsubscribe(consumer.subscription, self.now, all_seen=lost)
        self.live.remove(consumer)
        enlisted = {number for transaction in self.open for owner, number in transaction.acks if owner is consumer}
        for number in consumer.held:
            self.counts[number] += lost or number in consumer.seen
        self.orphans |= enlisted

    @rule(consumer=consumers, data=st.data())
    def mark_seen(self, consumer: Consumer, data: st.DataObject) -> None:
        number = self._choose(consumer, data)
        if number is not None:
            consumer.seen.add(number)
            consumer.free.add(number)
            self.engine.mark_seen([consumer.held[number]], self.now)

    @rule(consumer=consumers, data=st.data())
    def acknowledge(self, consumer: Consumer, data: st.DataObject) -> None:
        number = self._choose(consumer, data)
        if number is not None:
            self._gone(number)
            self.engine.acknowledge([consumer.held.pop(number)], self.now)

    @rule(consumer=consumers, data=st.data())
    def poison(self, consumer: Consumer, data: st.DataObject) -> None:
        number = self._choose(consumer, data)
        if number is not None:
            self._dead_letter(number)
            self.engine.poison(consumer.held.pop(number), "cause", self.now)

    @rule(consumer=consumers)
    def release(self, consumer: Consumer) -> None:
        dispatches = [consumer.held[number] for number in self._unlisted(consumer) if number not in consumer.seen]
        for dispatch in dispatches:
            del consumer.held[_number(dispatch)]
        self.engine.release(dispatches, self.now)

    @rule(target=open_transactions)
    def begin(self) -> OpenTransaction:
        transaction = OpenTransaction(Transaction())
        self.open.append(transaction)
        return transaction

    @rule(transaction=open_transactions, queue=st.sampled_from(QUEUES))
    def send_in_transaction(self, transaction: OpenTransaction, queue: str) -> None:
        number = self._new(queue, 0, 0)
        transaction.sends.append((queue, number))
        self.engine.enlist_send(transaction.enlisted, self._stored(number, queue, 0))

    @rule(transaction=open_transactions, consumer=consumers, data=st.data())
    def acknowledge_in_transaction(self, transaction: OpenTransaction, consumer: Consumer, data: st.DataObject) -> None:
        number = self._choose(consumer, data)
        if number is not None:
            transaction.acks.append((consumer, number))
            consumer.free.add(number)
            self.engine.enlist(transaction.enlisted, [consumer.held[number]], self.now)

    @rule(transaction=consumes(open_transactions))
    def commit(self, transaction: OpenTransaction) -> None:
        self.open.remove(transaction)
        for consumer, number in transaction.acks:
            self._gone(number)
            consumer.held.pop(number)
            self.orphans.discard(number)
        for queue, number in transaction.sends:
            self._arrive(number, queue)
        self.engine.commit(transaction.enlisted, self.now)

    @rule(transaction=consumes(open_transactions))
    def rollback(self, transaction: OpenTransaction) -> None:
        self.open.remove(transaction)
        self.orphans -= {number for _, number in transaction.acks}
        self.engine.rollback(transaction.enlisted, self.now)

    @rule(passed=st.integers(1, 30))
    def time_passes(self, passed: int) -> None:
        self.now += passed
        for number, (queue, _) in sorted(self.due.items(), key=lambda item: item[1][1]):
            if self.due[number][1] <= self.now:
                del self.due[number]
                self._arrive(number, queue)
        self.engine.tick(self.now)

    @precondition(lambda self: self.engine.depth(DEAD) > 3)
    @rule()
    def empty_the_dead_letter_queue(self) -> None:
        consumer = Consumer(DEAD, 1000)
        consumer.subscription = Subscription(Queue(DEAD), consumer, prefetch=1000)
        self.engine.subscribe(consumer.subscription)
        self.engine.start(consumer.subscription, self.now)
        assert all(dispatch.count == 1 for dispatch in consumer.box), "a dead letter's count begins again"
        for dispatch in consumer.box:
            self._gone(_number(dispatch))
        self.engine.acknowledge(consumer.box, self.now)
        self.engine.unsubscribe(consumer.subscription, self.now, all_seen=False)

    # what must hold

    @invariant()
    def all_is_well(self) -> None:
        self.what_was_given_was_due()
        self.every_message_is_in_one_place()
        self.nobody_waits_in_vain()
        self.a_group_is_at_one_consumer()
        self.memory_is_what_is_there()
        self.the_observer_knows_where_each_is()

    def the_observer_knows_where_each_is(self) -> None:
        """What the engine has notified its observer of is what it holds."""
        held = {entry for queue in self.engine.queues.values() for entry in queue.entries.values()}
        assert self.lives.waiting == {entry for entry in held if entry.backlog is not None}
        assert self.lives.in_flight == held - self.lives.waiting

    def what_was_given_was_due(self) -> None:
        """Each dispatch is of the consumer's queue, shows the right count, is not expired, and is in order."""
        for consumer in self.live:
            new, consumer.box[:] = list(consumer.box), []
            for dispatch in new:
                number = _number(dispatch)
                assert self.home[number] == consumer.queue
                assert self._wants(consumer, number)
                assert dispatch.count == self.counts[number]
                assert not 0 < self.expires[number] <= self.now
                assert number not in consumer.held
                consumer.held[number] = dispatch
                consumer.free.discard(number)
                consumer.seen.discard(number)
            for group in (None, "g", "h"):
                came = [self.order[_number(each)] for each in new if self.groups.get(_number(each)) == group]
                assert came == sorted(came), "given in order, what came back at its old place"

    def every_message_is_in_one_place(self) -> None:
        self._note_expired()
        for queue in (*QUEUES, DEAD):
            here = [_of(entry.message) for entry in self.engine.entries(queue)]
            assert sorted(here) == sorted(number for number, home in self.home.items() if home == queue)
            in_order = [number for number in here if queue != DEAD]
            assert in_order == sorted(in_order, key=self.order.__getitem__)
        held = [number for consumer in self.live for number in consumer.held]
        assert len(held) == len(set(held)), "one consumer at a time"
        for queue in QUEUES:
            state = self.engine.queues.get(queue)
            if state is not None:
                waiting = {_of(entry.message) for entry in state.pending.values()}
                for consumer in self.live:
                    if consumer.queue == queue:
                        waiting |= {_of(entry.message) for entry in consumer.subscription.waiting.values()}
                flying = {number for consumer in self.live if consumer.queue == queue for number in consumer.held}
                both = flying | {number for number in self.orphans if self.home.get(number) == queue}
                assert waiting.isdisjoint(both)
                assert waiting | both == {number for number, home in self.home.items() if home == queue}

    def nobody_waits_in_vain(self) -> None:
        for consumer in self.live:
            filling = len(consumer.held.keys() - consumer.free)
            assert filling <= consumer.prefetch
            pending = self.engine.queues[consumer.queue].pending.values()
            waits = any(self._wants(consumer, _of(entry.message)) for entry in pending)
            assert not (waits or consumer.subscription.waiting) or filling == consumer.prefetch

    def a_group_is_at_one_consumer(self) -> None:
        """Of those that select the same."""
        at: dict[tuple[str, str, str | None], Consumer] = {}
        for consumer in self.live:
            for number in consumer.held:
                group = self.groups.get(number)
                if group is not None:
                    assert at.setdefault((consumer.queue, group, consumer.selector), consumer) is consumer

    def memory_is_what_is_there(self) -> None:
        there = sum(entry.message.size for queue in (*QUEUES, DEAD) for entry in self.engine.entries(queue))
        assert self.engine.memory_used == there + 10 * len(self.due)

    # helpers

    def _new(self, queue: str, life: int, delay: int) -> int:
        self.number += 1
        self.counts[self.number] = 1
        self.expires[self.number] = self.now + life if life else 0
        if delay:
            self.due[self.number] = (queue, self.now + delay)
        return self.number

    def _stored(self, number: int, queue: str, delay: int) -> StoredMessage:
        return StoredMessage(
            message_id=f"ID:{number}",
            destination=Queue(queue),
            expiration=self.expires[number],
            delivery_time=self.now + delay if delay else 0,
            group_id=self.groups.get(number),
            properties={"kind": self.kinds.get(number, 0)},
            size=10,
        )

    def _wants(self, consumer: Consumer, number: int) -> bool:
        return SELECTORS[consumer.selector](self.kinds.get(number, 0), self.counts[number])

    def _arrive(self, number: int, queue: str) -> None:
        self.arrivals += 1
        self.order[number] = self.arrivals
        self.home[number] = queue

    def _gone(self, number: int) -> None:
        del self.home[number]

    def _dead_letter(self, number: int) -> None:
        self.home[number] = DEAD

    def _unlisted(self, consumer: Consumer) -> list[int]:
        enlisted = {number for transaction in self.open for owner, number in transaction.acks if owner is consumer}
        return [number for number in consumer.held if number not in enlisted]

    def _choose(self, consumer: Consumer, data: st.DataObject) -> int | None:
        free = self._unlisted(consumer)
        return data.draw(st.sampled_from(free)) if free else None

    def _note_expired(self) -> None:
        """Waiting messages expire at a tick or when they are looked at; in flight they do not."""
        held = {number for consumer in self.live for number in consumer.held} | self.orphans
        dead = {_of(entry.message) for entry in self.engine.entries(DEAD)}
        for number in dead:
            if self.home.get(number) in QUEUES:
                assert 0 < self.expires[number] <= self.now, "only what has expired goes by itself"
                assert number not in held
                self._dead_letter(number)


def _of(message: StoredMessage) -> int:
    return int(message.message_id.removeprefix("ID:"))


def _number(dispatch: Dispatch) -> int:
    return _of(dispatch.message)


EngineMachine.TestCase.settings = settings(max_examples=forms.examples(150), stateful_step_count=60, deadline=None)
TestEngine = pytest.mark.timeout(300)(EngineMachine.TestCase)  # the nightly form has ten times as many examples
