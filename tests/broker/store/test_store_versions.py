"""Files that older versions have written: they are used, and brought to the schema of this one.

``data/schema-3.db.gz`` was written by the code of schema 3: messages of each kind, with large bodies in pieces (of 1000
bytes and more, so that the file is small), counts, a removed message, a delayed one, and a durable subscription.
``data/schema-4.db.gz`` was by that of schema 4: a large message in pieces, and a large one that is delayed and is not.
``data/schema-5.db.gz`` was by that of schema 5: large messages in pieces of 500 bytes.
"""

from __future__ import annotations

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.broker.store import bodies, schema
from redelivery.broker.store.journal import UnreadableStoreError
from redelivery.testing import fast_forward

FILE = Path(__file__).parent / "data" / "schema-3.db.gz"
YEARS = 20 * 365 * 86400.0  # seconds
# What takes from a file what the next schema has added; no file of these two was ever published.
BEFORE_3 = (
    "CREATE TABLE old (key INTEGER PRIMARY KEY, redeliveries INTEGER NOT NULL)",
    "INSERT INTO old SELECT key, redeliveries FROM counted",
    "DROP TABLE counted",
    "ALTER TABLE old RENAME TO counted",
)
BEFORE_2 = ("DELETE FROM message WHERE key IN (SELECT key FROM removed)", "DROP TABLE removed")
OLDER: dict[int, tuple[str, ...]] = {3: (), 2: BEFORE_3, 1: (*BEFORE_3, *BEFORE_2)}


@pytest.fixture(params=OLDER)
def store(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    path = tmp_path / "shop.db"
    path.write_bytes(gzip.decompress(FILE.read_bytes()))
    with closing(sqlite3.connect(path)) as database:
        for statement in OLDER[request.param]:
            database.execute(statement)
        database.execute(f"PRAGMA user_version={request.param}")
        database.commit()
    return path


def test_all_that_it_holds_is_there_and_stays_there(store: Path) -> None:
    for left in (6, 3, 0):
        with EmbeddedBroker("old", store=store) as broker:
            found = [(each.body, each.delivery_count) for each in broker.messages("q")]
            bodies = ["text ä", b"\0bytes", {"map": 1, "true": True}, ["stream", 2], None, "large " * 500]
            assert found == [(body, 3) for body in bodies][6 - left :]
            with redelivery.connect(broker.vm_url) as connection, connection.session() as session:
                assert len(session.consumer("q").receive_many(3, timeout=0.01)) == min(3, left)
    with closing(sqlite3.connect(store)) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (schema.VERSION,)


def test_headers_and_properties_are_those_that_were_sent(store: Path) -> None:
    with EmbeddedBroker("old", store=store) as broker:
        first, second = broker.messages("q")[:2]
    assert dict(first.properties) == {"n": 1, "s": "x", "f": 1.5}
    assert (second.correlation_id, str(second.reply_to)) == ("c", "queue://answers")


def test_its_subscription_goes_on_and_its_delayed_message_comes(store: Path) -> None:
    with (
        EmbeddedBroker("old", store=store) as broker,
        fast_forward(broker) as clock,
        redelivery.connect(broker.vm_url, client_id="ann") as connection,
        connection.session() as session,
    ):
        consumer = session.durable_consumer("topic://news", "all", selector="n > 1")
        session.producer("topic://news").send("new", properties={"n": 3})
        assert [each.body for each in consumer.receive_many(3, timeout=0.01)] == ["chosen", "new"]
        assert broker.queue_depth("q") == 6
        clock.advance(YEARS)
        assert [each.body for each in broker.messages("q")][6:] == ["later"]


def test_what_came_over_amqp_is_read(store: Path) -> None:
    pytest.importorskip("proton")
    with EmbeddedBroker("old", store=store) as broker:
        first, second = broker.messages("amqp")
        assert (first.body, dict(first.properties)) == ("by AMQP", {"n": 1})
        assert second.body == "large by AMQP " * 100
        broker.send("q", "new")
    with EmbeddedBroker("old", store=store) as broker:
        assert [broker.queue_depth(name) for name in ("q", "amqp")] == [7, 2]


@pytest.mark.parametrize("table", ["message", "delayed"])
def test_a_row_of_an_older_version_has_no_checksum_and_one_of_this_version_has(tmp_path: Path, table: str) -> None:
    path = tmp_path / "shop.db"
    path.write_bytes(gzip.decompress(FILE.read_bytes()))
    with EmbeddedBroker("old", store=path) as broker:
        broker.send("q", "new")
        broker.send("q", "new", delivery_delay=YEARS)
    with closing(sqlite3.connect(path)) as database:
        found = [crc for (crc,) in database.execute(f"SELECT crc FROM {table}")]  # noqa: S608 - names of this file
    assert found[0] is None
    assert len([crc for crc in found if crc is not None]) == 1


def test_a_large_body_that_was_delayed_as_a_whole_is_delivered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "LARGE", 1000)
    path = tmp_path / "shop.db"
    path.write_bytes(gzip.decompress((FILE.parent / "schema-4.db.gz").read_bytes()))
    new = "new, large, later " * 500
    with EmbeddedBroker("old", store=path) as broker:
        broker.send("q", new, delivery_delay=2 * YEARS)
    with EmbeddedBroker("old", store=path) as broker, fast_forward(broker) as clock:
        clock.advance(YEARS)
        now = ["text ä", {"map": 1}, "large " * 500, "later", "large, later " * 500]
        assert [each.body for each in broker.messages("q")] == now
        clock.advance(YEARS)
        assert [each.body for each in broker.messages("q")] == [*now, new]
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (schema.VERSION,)
        assert database.execute("SELECT max(length(body)) FROM message").fetchone()[0] < 1000


@pytest.fixture
def in_pieces(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"
    path.write_bytes(gzip.decompress((FILE.parent / "schema-5.db.gz").read_bytes()))
    return path


def test_large_bodies_in_pieces_of_which_none_is_known_as_the_last_are_read(in_pieces: Path) -> None:
    pytest.importorskip("proton")
    for _ in range(2):
        with EmbeddedBroker("old", store=in_pieces) as broker:
            assert [each.body for each in broker.messages("q")] == ["text ä", "large " * 500, b"\0large" * 500]
            assert [each.body for each in broker.messages("amqp")] == ["large by AMQP " * 100]


@pytest.mark.parametrize("piece", [0, 2])
def test_a_piece_that_is_missing_is_found_there_too(in_pieces: Path, piece: int) -> None:
    with closing(sqlite3.connect(in_pieces)) as database:
        database.execute("DELETE FROM piece WHERE key & 0xfffff = ?", (piece,))
        database.commit()
    with EmbeddedBroker("old", store=in_pieces) as broker:
        large = broker.messages("q")[1]
        with pytest.raises(UnreadableStoreError, match="or a piece of one, is missing"):
            _ = large.body
