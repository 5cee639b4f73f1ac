"""One late attempt, or one old runner, against one commit: every order of their steps with up to three turns."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("pyarrow")

from tests.run import forms
from tests.spark.actors import Actor
from tests.spark.broker_world import Beginning, Queue, attempt, beginning, receive_on
from tests.spark.wal_world import MemoryStore, WatchedStore, committed_attempt, data, ids_of, in_doubt_ids

from redelivery.spark.log.wal import FencedError, Wal

pytestmark = pytest.mark.timeout(300)

END = 10_000


class Scene:
    """A batch of one part, which nobody has read or another attempt has."""

    def __init__(self, *, published: bool = False, committed: int = 1, messages: int = 2) -> None:
        self.committed = committed
        self.queue = Queue(messages)
        self.files = MemoryStore()
        self.wal = Wal.open(self.files, check=False)
        self.old_epoch = self.wal._epochs.take("old")
        if published:
            for _ in attempt(self.wal, self.queue, 1, 0, 1):
                pass

    def attached(self, pause: Any) -> Wal:
        return Wal.attach(WatchedStore(self.files, pause, reads=True), self.wal.identity)

    def late(self, pause: Callable[[], None]) -> None:
        for _ in attempt(self.attached(pause), self.queue, 1, 0, 1):
            pause()

    def commit(self, pause: Callable[[], None]) -> None:
        self.attached(pause).commit(self.committed, 1, retain=0)

    def old_runner(self, pause: Callable[[], None]) -> None:
        self.receive(self.attached(pause), (0, ()), self.old_epoch, pause)

    def new_runner(self, pause: Callable[[], None]) -> None:
        wal = self.attached(pause)
        epoch = wal._epochs.take("new")
        self.receive(wal, beginning(wal), epoch, pause)
        self.read = [ids_of(wal, each.seq) or ["gone"] for each in wal.segments()]
        wal.commit_driver(len(self.read), 0, epoch=epoch)

    def receive(self, wal: Wal, found: Beginning, epoch: int, pause: Callable[[], None]) -> None:
        try:
            receive_on(wal, self.queue, found, epoch, pause)
        except FencedError:
            return

    def come_again(self) -> set[str]:
        return set(self.queue.waiting) - in_doubt_ids(self.wal)


def orders(first: Callable[..., None], second: Callable[..., None]) -> Iterator[tuple[int, int, int]]:
    """Steps of the one, the other, and the one again, until each of them plays to its end; then both go on."""
    turns = itertools.product(range(steps_of(first)), range(steps_of(second)), (0, 1, 2, 3, 5, END))
    return itertools.islice(turns, 0, None, forms.every(5))


def steps_of(play: Callable[..., None]) -> int:
    """About as many as it makes when nobody disturbs it."""
    actor, steps = Actor(play), 0
    while not actor.ended:
        actor.step()
        steps += 1
    return steps + 1


def perform(one: Actor, other: Actor, turns: tuple[int, int, int]) -> None:
    one.step(turns[0])
    other.step(turns[1])
    one.step(turns[2])
    other.step(END)
    one.step(END)
    assert one.ended
    assert other.ended


@pytest.mark.parametrize("published", [False, True], ids=["nobody has read it", "another attempt has"])
@pytest.mark.parametrize("dies", [False, True], ids=["goes on", "dies"])
@pytest.mark.parametrize(
    "committed", [1, 2, 3], ids=["of its batch", "of the next, after one that died", "after two that died"]
)
def test_a_late_attempt_and_the_commit(published: bool, dies: bool, committed: int) -> None:
    """Each message is in the batch, or is redelivered; never both, never neither."""

    def scene() -> Scene:
        return Scene(published=published, committed=committed)

    for turns in orders(scene().late, scene().commit):
        now = scene()
        late, commit = Actor(now.late), Actor(now.commit)
        if dies:
            late.step(turns[0])
            commit.step(turns[1])
            late.step(turns[2])
            if not late.ended:
                late.kill()
            commit.step(END)
        else:
            perform(late, commit, turns)
        used = committed_attempt(now.wal, 1, 0)
        batch = set(now.queue.published[used]) if used else set()
        assert batch | now.come_again() == set(now.queue.all), turns
        assert not batch & now.come_again(), turns
        if published:
            assert batch, turns


def test_an_old_runner_and_the_new_one() -> None:
    """Which receives, reads and commits what is there, and deletes it, while the old one is at any step."""

    for turns in orders(Scene(messages=4).old_runner, Scene(messages=4).new_runner):
        now = Scene(messages=4)
        old, new = Actor(now.old_runner), Actor(now.new_runner)
        perform(old, new, turns)
        left = [ids_of(now.wal, each.seq) or [] for each in now.wal.segments() if each.seq > now.wal.watermark()]
        rows = [row for ids in now.read + left for row in ids]
        assert len(rows) == len(set(rows)), turns
        assert set(rows) | now.come_again() == set(now.queue.all), turns
        assert not set(rows) & now.come_again(), turns


@pytest.mark.parametrize("driver", [False, True])
def test_ids_in_doubt_are_not_missed_during_a_commit(driver: bool) -> None:
    """They move from the segment, which is deleted, to their own file."""
    found: list[set[str]] = []

    def begin() -> tuple[Callable[..., None], Callable[..., None]]:
        now = Scene()
        now.wal.publish(1, 0, data("died", "m0"))

        def ask(pause: Any) -> None:
            found.append(in_doubt_ids(now.attached(pause)))

        def commit_driver(pause: Any) -> None:
            now.attached(pause).commit_driver(1, 0)

        return ask, commit_driver if driver else now.commit

    for turns in orders(*begin()):
        ask, commit = map(Actor, begin())
        perform(ask, commit, turns)
        assert found.pop() == {"m0"}, turns
