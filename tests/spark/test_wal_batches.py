"""What the log keeps of batches: how often they were tried, which yield nothing, and nothing for ever."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

from tests.spark.wal_world import MemoryStore, data

from redelivery.spark.log.store.local_store import LocalStore
from redelivery.spark.log.wal import Wal


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path))


@pytest.fixture
def wal(store: LocalStore) -> Wal:
    return Wal.open(store)


class TestBatchesThatFail:
    def test_attempts_are_counted_for_each_batch(self, wal: Wal, store: LocalStore) -> None:
        assert wal.attempts(1) == 0
        assert [wal.count_attempt(1), Wal.open(store).count_attempt(1), wal.count_attempt(2)] == [1, 2, 1]
        assert [wal.attempts(seq) for seq in (1, 2, 3)] == [2, 1, 0]

    def test_quarantine(self, wal: Wal, store: LocalStore) -> None:
        wal.quarantine(2)
        wal.quarantine(2)
        assert [Wal.open(store).quarantined(seq) for seq in (1, 2, 3)] == [False, True, False]


@pytest.mark.parametrize("driver", [False, True])
def test_a_quarantine_lasts_as_long_as_the_batch_can_be_read(driver: bool) -> None:
    """Spark may repeat the last batch although it was committed: it must go on to yield nothing."""
    wal = Wal.open(MemoryStore())
    for seq in range(1, 60):
        wal.publish(seq, 0, data(str(seq), f"m{seq}"))
        wal.confirm(seq, 0)
        wal.quarantine(seq)
        wal.commit_driver(seq, 2) if driver else wal.commit(seq, 1, retain=2)
        assert all(wal.quarantined(each.seq) for each in wal.segments()), seq


def test_garbage_is_bounded() -> None:
    store = MemoryStore()
    wal = Wal.open(store)
    for seq in range(1, 300):
        wal.count_attempt(seq)
        wal.quarantine(seq)
        wal.publish(seq, 0, data(str(seq), f"m{seq}"))
        wal.confirm(seq, 0)
        wal.commit(seq, 2)
    counts = {folder: len(store.list(folder)) for folder in ("seg", "commits", "doubt", "attempts", "quarantine")}
    assert counts["seg"] == 3
    assert counts["doubt"] == 0
    assert counts["commits"] <= 120
    assert counts["attempts"] <= 20
    assert counts["quarantine"] <= 21
