"""The log by itself: identity, epochs, publishing once, what a commit leaves, and what it remembers."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

from tests.spark.wal_world import MemoryStore, Now, WatchedStore, committed_attempt, data, ids_of, in_doubt_ids

from redelivery import ConfigError, IllegalStateError
from redelivery.spark.log.store.interface import Data, StoreError, Tombstone
from redelivery.spark.log.store.local_store import LocalStore
from redelivery.spark.log.wal import FencedError, SegmentName, Wal


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(str(tmp_path))


@pytest.fixture
def now() -> Now:
    return Now()


@pytest.fixture
def wal(store: LocalStore, now: Now) -> Wal:
    return Wal.open(store, dedupe_window=60, now=now)


class TestIdentity:
    def test_is_the_same_for_all_who_open_it(self, store: LocalStore, wal: Wal) -> None:
        again = Wal.open(store)
        again.check_offset(wal.identity)
        assert Wal.attach(store, wal.identity).identity == again.identity == wal.identity

    def test_eight_who_open_a_new_one_agree(self, store: LocalStore) -> None:
        start, found = threading.Barrier(8), set[str]()

        def open_it() -> None:
            start.wait(10)
            found.add(Wal.open(store, check=False).identity)

        threads = [threading.Thread(target=open_it) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert len(found) == 1

    def test_an_offset_of_another_log(self, store: LocalStore, wal: Wal) -> None:
        with pytest.raises(ConfigError, match=f"belongs to log other, but walLocation {store.location} holds log "):
            wal.check_offset("other")

    def test_a_host_that_does_not_share_the_folder(self, wal: Wal, tmp_path: Path) -> None:
        elsewhere = LocalStore(str(tmp_path / "elsewhere"))
        with pytest.raises(ConfigError, match=r"on this host holds no log.*same folder on all hosts"):
            Wal.attach(elsewhere, wal.identity)
        assert elsewhere.list("") == []

    def test_a_newer_version(self, store: LocalStore) -> None:
        store.put_if_absent("_wal.json", b'{"v": 3, "wal": "x"}')
        with pytest.raises(ConfigError, match="newer redelivery"):
            Wal.open(store)

    @pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"v": 1}', b'{"v": "1", "wal": "x"}'])
    def test_a_damaged_one_is_named(self, store: LocalStore, content: bytes) -> None:
        store.put_if_absent("_wal.json", content)
        with pytest.raises(StoreError, match=f"{store.location}/_wal.json is damaged.*restore walLocation"):
            Wal.open(store)

    def test_files_of_others_are_let_be(self, store: LocalStore, wal: Wal) -> None:
        for folder in ("commits", "epochs", "seg", "attempts", "quarantine"):
            store.put_if_absent(f"{folder}/README", b"not ours")
        wal.check_epoch(wal._epochs.take("x"))
        assert wal.watermark() == 0
        wal.commit(1, 1, retain=0)
        assert wal.watermark() == 1
        assert all(
            store.exists(f"{folder}/README") for folder in ("commits", "epochs", "seg", "attempts", "quarantine")
        )

    def test_a_store_without_create_if_absent(self, store: LocalStore) -> None:
        class Overwriting(LocalStore):
            def put_if_absent(self, name: str, data: Data) -> bool:
                self.delete(name)
                return super().put_if_absent(name, data)

        with pytest.raises(StoreError, match="let a second writer replace"):
            Wal.open(Overwriting(store.location))


class TestEpochs:
    def test_the_older_query_learns_who_has_taken_over(self, store: LocalStore, wal: Wal) -> None:
        old = wal._epochs.take("host-a, process 1, since 2026-01-01 08:00:00 UTC")
        wal.check_epoch(old)
        new = Wal.open(store)._epochs.take("host-b, process 2, since 2026-01-02 09:30:00 UTC")
        with pytest.raises(
            FencedError, match=re.escape("(host-b, process 2, since 2026-01-02 09:30:00 UTC), so this one must end")
        ) as caught:
            wal.check_epoch(old)
        assert isinstance(caught.value, IllegalStateError)
        wal.check_epoch(new)

    def test_of_eight_at_once_one_rules(self, wal: Wal) -> None:
        start, epochs = threading.Barrier(8), list[int]()

        def take() -> None:
            start.wait(10)
            epochs.append(wal._epochs.take("x"))

        threads = [threading.Thread(target=take) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert sorted(epochs) == list(range(1, 9))

        def rules(epoch: int) -> bool:
            try:
                wal.check_epoch(epoch)
            except FencedError:
                return False
            return True

        assert [epoch for epoch in epochs if rules(epoch)] == [8]

    def test_a_fenced_query_does_not_move_the_watermark(self, wal: Wal) -> None:
        old = wal._epochs.take("a")
        wal._epochs.take("b")
        with pytest.raises(FencedError):
            wal.commit(1, 1, epoch=old)
        with pytest.raises(FencedError):
            wal.commit_driver(1, epoch=old)
        assert wal.watermark() == 0

    def test_old_ones_are_forgotten_and_numbers_go_on(self, wal: Wal, store: LocalStore) -> None:
        for _ in range(30):
            last = wal._epochs.take("x")
        wal.commit_driver(1)
        assert len(store.list("epochs")) < 10
        assert wal._epochs.take("x") == last + 1


class TestSegments:
    def test_published_once(self, wal: Wal) -> None:
        assert wal.publish(1, 0, data("a", "m1"))
        assert not wal.publish(1, 0, data("b", "m2"))
        assert ids_of(wal, 1) == ["m1"]
        assert ids_of(wal, 1, 1) is None

    def test_one_whose_answer_was_lost_is_ours_all_the_same(self, store: LocalStore) -> None:
        class AsksTwice(LocalStore):
            def put_if_absent(self, name: str, data: Data) -> bool:
                super().put_if_absent(name, data)
                return super().put_if_absent(name, data)

        wal = Wal.open(AsksTwice(store.location), check=False)
        assert wal.publish(1, 0, data("a", "m1"))
        assert not wal.publish(1, 0, data("b", "m1"))

    def test_listed_in_order_with_what_is_confirmed(self, wal: Wal, store: LocalStore) -> None:
        for seq, part in ((10, 0), (2, 1), (2, 0)):
            wal.publish(seq, part, data(f"{seq}{part}"))
        wal.confirm(2, 1)
        wal.confirm(2, 1)
        store.put_if_absent("seg/somebody.else", b"")
        assert wal.segments() == [SegmentName(2, 0, ok=False), SegmentName(2, 1, ok=True), SegmentName(10, 0, ok=False)]


class TestCommit:
    def test_a_part_that_nobody_read_cannot_be_published_any_more(self, wal: Wal) -> None:
        wal.publish(1, 0, data("a", "m1"))
        wal.commit(1, 3)
        for part in (1, 2):
            assert not wal.publish(1, part, data("late", "m2"))
            with pytest.raises(Tombstone):
                wal.reader(1, part)
        assert [committed_attempt(wal, 1, part) for part in range(4)] == ["a", None, None, None]
        assert wal.watermark() == 1

    def test_the_last_batches_stay_readable(self, wal: Wal) -> None:
        for seq in range(1, 6):
            wal.publish(seq, 0, data(str(seq), f"m{seq}"))
            wal.confirm(seq, 0)
            wal.commit(seq, 1, retain=2)
        assert [each.seq for each in wal.segments()] == [4, 5]
        wal.commit(5, 1, retain=0)
        assert wal.segments() == []

    def test_batches_of_many_segments_stay_readable_as_a_whole(self, wal: Wal) -> None:
        for seq in range(1, 13):
            wal.publish(seq, 0, data(str(seq), f"m{seq}"))
        for end in (4, 7, 12):
            wal.commit_driver(end, 2)
        assert [each.seq for each in wal.segments()] == [5, 6, 7, 8, 9, 10, 11, 12]
        wal.commit_driver(12, 1)
        assert [each.seq for each in wal.segments()] == [8, 9, 10, 11, 12]

    def test_as_many_batches_are_retained_as_were_asked_for(self, wal: Wal, store: LocalStore) -> None:
        for seq in range(1, 160):
            wal.publish(seq, 0, data(str(seq), f"m{seq}"))
            wal.commit_driver(seq, 120)
        assert [each.seq for each in wal.segments()] == list(range(40, 160))
        assert len(store.list("commits")) <= 121 + 21

    @pytest.mark.parametrize("driver", [False, True])
    def test_again_and_out_of_order_is_harmless(self, wal: Wal, driver: bool) -> None:
        for seq in (1, 2, 3):
            wal.publish(seq, 0, data(str(seq), f"m{seq}"))
        for seq in (2, 2, 1, 2):
            wal.commit_driver(seq, 1) if driver else wal.commit(seq, 1)
            assert wal.watermark() == 2
        assert [each.seq for each in wal.segments()] == ([1, 2, 3] if driver else [2, 3]), "a batch of two, or two"

    def test_the_watermark_of_another_process_is_seen(self, wal: Wal, store: LocalStore) -> None:
        Wal.open(store).commit_driver(7)
        assert wal.watermark() == 7

    def test_a_damaged_record_is_named(self, wal: Wal, store: LocalStore) -> None:
        store.put_if_absent("commits/000000000001.json", b"{")
        with pytest.raises(StoreError, match=r"commits/000000000001.json is damaged"):
            committed_attempt(wal, 1, 0)


class TestTooLate:
    """An attempt that goes on after its batch was committed."""

    def test_after_its_segment_was_deleted(self, wal: Wal) -> None:
        wal.publish(1, 0, data("first", "m1"))
        wal.commit(1, 1, retain=0)
        assert wal.publish(1, 0, data("late", "m2"))
        with pytest.raises(FencedError, match="batch 1 was committed before this attempt of part 0"):
            wal.check_published(1, 0, "late")
        assert wal.segments() == []

    def test_one_whose_segment_was_used_commits(self, wal: Wal) -> None:
        wal.publish(1, 0, data("first", "m1"))
        wal.check_published(1, 0, "first")
        wal.commit(1, 1)
        wal.check_published(1, 0, "first")

    def test_what_it_left_behind_is_not_in_doubt(self, wal: Wal, store: LocalStore) -> None:
        """It died between publish and check_published: no query reads it, so its messages must be redelivered."""
        wal.commit(1, 1, retain=0)
        wal.publish(1, 0, data("late", "m2"))
        assert in_doubt_ids(wal) == set()
        wal.commit(2, 1, retain=0)
        assert not store.starting("seg", "000000000001")
        assert in_doubt_ids(wal) == set()

    def test_one_whose_log_was_deleted_does_not_commit(self) -> None:
        """An object store has no folder that would be missed."""
        files = MemoryStore()
        wal = Wal.open(files, check=False)
        files.delete("_wal.json")
        wal.publish(1, 0, data("first", "m1"))
        with pytest.raises(StoreError, match=r"_wal.json is not there any more: walLocation was deleted or emptied"):
            wal.check_published(1, 0, "first")

    @pytest.mark.parametrize("moment", range(5))
    def test_a_commit_between_its_looks_does_not_fence_the_one_whose_segment_it_used(self, moment: int) -> None:
        files, looks = MemoryStore(), list[str]()
        wal = Wal.open(files, check=False)
        wal.publish(1, 0, data("used", "m1"))

        def intervene(operation: str, name: str) -> None:
            if operation in ("list", "get", "exists"):
                if len(looks) == moment:
                    wal.commit(1, 1)
                looks.append(name)

        watched = Wal.open(WatchedStore(files, lambda *_: None), check=False)
        watched.store._before_reading = intervene  # type: ignore[attr-defined]  # from here on
        watched.check_published(1, 0, "used")
        assert len(looks) > moment
        assert ids_of(wal, 1) == ["m1"]


class TestDoubt:
    @pytest.mark.parametrize("driver", [False, True])
    def test_lasts_from_publishing_until_confirmed(self, wal: Wal, driver: bool) -> None:
        wal.publish(1, 0, data("a", "m1", "m2"))
        wal.publish(2, 0, data("b", "m3"))
        assert in_doubt_ids(wal) == {"m1", "m2", "m3"}
        wal.confirm(1, 0)
        assert in_doubt_ids(wal) == {"m3"}
        for seq in (1, 2, 3):
            wal.commit_driver(seq) if driver else wal.commit(seq, 1)
            assert in_doubt_ids(wal) == {"m3"}

    @pytest.mark.parametrize("driver", [False, True])
    def test_ends_with_the_window(self, wal: Wal, now: Now, store: LocalStore, driver: bool) -> None:
        wal.publish(1, 0, data("a", "m1"))
        now.pass_seconds(1000)
        assert in_doubt_ids(wal) == {"m1"}, "not committed: no window yet"
        wal.commit_driver(1, 0) if driver else wal.commit(1, 1, retain=0)
        now.pass_seconds(59.999)
        assert in_doubt_ids(wal) == in_doubt_ids(Wal.open(store, dedupe_window=60, now=now)) == {"m1"}
        now.pass_seconds(0.001)
        assert in_doubt_ids(wal) == in_doubt_ids(Wal.open(store, dedupe_window=60, now=now)) == set()
        Wal.open(store, dedupe_window=60, now=now).commit_driver(2)
        assert store.list("doubt") == []

    def test_what_the_release_before_wrote_down_is_read(self, wal: Wal, store: LocalStore, now: Now) -> None:
        entry = {"since": now(), "ids": ["m1", "m2"]}
        store.put_if_absent("doubt/000000000001-0000.json", json.dumps(entry).encode())
        assert [each.keys for each in wal.in_doubt().values()] == [(("m1", None), ("m2", None))]

    @pytest.mark.parametrize("content", ["{}", '{"since": 1}', '{"since": 1, "keys": [1]}', '{"since": 1, "keys": 1}'])
    def test_a_damaged_note_is_named(self, wal: Wal, store: LocalStore, content: str) -> None:
        store.put_if_absent("doubt/000000000001-0000.json", content.encode())
        with pytest.raises(StoreError, match=r"doubt/000000000001-0000.json is damaged.*restore walLocation"):
            wal.in_doubt()

    def test_a_log_of_the_release_before_is_opened(self, tmp_path: Path) -> None:
        store = LocalStore(str(tmp_path))
        store.put_if_absent("_wal.json", b'{"v":1,"wal":"x"}')
        assert Wal.open(store).identity == "x"

    def test_of_an_empty_segment_leaves_no_file(self, wal: Wal, store: LocalStore) -> None:
        wal.publish(1, 0, data("a"))
        wal.commit(1, 2, retain=0)
        assert store.list("doubt") == []
