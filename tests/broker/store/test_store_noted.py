"""What is noted, or taken to be written, counts at once: it is read as if it were in the file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.broker.engine.bench import Bench

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.broker.engine.entries import Entry
from redelivery.broker.store import bodies
from redelivery.broker.store.batch import Batch
from redelivery.broker.store.sqlite import SqliteStore

Moment = Callable[[SqliteStore], Batch | None]


def noted(_store: SqliteStore) -> None:
    """It is not written yet."""


def taken(store: SqliteStore) -> Batch:
    return store.take()


def written(store: SqliteStore) -> None:
    store.write(store.take())


MOMENTS = pytest.mark.parametrize("moment", [noted, taken, written])


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "shop.db", synchronous="off")
    store.restore()
    yield store
    store.close()


def put(store: SqliteStore, *orders: int, queue: str = "q") -> list[Entry]:
    entries = [Entry(Bench().message(f"message {order}"), order, queue) for order in orders]
    for entry in entries:
        store.put(entry)
    return entries


def orders(store: SqliteStore, queue: str = "q") -> list[int]:
    return [entry.order for entry in store.page(queue, 0, 100)]


@MOMENTS
def test_a_message_is_read_in_its_place(kept: SqliteStore, moment: Moment) -> None:
    put(kept, 1, 2)
    written(kept)
    put(kept, 3)
    batch = moment(kept)
    put(kept, 4)
    assert orders(kept) == [1, 2, 3, 4]
    assert [entry.order for entry in kept.read("q", [1, 3, 4])] == [1, 3, 4]
    if batch is not None:
        kept.write(batch)


@MOMENTS
def test_a_count_is_read_with_its_message(kept: SqliteStore, moment: Moment) -> None:
    (entry,) = put(kept, 1)
    written(kept)
    kept.counted(entry, 3, 7000)
    batch = moment(kept)
    for found in (*kept.page("q", 0, 9), *kept.read("q", [1])):
        assert (found.redeliveries, found.until, found.acquired) == (3, 7000, True)
    if batch is not None:
        kept.write(batch)


@MOMENTS
def test_the_latest_count_is_read(kept: SqliteStore, moment: Moment) -> None:
    (entry,) = put(kept, 1)
    written(kept)
    kept.counted(entry, 1)
    batch = moment(kept)
    kept.counted(entry, 2)
    assert [each.redeliveries for each in kept.page("q", 0, 9)] == [2]
    if batch is not None:
        kept.write(batch)


@MOMENTS
def test_what_was_removed_is_not_read(kept: SqliteStore, moment: Moment) -> None:
    first, *_ = put(kept, 1, 2, 3)
    written(kept)
    kept.removed(first)
    batch = moment(kept)
    assert orders(kept) == [2, 3]
    if batch is not None:
        kept.write(batch)


@pytest.mark.parametrize("after", [0, 1, 3])
def test_what_was_cleared_is_not_written(kept: SqliteStore, tmp_path: Path, after: int) -> None:
    put(kept, 1, 2)
    written(kept)
    put(kept, 3, 4)
    put(kept, 1, 9, queue="other")
    kept.cleared("q", after)
    written(kept)
    assert orders(kept) == [order for order in (1, 2, 3, 4) if order <= after]
    assert orders(kept, "other") == [1, 9]
    kept.close()
    again = SqliteStore(tmp_path / "shop.db", synchronous="off")
    assert again.restore().queues == {**({"q": min(after, 3)} if after else {}), "other": 2}
    again.close()


@pytest.mark.parametrize("piece", [0, 1, -1])
def test_a_body_without_one_of_its_pieces_is_not_shown(
    tmp_path: Path, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "LARGE", 1000)
    monkeypatch.setattr(bodies, "PIECE", 400)
    with EmbeddedBroker("whole", store=tmp_path / "shop.db") as broker:
        broker.send("q", "large " * 500)
    with closing(sqlite3.connect(tmp_path / "shop.db")) as database:
        keys = [key for (key,) in database.execute("SELECT key FROM piece ORDER BY key")]
        assert len(keys) > 3
        database.execute("DELETE FROM piece WHERE key = ?", (keys[piece],))
        database.commit()
    with (
        EmbeddedBroker("damaged", store=tmp_path / "shop.db") as broker,
        pytest.raises(redelivery.JMSError, match="a body, or a piece of one, is missing"),
    ):
        print([len(str(each.body)) for each in broker.messages("q")])
