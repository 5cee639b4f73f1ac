"""Attempts and drivers that go on when they should long be dead, in any order of their single steps.

Hypothesis decides whose step is next; a step ends before each access to the store. Whatever the order, each message
is in exactly one committed batch.
"""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyarrow")

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.run import forms
from tests.spark.actors import Actor
from tests.spark.broker_world import Queue, attempt, beginning, receive_on
from tests.spark.wal_world import MemoryStore, WatchedStore, committed_attempt, ids_of

from redelivery.spark.log.wal import FencedError, Wal

MESSAGES = 16
STEPS = st.integers(1, 25)
pytestmark = pytest.mark.timeout(300)


class Zombies(RuleBasedStateMachine):
    """What both receivers have in common."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = Queue(MESSAGES)
        self.files = MemoryStore()
        self.wal = Wal.open(self.files, check=False)
        self.actors: list[Actor] = []
        self.committer: Actor | None = None
        self.rows: list[str] = []

    def store(self, pause: Any) -> WatchedStore:
        return WatchedStore(self.files, pause, reads=True)

    def act(self, play: Any) -> Actor:
        actor = Actor(play)
        self.actors.append(actor)
        return actor

    @precondition(lambda self: self.actors)
    @rule(which=st.integers(0, 99), steps=STEPS)
    def step(self, which: int, steps: int) -> None:
        self.actors[which % len(self.actors)].step(steps)
        self.actors = [actor for actor in self.actors if not actor.ended]

    @precondition(lambda self: self.actors)
    @rule(which=st.integers(0, 99))
    def kill(self, which: int) -> None:
        self.actors.pop(which % len(self.actors)).kill()

    @precondition(lambda self: self.committing)
    @rule(steps=STEPS)
    def commit_goes_on(self, steps: int) -> None:
        assert self.committer is not None
        self.committer.step(steps)

    @property
    def committing(self) -> bool:
        return self.committer is not None and not self.committer.ended

    @invariant()
    def nothing_twice(self) -> None:
        assert len(self.rows) == len(set(self.rows))

    def settle(self) -> None:
        """All go on to their ends, the committer first and then the oldest."""
        for actor in ([self.committer] if self.committer else []) + self.actors:
            actor.step(10_000)
            assert actor.ended
        self.actors = []

    def account(self) -> None:
        assert sorted(self.rows) == sorted(self.queue.all)
        assert not self.queue.waiting
        assert not self.queue.held


class ExecutorZombies(Zombies):
    """receiver=executor."""

    @initialize(parts=st.integers(1, 3))
    def plan(self, parts: int) -> None:
        self.parts = parts
        self.seq = 1
        self.batch: dict[int, list[str]] = {}
        self.unread: list[tuple[int, int]] = []

    @precondition(lambda self: not self.committing and len(self.actors) < 6)
    @rule(part=st.integers(0, 2), most=st.integers(1, 3), answered=st.booleans())
    def start_attempt(self, part: int, most: int, answered: bool) -> None:
        self.start(part % self.parts, most, answered)

    def start(self, part: int, most: int, answered: bool = True) -> None:
        seq, batch = self.seq, self.batch

        def play(pause: Any) -> None:
            wal = Wal.attach(self.store(pause), self.wal.identity)
            rows: list[str] | None = None
            for each in attempt(wal, self.queue, seq, part, most, lambda: answered):
                pause()
                rows = each
            if rows is not None and batch is self.batch:
                assert batch.setdefault(part, rows) == rows, "two attempts read other rows"

        self.act(play)

    @precondition(lambda self: not self.committing and len(self.batch) == self.parts)
    @rule()
    def finish(self) -> None:
        self.next_batch()

    @precondition(lambda self: not self.committing)
    @rule()
    def finish_without_reading_all(self) -> None:
        """As a LIMIT does. What is published by the commit belongs to the batch, although nobody has looked at it."""
        self.unread += [(self.seq, part) for part in range(self.parts) if part not in self.batch]
        self.next_batch()

    def next_batch(self) -> None:
        self.rows += [row for rows in self.batch.values() for row in rows]
        seq, parts = self.seq, self.parts
        self.seq, self.batch = seq + 1, {}
        self.committer = Actor(lambda pause: Wal.attach(self.store(pause), self.wal.identity).commit(seq, parts))

    @precondition(lambda self: self.committing)
    @rule()
    def driver_dies(self) -> None:
        """Spark does not repeat the commit."""
        assert self.committer is not None
        self.committer.kill()

    def teardown(self) -> None:
        if not hasattr(self, "seq"):
            return
        self.settle()
        while self.queue.waiting or not self.rows_are_committed():
            for part in range(self.parts):
                self.start(part, 3)
            self.settle()
            self.next_batch()
            self.settle()
        for seq, part in self.unread:
            name = committed_attempt(self.wal, seq, part)
            self.rows += self.queue.published.get(name, []) if name else []
        self.account()

    def rows_are_committed(self) -> bool:
        return self.wal.watermark() == self.seq - 1


class DriverZombies(Zombies):
    """receiver=driver; each restart leaves the receiver and the committer of the old runner to themselves."""

    @initialize()
    def begin(self) -> None:
        self.start_offset = 0
        self.restart()

    @precondition(lambda self: len(self.actors) < 5)
    @rule()
    def restart(self) -> None:
        if self.committing:
            assert self.committer is not None
            self.actors.append(self.committer)
        self.committer = None
        epoch = self.epoch = self.wal._epochs.take("x")
        found = beginning(self.wal, self.start_offset)

        def play(pause: Any) -> None:
            wal = Wal.attach(self.store(pause), self.wal.identity)
            try:
                receive_on(wal, self.queue, found, epoch, pause)
            except FencedError:
                return

        self.act(play)

    @precondition(lambda self: not self.committing)
    @rule(most=st.integers(1, 3))
    def run_batch(self, most: int) -> None:
        there = {each.seq for each in self.wal.segments()}
        end = self.start_offset
        while end + 1 in there and end < self.start_offset + most:
            end += 1
        if end == self.start_offset:
            return
        for seq in range(self.start_offset + 1, end + 1):
            ids = ids_of(self.wal, seq)
            assert ids is not None
            self.rows += ids
        self.start_offset, epoch = end, self.epoch

        def play(pause: Any) -> None:
            try:
                Wal.attach(self.store(pause), self.wal.identity).commit_driver(end, 1, epoch=epoch)
            except FencedError:
                return

        self.committer = Actor(play)

    @invariant()
    def the_watermark_is_at_the_last_batch_or_the_one_before(self) -> None:
        assert self.wal.watermark() <= getattr(self, "start_offset", 0)

    def teardown(self) -> None:
        if not hasattr(self, "start_offset"):
            return
        self.settle()
        for _ in range(MESSAGES + 2):
            self.restart()
            self.settle()
            self.run_batch(3)
            self.settle()
        self.account()


def machine(kind: type[Zombies]) -> Any:
    case = kind.TestCase
    case.settings = settings(
        max_examples=forms.examples(40), stateful_step_count=60, deadline=None, suppress_health_check=list(HealthCheck)
    )
    return case


TestExecutorZombies = machine(ExecutorZombies)
TestDriverZombies = machine(DriverZombies)
