"""A session's ledger beside the model: whatever happens in whatever order, both must say the same."""

from __future__ import annotations

from collections.abc import Callable, Sized
from random import Random
from typing import ClassVar, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.client.ledger.fakes import FakeDelivery
from tests.client.ledger.model import CHANCE, Effects, Lane, Letter, Limits, Model, Place
from tests.client.ledger.order_effects import check_order_of, effects_of

from redelivery.client.ledger import ConsumerState, Ledger, Poison, Received
from redelivery.model.destinations import Queue
from redelivery.model.modes import AckMode
from redelivery.transports.delivery import Link, LinkSpec

LIMITS = (
    Limits(maximum=2, first=250, later=125),
    Limits(maximum=5, first=125, later=100, multiplier=2, cap=900),
    Limits(maximum=0, first=1000, later=1000),
    Limits(maximum=-1, first=0, later=200),
    Limits(maximum=2, first=250, later=250, spread=True),
    Limits(maximum=1, first=2000, later=2000),
)
T = TypeVar("T")
JUST = 0.001
AT_ONCE = (AckMode.AUTO, AckMode.DUPS_OK)
ANY = st.integers(0, 11)  # which one, counted round
WIRE_COUNTS = st.sampled_from((1, 1, 1, 2, 4))


class Chance(Random):
    """No chance at all."""

    def random(self) -> float:
        return CHANCE


class LedgerMachine(RuleBasedStateMachine):
    """Facts go to both; after each one orders, places and counts are compared."""

    make: ClassVar[Callable[..., Ledger]] = Ledger
    mode: ClassVar[AckMode] = AckMode.TRANSACTED

    @initialize(
        non_blocking=st.booleans(),
        max_delayed=st.sampled_from((2, 1000)),
        consumers=st.lists(st.tuples(st.sampled_from(LIMITS), st.booleans()), min_size=1, max_size=2),
        backlog=st.lists(WIRE_COUNTS, min_size=2, max_size=5),
    )
    def begin(
        self, non_blocking: bool, max_delayed: int, consumers: list[tuple[Limits, bool]], backlog: list[int]
    ) -> None:
        self.non_blocking = non_blocking
        self.max_delayed = max_delayed
        self.consumers = consumers
        self.backlog = backlog
        self._start()

    # facts

    @rule(limits=st.sampled_from(LIMITS), check=st.booleans())
    @precondition(lambda self: len(self.model.lanes) < 2)
    def open_consumer(self, limits: Limits, check: bool) -> None:
        check = check and self.mode == AckMode.TRANSACTED
        lane = Lane(f"consumer {len(self.states) + 1}", limits, check)
        policy = limits.policy()
        state = ConsumerState(Link(LinkSpec(Queue("q"))), lambda _: policy, name=lane.name, check_limit=check)
        self.states[lane] = state
        self.model.lanes.append(lane)
        self.ledger.attach(state)

    @rule(at=ANY, wires=st.lists(WIRE_COUNTS, min_size=1, max_size=4), ttl=st.sampled_from((0, 0, 3)))
    @precondition(lambda self: self.model.lanes)
    def arrive(self, at: int, wires: list[int], ttl: int) -> None:
        lane = _pick(at, self.model.lanes)
        expires = self.model.wall + ttl if ttl else 0
        deliveries: list[Received] = []
        for wire in wires:
            letter = Letter(f"m{len(self.letters) + 1}", lane, wire, expires)
            delivery = FakeDelivery(self.states[lane].link, letter.name, wire_count=wire, expires=expires)
            self.letters[letter] = delivery
            self.model.arrive(letter)
            deliveries.append(delivery)
        self.ledger.arrived(deliveries)

    @rule(at=ANY, count=st.integers(1, 4))
    @precondition(lambda self: self._may_receive())
    def receive(self, at: int, count: int) -> None:
        lane = _pick(at, self.model.lanes)
        for _ in range(count):
            if self._may_receive():
                self._receive(lane)

    @rule(at=ANY)
    @precondition(lambda self: self._may_receive() and self.mode in AT_ONCE)
    def receive_and_acknowledge(self, at: int) -> None:
        lane = _pick(at, self.model.lanes)
        self._tick()
        expected = self.model.show(lane)
        got = self.ledger.take(self.states[lane], self.model.now)
        self._same(expected, got)
        if expected is not None:
            self.model.settle([expected])
        self._carry_out()

    @rule()
    @precondition(lambda self: self.model.held and self.mode in AT_ONCE)
    def listener_returns(self) -> None:
        letter = self.model.held[0]
        self.model.settle([letter])
        assert self.ledger.consumed(self.letters[letter])
        self._carry_out()

    @rule(at=ANY)
    @precondition(lambda self: self.letters and self.mode in AT_ONCE)
    def listener_returns_after_a_recover(self, at: int) -> None:
        failed = [each for each in self.letters if each.failures and each.place is not Place.HELD]
        if failed:
            assert not self.ledger.consumed(self.letters[_pick(at, failed)])

    @rule(at=ANY, cause=st.sampled_from(("first", "second")))
    @precondition(lambda self: self.model.lanes and self.mode in (*AT_ONCE, AckMode.INDIVIDUAL))
    def listener_raises(self, at: int, cause: str) -> None:
        lane = _pick(at, self.model.lanes)
        self.model.fail(self.model.held_by(lane), f"ValueError: {cause}")
        self.ledger.listener_failed(self.states[lane], self.model.now, ValueError(cause))
        self._carry_out()

    @rule(cause=st.sampled_from((None, "first", "second")))
    def rollback_or_recover(self, cause: str | None) -> None:
        self.model.fail(list(self.model.held), cause and f"KeyError: {cause!r}")
        self.ledger.rollback(self.model.now, None if cause is None else KeyError(cause))
        self._carry_out()

    @rule()
    @precondition(lambda self: self.mode in (AckMode.TRANSACTED, AckMode.CLIENT))
    def commit_or_acknowledge_all(self) -> None:
        covered = self.ledger.covered()
        assert covered == tuple(self.letters[each] for each in self.model.held)
        self.model.settle(list(self.model.held))
        self.ledger.settled(covered)
        self._carry_out()

    @rule(at=ANY, stale=st.booleans())
    @precondition(lambda self: self.letters and self.mode == AckMode.INDIVIDUAL)
    def acknowledge_one(self, at: int, stale: bool) -> None:
        letters = self.model.held or list(self.letters)
        letter = _pick(at, letters)
        current = letter.place is Place.HELD and not stale
        if current:
            self.model.settle([letter])
        assert self.ledger.acknowledge(self.letters[letter], letter.failures - stale) is current
        self._carry_out()

    @rule()
    @precondition(lambda self: self.model.held)
    def put_back(self) -> None:
        letter = self.model.held[-1]
        self.model.put_back(letter)
        self.ledger.put_back(self.letters[letter])
        self._carry_out()

    @rule(at=ANY)
    @precondition(lambda self: self._settled_in() and self.model.lanes)
    def close_consumer(self, at: int) -> None:
        lane = _pick(at, self.model.lanes)
        self.model.close_lane(lane)
        self.ledger.close_consumer(self.states[lane])
        self._carry_out()

    @rule(at=ANY)
    @precondition(lambda self: any(lane.closing for lane in self.model.lanes))
    def reopen_consumer(self, at: int) -> None:
        lane = _pick(at, [each for each in self.model.lanes if each.closing])
        lane.closing = False
        self.ledger.reopen(self.states[lane])

    @rule()
    @precondition(lambda self: not self.dead_letter_queue_is_down)
    def the_next_dead_letter_is_refused(self) -> None:
        self.dead_letter_queue_is_down = True

    @rule()
    @precondition(lambda self: self._settled_in())
    def close_session(self) -> None:
        self.model.close()
        self.ledger.close(self.model.now)
        self._carry_out()
        for lane in list(self.model.lanes):
            self._receive(lane)
        self._start()

    @rule()
    @precondition(lambda self: self._settled_in())
    def lose_connection(self) -> None:
        self.ledger.transport_lost()
        for name, kept in vars(self.ledger).items():
            assert name == "consumers" or not isinstance(kept, Sized) or len(kept) == 0, name
        assert not any(state.ready or state.held for state in self.ledger.consumers)
        assert self.ledger.next_deadline() == float("inf")
        for delivery in self.letters.values():
            assert not self.ledger.consumed(delivery)
            assert not self.ledger.acknowledge(delivery, delivery.redeliveries)
            self.ledger.put_back(delivery)
        assert not any(state.ready for state in self.ledger.consumers)
        self._start()

    # clocks

    @rule(seconds=st.sampled_from((0.01, 0.1, 0.3, 1.0)))
    def time_passes(self, seconds: float) -> None:
        self.model.now += seconds

    @rule()
    def messages_expire(self) -> None:
        self.model.wall += 4

    @rule(at=ANY)
    @precondition(lambda self: self.model.releases())
    def just_before_a_release(self, at: int) -> None:
        """Random steps rarely land in the last tenth of a wait; and the ledger's own deadline could be wrong too."""
        release = _pick(at, self.model.releases())
        self.model.now = max(self.model.now, release - JUST)
        self._look_everywhere()

    @rule(at=ANY)
    @precondition(lambda self: self.model.releases())
    def exactly_at_a_release(self, at: int) -> None:
        self.model.now = _pick(at, self.model.releases())
        self._look_everywhere()

    # what must hold

    @invariant()
    def each_message_is_in_exactly_one_place(self) -> None:
        ledger, model = self.ledger, self.model
        assert [each.name for each in ledger.consumers] == [lane.name for lane in model.lanes]
        for lane in model.lanes:
            state = self.states[lane]
            assert [str(each) for each in state.ready] == [each.name for each in lane.ready]
            assert state.held == len(model.held_by(lane))
        assert [str(each) for each in ledger.held] == [each.name for each in model.held]
        waiting = [(release, [str(each) for each in batch]) for release, _, _, batch in sorted(ledger.delayed)]
        expected = [(wait.release, [each.name for each in wait.letters]) for wait in model.waits]
        assert waiting == sorted(expected, key=lambda each: each[0])
        assert ledger.delayed_count == sum(len(wait.letters) for wait in model.waits)

    @invariant()
    def counts_only_grow_and_only_by_failures(self) -> None:
        for letter, delivery in self.letters.items():
            assert delivery.redeliveries == letter.failures

    @invariant()
    def nothing_is_remembered_after_settling(self) -> None:
        """Whatever the ledger keeps, now or some day, is not more than what it still has."""
        alive = sum(each.place in (Place.READY, Place.HELD, Place.DELAYED) for each in self.letters)
        for name, kept in vars(self.ledger).items():
            if isinstance(kept, Sized) and name != "consumers":
                assert len(kept) <= alive, f"{name} has {len(kept)} entries for {alive} messages"
        assert self.ledger.take_orders() == []

    # helpers

    def _start(self) -> None:
        """A new session."""
        model = Model(self.mode, non_blocking=self.non_blocking, max_delayed=self.max_delayed)
        self.ledger = type(self).make(
            self.mode,
            wall_ms=lambda: model.wall,
            rng=Chance(),
            non_blocking=self.non_blocking,
            max_delayed=self.max_delayed,
        )
        self.model = model
        self.states: dict[Lane, ConsumerState] = {}
        self.letters: dict[Letter, FakeDelivery] = {}
        self.dead_letter_queue_is_down = False
        for at, (limits, check) in enumerate(self.consumers):
            self.open_consumer(limits, check)
            self.arrive(at, self.backlog, ttl=0)

    def _settled_in(self) -> bool:
        """Something has failed already: soon enough for what ends everything."""
        return any(letter.failures for letter in self.letters)

    def _may_receive(self) -> bool:
        """A listener of AUTO and DUPS_OK has one message at a time."""
        return bool(self.model.lanes) and not (self.mode in AT_ONCE and self.model.held)

    def _receive(self, lane: Lane) -> None:
        self._tick()
        self._same(self.model.show(lane), self.ledger.dispatch(self.states[lane], self.model.now))
        self._carry_out()

    def _tick(self) -> None:
        self.model.tick()
        self.ledger.tick(self.model.now)

    def _look_everywhere(self) -> None:
        """What is due is due, what waits is not: by the deadline, and by trying to receive."""
        self._tick()
        self._carry_out()
        assert self.ledger.next_deadline() == min(self.model.releases(), default=float("inf"))
        for lane in list(self.model.lanes):
            if lane.blocked > self.model.now or self._may_receive():
                self._receive(lane)

    def _same(self, expected: Letter | None, got: object) -> None:
        assert got is (None if expected is None else self.letters[expected])

    def _carry_out(self) -> None:
        """Compare the orders with the model's effects, then do as a session does."""
        orders = self.ledger.take_orders()
        assert effects_of(orders) == self.model.effects
        check_order_of(orders)
        condemned = self.model.condemned
        self.model.effects, self.model.condemned = Effects(), []
        if self.dead_letter_queue_is_down and condemned:
            self.dead_letter_queue_is_down = False
            for letter, order in zip(condemned, (each for each in orders if isinstance(each, Poison)), strict=True):
                self.model.poison_failed(letter)
                self.ledger.poison_failed(order, self.model.now)
            self._carry_out()


def _pick(at: int, some: list[T]) -> T:
    return some[at % len(some)]
