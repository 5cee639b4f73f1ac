"""The file of a store does not grow for ever; a power failure leaves it as it was after one of its writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.broker.engine.bench import Bench

from redelivery.broker.engine.entries import Entry
from redelivery.broker.store import schema, sqlite
from redelivery.broker.store.sqlite import SqliteStore


def put(store: SqliteStore, orders: range, size: int = 1000) -> list[Entry]:
    bench = Bench()
    entries = [Entry(bench.message("x" * size), order, "q") for order in orders]
    for entry in entries:
        store.put(entry)
    store.write(store.take())
    return entries


def remove(store: SqliteStore, entries: list[Entry]) -> None:
    for entry in entries:
        store.removed(entry)
    store.write(store.take())


def opened(path: Path) -> SqliteStore:
    store = SqliteStore(path, synchronous="off")
    store.restore()
    return store


def test_a_busy_queue_uses_its_pages_again(tmp_path: Path) -> None:
    store = opened(tmp_path / "store.db")
    sizes = []
    for number in range(40):
        remove(store, put(store, range(1 + 100 * number, 101 + 100 * number)))
        sizes.append(store._database.execute("PRAGMA page_count").fetchone()[0])
    store.close()
    assert sizes[-1] <= sizes[12], "pages"


def test_removed_messages_are_in_the_file_for_a_while_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "store.db"
    store = opened(path)

    def there() -> list[int]:
        return [row[0] & schema.PLACE for row in store._database.execute("SELECT key FROM message ORDER BY key")]

    entries = put(store, range(1, 7))
    remove(store, entries[:2])
    assert [there(), store.page("q", 0, 9)[0].order] == [[1, 2, 3, 4, 5, 6], 3]
    monkeypatch.setattr(sqlite, "PURGED", 3)
    remove(store, entries[2:3])
    assert there() == [4, 5, 6]
    monkeypatch.setattr(sqlite, "_PURGED_SIZE", entries[3].message.size)
    remove(store, entries[3:4])
    assert there() == [5, 6]
    monkeypatch.undo()
    remove(store, entries[4:5])
    store.close()
    store = opened(path)
    assert there() == [6]
    store.close()


def test_a_file_whose_queue_was_emptied_becomes_small_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "_FEW_PAGES", 10)
    monkeypatch.setattr(sqlite, "_COMPACTED", 4)
    path = tmp_path / "store.db"
    store = opened(path)
    remove(store, put(store, range(1, 2001)))
    store.close()
    assert path.stat().st_size < 200_000
    store = opened(path)
    entries = put(store, range(1, 2001))
    remove(store, entries[:1990])
    for _ in range(4):
        remove(store, [])
    assert store._database.execute("PRAGMA freelist_count").fetchone()[0] < 20
    assert [entry.order for entry in store.page("q", 0, 100)] == [entry.order for entry in entries[1990:]]
    store.close()


def test_after_a_power_failure_at_any_byte_a_store_is_as_after_one_of_its_writes(tmp_path: Path) -> None:
    """A copy of the files as they are after a crash, its log cut off anywhere."""
    path = tmp_path / "store.db"
    store = opened(path)
    log = tmp_path / "store.db-wal"
    states: list[list[int]] = [[]]
    sizes = [log.stat().st_size]
    entries: list[Entry] = []
    for number in range(6):
        entries += put(store, range(1 + 3 * number, 4 + 3 * number), size=3000)
        states.append([entry.order for entry in entries])
        if number % 2:
            remove(store, entries[:2])
            entries = entries[2:]
        states.append([entry.order for entry in entries])
        sizes.append(log.stat().st_size)
    images = (path.read_bytes(), log.read_bytes())
    store.close()
    seen = set()
    for cut in sorted({*sizes, *range(0, len(images[1]), 1499)}):
        crashed = tmp_path / f"crashed-{cut}.db"
        crashed.write_bytes(images[0])
        crashed.with_name(f"{crashed.name}-wal").write_bytes(images[1][:cut])
        store = opened(crashed)
        found = [entry.order for entry in store.page("q", 0, 100)]
        store.close()
        assert found in states
        seen.add(tuple(found))
    assert len(seen) > len(states) // 2


def test_a_power_failure_in_the_middle_of_a_checkpoint_loses_nothing(tmp_path: Path) -> None:
    """Any of the pages that it was to write may be there, and one of them in part; the log is there as a whole."""
    path, log = tmp_path / "store.db", tmp_path / "store.db-wal"
    store = opened(path)
    entries = put(store, range(1, 7), size=3000)
    store._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    remove(store, entries[:2])
    entries = entries[2:] + put(store, range(7, 20), size=3000)
    before, written = path.read_bytes(), log.read_bytes()
    store._database.execute("PRAGMA wal_checkpoint(FULL)")
    after = path.read_bytes()
    store.close()
    assert len(before) < len(after)
    for cut in range(0, len(after), 7 * 1499):
        for torn in (after[:cut] + before[cut:], before[:cut] + after[cut : len(before)]):
            crashed = tmp_path / f"crashed-{cut}.db"
            crashed.write_bytes(torn)
            crashed.with_name(f"{crashed.name}-wal").write_bytes(written)
            store = opened(crashed)
            assert [entry.order for entry in store.page("q", 0, 100)] == [entry.order for entry in entries]
            assert {entry.message.body for entry in store.page("q", 0, 100)} == {"x" * 3000}
            store.close()
