"""Faults planted into the store of the embedded broker: a test of each promise notices them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.broker.store import (
    test_store_delayed,
    test_store_faults,
    test_store_noted,
    test_store_size,
    test_store_waits,
)
from tests.run.mutants import Fault, caught

from redelivery.broker import EmbeddedBroker
from redelivery.broker.store.sqlite import SqliteStore

FAULTS = {
    "steps are durable before they are written": Fault(
        "broker.store.sqlite",
        "        self._failed = True  # until it is done",
        "        self.durable, self._failed = batch.sequence, True  # until it is done",
        test_store_faults.test_who_asks_while_it_is_being_written_is_answered_after_that,
    ),
    "steps that could not be written are durable": Fault(
        "broker.store.sqlite",
        "        self._failed = True  # until it is done",
        "        self.durable, self._failed = batch.sequence, True  # until it is done",
        test_store_faults.test_what_could_not_be_written_is_answered_to_nobody,
    ),
    "what is noted while it is being written is durable too": Fault(
        "broker.store.sqlite",
        "        self.durable = batch.sequence",
        "        self.durable = self.sequence + len(batch.put)",
        test_store_faults.test_one_sync_serves_all_that_waited_for_the_one_before,
    ),
    "a disk that is full takes messages": Fault(
        "broker.store.sqlite",
        "        free = 0 if self.is_full() else room",
        "        free = room",
        test_store_faults.test_when_the_disk_is_full_sends_are_refused_and_the_rest_goes_on,
    ),
    "a delivery's count is not in the file": Fault(
        "broker.store.batch",
        "[(key, *each) for key, each in batch.counted.items()]",
        "[(key, *each) for key, each in batch.counted.items() if not key]",
        test_store_waits.test_it_waits_for_the_rest_of_its_time,
        {"seen": True},
    ),
    "how long a message waits is not in the file": Fault(
        "broker.store.sqlite",
        "self._batch.counted[self._key(entry.queue, entry.order)] = redeliveries, until",
        "self._batch.counted[self._key(entry.queue, entry.order)] = redeliveries, 0",
        test_store_waits.test_it_waits_for_the_rest_of_its_time,
        {"seen": False},
    ),
    "a count that is not in the file yet is not read": Fault(
        "broker.store.sqlite",
        "            counts = batch.counted.get(key, counts)  # not in the file yet",
        "            counts = batch.counted.get(-key, counts)  # not in the file yet",
        test_store_noted.test_a_count_is_read_with_its_message,
        {"moment": test_store_noted.noted},
    ),
    "what was removed is read again": Fault(
        "broker.store.sqlite",
        "            if not any(row[0] in batch.removed for batch in noted):",
        "            if row[0]:",
        test_store_noted.test_what_was_removed_is_not_read,
        {"moment": test_store_noted.taken},
    ),
    "a delayed message that is being written is lost": Fault(
        "broker.store.sqlite",
        "            noted = None if writing is None else writing.delayed.get(number)",
        "            noted = None",
        test_store_delayed.test_it_is_delivered_from_where_it_is_then,
        {"until": "it is taken"},
        raises=(TypeError,),
    ),
    "a purge keeps what was removed": Fault(
        "broker.store.batch",
        '    database.execute("DELETE FROM message WHERE key IN (SELECT key FROM removed)")\n',
        '    database.execute("DELETE FROM message WHERE key IN (SELECT -key FROM removed)")\n',
        test_store_size.test_removed_messages_are_in_the_file_for_a_while_only,
    ),
    "removed bytes are not counted": Fault(
        "broker.store.sqlite",
        "            self._unpurged_size += entry.message.size",
        "            self._unpurged_size += 0",
        test_store_size.test_removed_messages_are_in_the_file_for_a_while_only,
    ),
    "what is cleared begins with the place behind which it does": Fault(
        "broker.store.batch",
        '("DELETE FROM message WHERE key > ? AND key <= ?", batch.cleared)',
        '("DELETE FROM message WHERE key >= ? AND key <= ?", batch.cleared)',
        test_store_noted.test_what_was_cleared_is_not_written,
        {"after": 1},
    ),
    "a missing piece of a body is not missed": Fault(
        "broker.store.sqlite",
        "                    complete = key == expected and last != 0",
        "                    complete = True",
        test_store_noted.test_a_body_without_one_of_its_pieces_is_not_shown,
        {"piece": -1},
    ),
}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


@pytest.fixture
def broker(store: Path) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker("planted", store=store) as broker:
        yield broker


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[test_store_faults.Slow]:
    slow = test_store_faults.Slow(monkeypatch)
    yield slow
    slow.end()


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "shop.db", synchronous="off")
    store.restore()
    yield store
    store.close()


@pytest.fixture
def life(tmp_path: Path) -> Iterator[test_store_delayed.Life]:
    life = test_store_delayed.Life(tmp_path / "store.db")
    yield life
    life.store.close()


@pytest.fixture(autouse=True)
def closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A test that notices its fault ends there, so what it has opened is closed after it."""
    opened: list[SqliteStore] = []
    begin = SqliteStore.__init__

    def noted(store: SqliteStore, *args: Any, **options: Any) -> None:
        begin(store, *args, **options)
        opened.append(store)

    monkeypatch.setattr(SqliteStore, "__init__", noted)
    yield
    for each in opened:
        each.give_up()
        each.close()


@pytest.mark.parametrize("fault", FAULTS)
def test_it_is_caught(fault: str, request: pytest.FixtureRequest) -> None:
    caught(FAULTS[fault], request)
