"""Which files a broker takes as its store, and which it refuses without a change."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import quote

import pytest

import redelivery
from redelivery import ConnectionLostError, Queue
from redelivery.broker import BrokerConfig, EmbeddedBroker, registry
from redelivery.broker.store import schema, sqlite
from redelivery.model.errors import ConfigError, ConnectError, IllegalStateError


def refused(store: Path, says: str) -> None:
    before = store.read_bytes() if store.is_file() else None
    with pytest.raises(ConfigError, match=says):
        EmbeddedBroker("refused", store=store).start()
    if before is not None:
        assert store.read_bytes() == before, "nothing was changed"
    EmbeddedBroker("refused").start().close()  # the name is free again


def made(store: Path) -> Path:
    with EmbeddedBroker("made", store=store) as broker:
        broker.send("q", "kept")
    return store


def changed(store: Path, statement: str) -> Path:
    with closing(sqlite3.connect(store)) as database:
        database.execute(statement)
        database.commit()
    return store


def test_a_folder(tmp_path: Path) -> None:
    refused(tmp_path, "is a folder")


def test_a_missing_folder(tmp_path: Path) -> None:
    refused(tmp_path / "no" / "shop.db", "there is no folder")


@pytest.mark.parametrize(
    ("which", "says"), [("", "cannot write to the folder"), ("shop.db", "cannot be read and written")]
)
def test_what_this_user_may_not_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str, says: str) -> None:
    """The system is not asked: a superuser may do everything."""
    store, forbidden = made(tmp_path / "shop.db"), tmp_path / which
    monkeypatch.setattr("os.access", lambda path, _mode, **_: path != forbidden)
    refused(store, says)


def test_something_else(tmp_path: Path) -> None:
    store = tmp_path / "shop.db"
    store.write_bytes(b"not a database, but long enough to look at" * 100)
    refused(store, "is not a store, or is damaged")


def test_a_database_of_another_program(tmp_path: Path) -> None:
    refused(changed(tmp_path / "other.db", "CREATE TABLE message (id)"), "of another program")


def test_a_newer_schema(tmp_path: Path) -> None:
    refused(changed(made(tmp_path / "shop.db"), "PRAGMA user_version=99"), "newer version")


def test_an_older_schema_that_cannot_be_read(tmp_path: Path) -> None:
    refused(changed(made(tmp_path / "shop.db"), "PRAGMA user_version=0"), "older version")


def test_an_older_schema_is_brought_to_this_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = made(tmp_path / "shop.db")
    last = schema.VERSION
    monkeypatch.setattr(schema, "VERSION", last + 2)
    steps = {last: ("ALTER TABLE message ADD COLUMN note",), last + 1: ("CREATE TABLE note (id)",)}
    monkeypatch.setattr(schema, "_MIGRATIONS", {**steps, last + 1: ("CREATE TABLE message (id)",)})
    refused(store, "already exists")
    monkeypatch.setattr(schema, "_MIGRATIONS", steps)
    monkeypatch.setattr(schema, "_TABLES", ())
    schema.open_file(store, synchronous="full").close()
    with closing(sqlite3.connect(store)) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (last + 2,)
        assert database.execute("SELECT count(*), count(note) FROM message").fetchone() == (1, 0)


def test_one_bit_of_the_schema_s_page(tmp_path: Path) -> None:
    """SQLite quotes what it does not understand, which need not be UTF-8 any more."""
    store = made(tmp_path / "shop.db")
    whole, seen = store.read_bytes(), 0
    for place in range(2900, 4096, 13):
        damaged = bytearray(whole)
        damaged[place] ^= 0x80
        store.write_bytes(damaged)
        try:
            EmbeddedBroker("refused", store=store).start().close()
        except ConfigError as error:
            seen += "is damaged" in str(error)
        EmbeddedBroker("refused").start().close()  # the name is free again
    assert seen > 20


@pytest.mark.parametrize("name", ["sh\0op.db", "\ud800.db", "x" * 300])
def test_a_name_that_no_file_can_have(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="store="):
        EmbeddedBroker("refused", store=tmp_path / name).start()
    with pytest.raises(ConfigError, match="store"):
        redelivery.connect(f"vm://refused?store={quote(str(tmp_path / name), errors='surrogatepass')}")
    with (
        EmbeddedBroker("refused", store=tmp_path / "shop.db"),
        pytest.raises((ConfigError, ConnectError), match="store"),
    ):
        redelivery.connect(f"vm://refused?store={quote(str(tmp_path / name), errors='surrogatepass')}")


def test_a_name_that_is_not_utf_8(tmp_path: Path) -> None:
    store = tmp_path / os.fsdecode(b"caf\xe9 100%41.db")
    made(store)
    assert store.exists()
    with EmbeddedBroker("again", store=store) as broker:
        assert [message.body for message in broker.messages("q")] == ["kept"]


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "shop.db")
    with pytest.raises(ConfigError, match="is not a file"):
        EmbeddedBroker("refused", store=tmp_path / "shop.db").start()


def test_whatever_stops_a_start_leaves_the_name_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C, say; and the file too."""
    with monkeypatch.context() as patched:
        patched.setattr(sqlite, "read_contents", lambda *_: raise_(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            EmbeddedBroker("refused", store=tmp_path / "shop.db").start()
    EmbeddedBroker("refused", store=tmp_path / "shop.db").start().close()


def raise_(error: BaseException) -> NoReturn:
    raise error


def test_a_damaged_file(tmp_path: Path) -> None:
    store = made(tmp_path / "shop.db")
    content = bytearray(store.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    store.write_bytes(content)
    refused(store, "damaged")


def test_damage_that_sqlite_does_not_see_is_found_before_anything_is_changed(tmp_path: Path) -> None:
    store = made(tmp_path / "shop.db")
    store.write_bytes(store.read_bytes().replace(b"binding BLOB", b"bindinG_BLOB"))
    refused(store, "damaged")


@pytest.mark.parametrize("protocol", ["vm", "stomp", "amqp"])
@pytest.mark.parametrize(
    ("sent_by", "size", "damage"),
    [
        ("vm", 10, "UPDATE message SET head = x'ff00' WHERE key % 8 = 2"),
        ("vm", 10, "UPDATE message SET body = x'ff00' WHERE key % 8 = 2"),
        ("vm", 2 << 20, "UPDATE piece SET data = x'ff00'"),
        ("amqp", 10, "UPDATE message SET body = x'ff00' WHERE key % 8 = 2"),
        ("amqp", 2 << 20, "DELETE FROM piece"),
        ("vm", 10, "UPDATE message SET body = CAST('y' || substr(body, 2) AS BLOB) WHERE key % 8 = 2"),
        ("vm", 10, "UPDATE message SET head = CAST(replace(head, 'ID:', 'ID.') AS BLOB)"),
        ("vm", 2 << 20, "UPDATE piece SET data = CAST('y' || substr(data, 2) AS BLOB)"),
        ("vm", 2 << 20, "DELETE FROM piece WHERE key % 8 = 3"),
        ("vm", 2 << 20, "DELETE FROM piece WHERE key % 8 = 0"),
        ("amqp", 2 << 20, "DELETE FROM piece WHERE last"),
    ],
    ids=[
        "head",
        "body",
        "large body",
        "AMQP",
        "large AMQP",
        "byte of a body",
        "byte of a head",
        "byte of a piece",
        "a piece in the middle",
        "the first piece",
        "the last piece",
    ],
)
def test_a_message_that_cannot_be_read_ends_the_broker_with_the_reason(
    tmp_path: Path, protocol: str, sent_by: str, size: int, damage: str
) -> None:
    """And not the thread that serves its clients, while the broker seems to live."""
    store = tmp_path / "shop.db"
    with (
        EmbeddedBroker("good", store=store, amqp_port=0) as broker,
        redelivery.connect(getattr(broker, f"{sent_by}_url")) as connection,
        connection.session() as session,
    ):
        for _ in range(3):
            session.producer("q").send("x" * size)
    changed(store, damage)
    with (
        EmbeddedBroker("damaged", store=store, stomp_port=0, amqp_port=0) as broker,
        redelivery.connect(getattr(broker, f"{protocol}_url")) as connection,
        connection.session() as session,
    ):
        with pytest.raises((ConnectionLostError, ConfigError)):
            session.consumer("q").receive_body(str, timeout=10)
        if protocol == "vm" and size > 10:
            return  # it is read by the application, which was told
        with pytest.raises(IllegalStateError, match=r"is damaged.*restore it from a copy"):
            broker.send("q", "more")
    with closing(sqlite3.connect(store)) as database:
        assert database.execute("SELECT count(*) FROM message").fetchone() == (3,), "nothing was removed"


def test_damage_of_a_file_that_is_too_large_to_be_checked_at_the_start_is_found_when_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "shop.db"
    with EmbeddedBroker("made", store=store) as broker:
        broker.send("q", "y")
        broker.send("q", "x" * 20_000)
    content = bytearray(store.read_bytes())
    page = content.index(b"x" * 4000) // 4096 * 4096  # which holds a part of the body, and where the next one is
    content[page : page + 4096] = b"\xff" * 4096
    store.write_bytes(content)
    refused(store, "damaged")
    monkeypatch.setattr(schema, "_CHECKED", 0)
    with EmbeddedBroker("damaged", store=store) as broker:
        assert broker.queue_depth("q") == 2
        with pytest.raises(IllegalStateError, match=r"is damaged: .*; restore it from a copy"):
            broker.messages("q")
        with pytest.raises(IllegalStateError, match="is damaged"):
            broker.send("q", "more")


def test_a_changed_byte_of_a_delayed_message_is_found_when_the_broker_starts(tmp_path: Path) -> None:
    store = tmp_path / "shop.db"
    with EmbeddedBroker("made", store=store) as broker:
        broker.send("q", "xxx", delivery_delay=3600)
    changed(store, "UPDATE delayed SET body = CAST('y' || substr(body, 2) AS BLOB)")
    with pytest.raises(ConfigError, match=r"is damaged: .* not those that were written; restore it from a copy"):
        EmbeddedBroker("damaged", store=store).start()


def test_a_file_that_another_broker_has(tmp_path: Path) -> None:
    store = tmp_path / "shop.db"
    with EmbeddedBroker("first", store=store) as broker:
        broker.send("q", "kept")
        with pytest.raises(ConfigError, match="in use by another broker"):
            EmbeddedBroker("second", store=store).start()
        broker.send("q", "and this")
    with EmbeddedBroker("second", store=store) as broker:
        assert broker.queue_depth("q") == 2


@pytest.mark.parametrize("wrong", ["", 7, b"shop.db"])
def test_not_a_name_of_a_file(wrong: object) -> None:
    with pytest.raises(ConfigError, match="not a file's name"):
        EmbeddedBroker("wrong", store=wrong)  # type: ignore[arg-type]  # this is what is refused


def test_a_queue_of_any_name_is_kept(tmp_path: Path) -> None:
    names = ["ä.日本", "half \ud800", "'; DROP TABLE message; --", "x" * 10_000]
    store = tmp_path / "shop.db"
    with EmbeddedBroker("named", store=store) as broker:
        for name in names:
            broker.send(Queue(name), name[:5])
    with EmbeddedBroker("named", store=store) as broker:
        assert [broker.messages(Queue(name))[0].body for name in names] == [name[:5] for name in names]


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    store = tmp_path / "shop.db"
    store.touch()
    made(store)
    with EmbeddedBroker("again", store=store) as broker:
        assert broker.queue_depth("q") == 1


def test_vm_keeps_its_messages_in_the_file_that_it_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        with redelivery.connect("vm://shop?store=shop.db") as connection, connection.session() as session:
            session.producer("q").send("kept")
    with redelivery.connect(f"vm://shop?store={tmp_path}/shop.db") as connection, connection.session() as session:
        assert len(session.consumer("q").receive_many(3, timeout=0.1)) == 2


def test_vm_names_the_store_of_a_broker_that_runs(tmp_path: Path) -> None:
    with EmbeddedBroker("runs", store=tmp_path / "a.db"):
        redelivery.connect(f"vm://runs?store={tmp_path}/a.db").close()
        redelivery.connect("vm://runs").close()
        with pytest.raises(ConnectError, match=r"a\.db"):
            redelivery.connect(f"vm://runs?store={tmp_path}/b.db")


def test_repr_says_whether_messages_are_kept(tmp_path: Path) -> None:
    assert "messages end with it" in repr(EmbeddedBroker("x"))
    assert "shop.db" in repr(EmbeddedBroker("x", store=tmp_path / "shop.db"))


def test_repr_of_a_connection_says_that_messages_end_with_the_last_one(tmp_path: Path) -> None:
    with redelivery.connect("vm://x?create=true") as first, redelivery.connect("vm://x") as last:
        for each in (first, last):
            assert repr(each) == f"<Connection {each.url} started; messages end with the last connection to vm://x>"
        assert "messages end with the last connection to vm://x" in repr(registry._running["x"])
    assert repr(last) == "<Connection vm://x closed>"
    with redelivery.connect(f"vm://x?store={tmp_path}/x.db") as kept:
        assert repr(kept) == f"<Connection vm://x?store={tmp_path}/x.db started>"
    with EmbeddedBroker("x"), redelivery.connect("vm://x") as other:
        assert repr(other) == "<Connection vm://x started>", "it ends with the broker, whose repr says so"


@pytest.mark.parametrize(("config", "synchronous"), [({}, 2), ({"store_synchronous": "normal"}, 1)])
def test_a_store_syncs_each_commit_unless_it_is_configured_not_to(
    tmp_path: Path, config: dict[str, Any], synchronous: int
) -> None:
    with EmbeddedBroker("syncs", store=tmp_path / "shop.db", config=BrokerConfig(**config)) as broker:
        store: Any = broker.core._store
        for name, value in (("synchronous", synchronous), ("journal_mode", "wal"), ("locking_mode", "exclusive")):
            assert store._database.execute(f"PRAGMA {name}").fetchone() == (value,)


def test_a_file_system_without_a_write_ahead_log_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What SQLite does there is asked of a store in memory, which has none either."""
    connect = sqlite3.connect
    monkeypatch.setattr("sqlite3.connect", lambda _name, **options: connect(":memory:", **options))
    (tmp_path / "shop.db").touch()
    refused(tmp_path / "shop.db", r"its file system has no write-ahead log \(journal_mode is memory\)")
