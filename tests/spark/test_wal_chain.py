"""What a receiver knows of the log without listing it: how often it asks, and what it meets at its end."""

from __future__ import annotations

from collections import Counter

import pytest

pytest.importorskip("pyarrow")

from tests.spark.wal_world import MemoryStore, Now, WatchedStore, data, keys

from redelivery.spark.log.chain import SegmentChain
from redelivery.spark.log.damage import survey_chain
from redelivery.spark.log.wal import FencedError, Wal


class World:
    """A log, and how often its folders are listed and its files read."""

    def __init__(self) -> None:
        self.files, self.now = MemoryStore(), Now()
        self.asked: Counter[str] = Counter()
        store = WatchedStore(self.files, lambda operation, _: self.asked.update([operation]), reads=True)
        self.wal = Wal.open(store, check=False, dedupe_window=60, now=self.now)
        self.others = Wal.open(self.files, check=False, dedupe_window=60, now=self.now)
        self.epoch = self.wal._epochs.take("test")

    def chain(self, head: int = 0, *, alone: bool = True) -> SegmentChain:
        return SegmentChain(self.wal, head, alone=alone)


def test_a_segment_costs_two_listings_however_many_pend() -> None:
    world = World()
    for seq in range(1, 2001):
        world.others.publish(seq, 0, data(str(seq), f"m{seq}"))
        world.others.confirm(seq, 0)
    chain = world.chain(2000)
    assert chain.in_doubt() == {}
    world.asked.clear()
    for number in range(100):
        assert chain.in_doubt() == {}
        assert chain.publish(data(f"n{number}", f"n{number}"), keys(f"n{number}")) == 2001 + number
        world.wal.check_epoch(world.epoch)
        chain.confirm(2001 + number)
        chain.adopt()
    assert world.asked["list"] <= 200
    assert world.asked["open_arrow"] == world.asked["get"] == 0


def test_what_the_beginning_of_the_query_has_listed_is_not_listed_again() -> None:
    world = World()
    for seq in range(1, 101):
        world.others.publish(seq, 0, data(str(seq), f"m{seq}"))
        if seq != 50:
            world.others.confirm(seq, 0)
    unmarked = survey_chain(world.others, 0).unmarked
    world.asked.clear()
    chain = SegmentChain(world.wal, 100, unmarked=unmarked)
    assert list(chain.in_doubt().values()) == [(*keys("m50"),)]
    assert world.asked == {"list": 2, "open_arrow": 1}, "the commits, what is in doubt below them, and m50"
    world.others.commit_driver(101, 0)  # as if others had gone on: everything is looked for anew
    assert chain.publish(data("ours", "m200"), keys("m200")) is None
    assert list(chain.in_doubt().values()) == [(*keys("m50"),)]


def test_ours_is_in_doubt_until_it_is_confirmed() -> None:
    chain = World().chain()
    seq = chain.publish(data("a", "m1"), keys("m1"))
    assert seq == 1
    assert list(chain.in_doubt().values()) == [(*keys("m1"),)]
    chain.confirm(seq)
    assert chain.in_doubt() == {}


def test_what_another_one_has_published_meanwhile_is_met_and_our_fill_rolled_back_where_it_has_the_same() -> None:
    world = World()
    taken: list[int] = []
    chain = SegmentChain(world.wal, 0, taken=taken.append)
    assert chain.in_doubt() == {}
    world.others.publish(1, 0, data("zombie", "m1", "m2"))
    assert chain.publish(data("ours", "m2", "m3"), keys("m2", "m3")) is None
    assert taken == [1]
    assert list(chain.in_doubt().values()) == [(*keys("m1", "m2"),)]
    assert chain.publish(data("ours", "m3"), keys("m3")) == 2


@pytest.mark.parametrize("confirmed", [True, False])
def test_another_ones_segment_with_other_messages_takes_a_number_and_nothing_else(confirmed: bool) -> None:
    world = World()
    chain = world.chain(alone=False)
    assert chain.in_doubt() == {}
    world.others.publish(1, 0, data("lane", "m1"))
    if confirmed:
        world.others.confirm(1, 0)
    assert chain.publish(data("ours", "m2"), keys("m2")) == 2
    assert len(chain.in_doubt()) == (1 if confirmed else 2)
    world.others.confirm(1, 0)
    assert chain.confirmed("000000000001-0000")
    assert len(chain.in_doubt()) == 1


def test_what_others_published_and_spark_read_and_deleted_is_known_before_we_publish() -> None:
    world = World()
    chain = world.chain(alone=False)
    assert chain.in_doubt() == {}
    world.others.publish(1, 0, data("lane", "m1"))  # and its commit is in doubt
    world.others.commit_driver(1, 0)
    assert chain.publish(data("ours", "m1"), keys("m1")) is None
    assert list(chain.in_doubt().values()) == [(*keys("m1"),)]
    assert chain.publish(data("ours", "m2"), keys("m2")) == 2


def test_a_number_that_was_used_up_is_not_ours() -> None:
    world = World()
    chain = world.chain()
    world.others.publish(1, 0, data("other", "m1"))
    world.others.commit_driver(1, 0)
    assert chain.publish(data("ours", "m2"), keys("m2")) is None
    assert chain.publish(data("ours", "m2"), keys("m2")) == 2


def test_who_has_slept_while_a_successor_received_the_same_messages_publishes_nothing() -> None:
    """The broker had given them to the successor, whose segment is marked; only the epoch tells that they are ours."""
    world = World()
    asleep = SegmentChain(world.wal, 0, check=lambda: world.wal.check_epoch(world.epoch))
    assert asleep.in_doubt() == {}
    world.others._epochs.take("successor")
    world.others.publish(1, 0, data("successor", "m1"))
    world.others.confirm(1, 0)
    with pytest.raises(FencedError):
        asleep.publish(data("asleep", "m1"), keys("m1"))
    assert [each.seq for each in world.wal.segments()] == [1]


def test_the_window_begins_with_the_commit_of_the_batch() -> None:
    world = World()
    chain = world.chain()
    assert chain.publish(data("a", "m1"), keys("m1")) == 1
    world.now.pass_seconds(1000)
    assert len(chain.in_doubt()) == 1
    world.others.commit_driver(1, 0)
    assert chain.publish(data("b", "m2"), keys("m2")) == 2
    chain.confirm(2)
    world.now.pass_seconds(59)
    assert len(chain.in_doubt()) == 1
    world.now.pass_seconds(1.1)
    assert chain.in_doubt() == {}


def test_without_dedupe_nothing_is_read() -> None:
    world = World()
    chain = world.chain()
    world.others.publish(1, 0, data("zombie", "m1"))
    world.asked.clear()
    assert chain.publish(data("ours", "m1"), ()) == 2
    chain.adopt()
    assert world.asked["open_arrow"] == 0
    assert world.asked["list"] == 1
