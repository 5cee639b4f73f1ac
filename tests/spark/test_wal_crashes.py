"""Spark's life with a log, killed before every single step that leaves a trace: no row too few or too many.

Spark's part is as its micro-batch engine does it: the plan goes to the offset log, then the batch before is committed
to the source, then the batch runs, then the commit log. A commit to the source that died is not repeated.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

pytest.importorskip("pyarrow")

from tests.run import forms
from tests.spark.broker_world import Queue, Session, attempt, beginning, receive_on
from tests.spark.wal_world import Died, MemoryStore, WatchedStore, ids_of, in_doubt_ids

from redelivery.spark.log.store.interface import Tombstone
from redelivery.spark.log.wal import Wal

pytestmark = pytest.mark.timeout(300)

PARTS, QUOTA = 2, 2
EACH = 3 * forms.every(3)  # pair of steps


class World:
    """What outlives the processes: the broker, the store, Spark's two logs and its sink."""

    def __init__(self, messages: int, *, lost_answers: bool = False, late: bool = False) -> None:
        self.queue = Queue(messages, late=late)
        self.files = MemoryStore()
        self.offsets: list[int] = []
        self.done = 0  # batches in the commit log
        self.sink: list[list[str]] = []
        self.lost_answers = lost_answers

    def write(self, rows: list[str]) -> None:
        """A sink that is idempotent by the batch's number, which is why a repeated batch must have the same rows."""
        if self.done < len(self.sink):
            assert self.sink[self.done] == rows, "a repeated batch has other rows"
        else:
            self.sink.append(rows)

    def check(self) -> None:
        """What must hold whichever process has just died."""
        wal = Wal.open(self.files, check=False)
        mark = wal.watermark()
        committed = self.offsets[: self.done]
        assert mark <= max(committed, default=0), "committed to the source before Spark had it"
        rows = [row for batch in self.sink for row in batch]
        assert len(rows) == len(set(rows)), "twice"
        used = set(rows) - set(
            ids for each in wal.segments() if each.seq > mark for ids in rows_of(wal, each.seq, each.part)
        )
        assert self.queue.unsettled & used <= in_doubt_ids(wal), "would give two rows"

    def check_end(self) -> None:
        assert sorted(row for batch in self.sink for row in batch) == sorted(self.queue.all)
        assert not self.queue.waiting
        assert not self.queue.unsettled


def rows_of(wal: Wal, seq: int, part: int) -> list[str]:
    try:
        return ids_of(wal, seq, part) or []
    except Tombstone:
        return []


class Life:
    """The processes, until one of them dies before step ``last``."""

    def __init__(self, world: World, last: int) -> None:
        self.world = world
        self.left = last
        self.wal = Wal.open(WatchedStore(world.files, self.step), check=False)
        self.epoch = self.wal._epochs.take("x")
        self.sessions: list[Session] = []

    def step(self, *_: str) -> None:
        self.left -= 1
        if self.left < 0:
            raise Died

    def answer(self) -> bool:
        return not self.world.lost_answers

    def run(self) -> None:
        world = self.world
        while True:
            if world.done == len(world.offsets):
                end = self.plan(world.offsets[-1] if world.offsets else self.wal.watermark())
                if end is None:
                    if not world.queue.unnoticed:
                        return
                    world.queue.notice()
                    continue
                self.step()
                world.offsets.append(end)
                if world.done:
                    self.commit(world.offsets[world.done - 1])
            rows = self.rows(world.offsets[world.done - 1] if world.done else 0, world.offsets[world.done])
            self.step()
            world.write(rows)
            self.step()
            world.done += 1

    def plan(self, start: int) -> int | None:
        raise NotImplementedError

    def rows(self, start: int, end: int) -> list[str]:
        raise NotImplementedError

    def commit(self, end: int) -> None:
        raise NotImplementedError


class ExecutorLife(Life):
    """receiver=executor; a batch is a number."""

    def plan(self, start: int) -> int | None:
        return start + 1 if self.world.queue.waiting else None

    def rows(self, start: int, end: int) -> list[str]:  # noqa: ARG002 - as the driver's
        return [row for part in range(PARTS) for row in self.task(end, part)]

    def task(self, seq: int, part: int) -> list[str]:
        rows: list[str] | None = None
        for each in attempt(self.wal, self.world.queue, seq, part, QUOTA, self.answer):
            self.step()
            rows = each
        assert rows is not None, "an attempt that has no rival was fenced"
        return rows

    def commit(self, end: int) -> None:
        self.wal.commit(end, PARTS, epoch=self.epoch)


class WorkerLife(ExecutorLife):
    """Only the task's process dies, once; Spark tries it again."""

    def task(self, seq: int, part: int) -> list[str]:
        try:
            return super().task(seq, part)
        except Died:
            self.left = 10**9
            self.world.check()
            return super().task(seq, part)


class DriverLife(Life):
    """receiver=driver; a batch is the segments up to a number."""

    def plan(self, start: int) -> int | None:
        if self.world.queue.waiting:
            self.receive()
        there = {each.seq for each in self.wal.segments()}
        end = start
        while end + 1 in there and end < start + 2:
            end += 1
        return end if end > start else None

    def receive(self) -> None:
        receive_on(
            self.wal, self.world.queue, beginning(self.wal), self.epoch, self.step, answer=self.answer, batches=3
        )

    def rows(self, start: int, end: int) -> list[str]:
        return [row for seq in range(start + 1, end + 1) for row in ids_of(self.wal, seq) or ["gone"]]

    def commit(self, end: int) -> None:
        self.wal.commit_driver(end, epoch=self.epoch)


def live(kind: Callable[[World, int], Life], world: World, last: int) -> bool:
    """Whether it came to its end."""
    try:
        kind(world, last).run()
    except Died:
        world.check()
        return False
    world.check()
    return True


LIVES = pytest.mark.parametrize("kind", [ExecutorLife, DriverLife], ids=["executor", "driver"])
BROKERS = pytest.mark.parametrize(
    "broker", [{}, {"lost_answers": True}, {"late": True}], ids=["prompt", "answers lost", "notices late"]
)


@BROKERS
@pytest.mark.parametrize("kind", [ExecutorLife, WorkerLife, DriverLife], ids=["executor", "worker", "driver"])
def test_killed_before_any_step(kind: Callable[[World, int], Life], broker: dict[str, bool]) -> None:
    for last in itertools.count():
        world = World(14, **broker)
        undisturbed = live(kind, world, last)
        if not undisturbed:
            assert live(kind, world, 10**9)
        world.check_end()
        if undisturbed and (kind is not WorkerLife or last > 200):
            break
    assert last > 50


@BROKERS
@LIVES
def test_killed_before_any_two_steps(kind: Callable[[World, int], Life], broker: dict[str, bool]) -> None:
    for first in itertools.count():
        for second in itertools.count(first % EACH, EACH):
            world = World(6, **broker)
            undisturbed = live(kind, world, first)
            to_the_end = undisturbed or live(kind, world, second)
            if not to_the_end:
                assert live(kind, world, 10**9)
            world.check_end()
            if to_the_end:
                break
        if undisturbed:
            break
    assert first > 20


@LIVES
def test_killed_again_and_again(kind: Callable[[World, int], Life]) -> None:
    """Each life gets one step further than the one before; some die before they have done anything new."""
    world = World(20)
    for last in itertools.count():
        if live(kind, world, last):
            break
    world.check_end()
