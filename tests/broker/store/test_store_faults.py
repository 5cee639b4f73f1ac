"""A store that is slow, fails, or whose disk is full: what was answered is kept, and nothing else is claimed."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.broker.raw_stomp import Raw

import redelivery
from redelivery import ConnectionLostError, InDoubtError, ResourceAllocationError, UnsupportedError
from redelivery.broker import EmbeddedBroker
from redelivery.broker.store.batch import Batch, execute
from redelivery.broker.store.sqlite import SqliteStore
from redelivery.model.errors import IllegalStateError, TransactionRolledBackError


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


@pytest.fixture
def broker(store: Path) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker("faulty", store=store, stomp_port=0) as broker:
        yield broker


def bodies(store: Path) -> list[object]:
    with EmbeddedBroker("again", store=store) as broker:
        return [message.body for message in broker.messages("q")]


def test_nothing_is_answered_or_shown_before_it_is_durable(broker: EmbeddedBroker) -> None:
    with redelivery.connect(broker.vm_url) as connection, connection.session() as session:
        consumer = connection.session().consumer("q")
        fault = broker.faults.delay_sync(30)
        sending = threading.Thread(target=session.producer("q").send, args=("a",))
        sending.start()
        assert fault.wait(5)
        assert consumer.receive(timeout=0.05) is None
        assert sending.is_alive()
        broker.faults.clear()
        sending.join(5)
        message = consumer.receive(timeout=5)
        assert message is not None
        assert message.body == "a"


def test_one_sync_serves_all_that_waited_for_the_one_before(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered, gate, written = threading.Event(), threading.Event(), list[int]()
    write = SqliteStore.write

    def gated(store: SqliteStore, batch: Batch) -> None:
        written.append(len(batch.put))
        entered.set()
        assert gate.wait(5)
        write(store, batch)

    with redelivery.connect(broker.vm_url) as connection, connection.publisher() as publisher:
        monkeypatch.setattr(SqliteStore, "write", gated)
        sending = [threading.Thread(target=publisher.send, args=("x", "q")) for _ in range(20)]
        sending[0].start()
        assert entered.wait(5)
        for thread in sending[1:]:
            thread.start()
        broker.wait_for("q", depth=20)  # they are there, and nobody was answered
        gate.set()
        for thread in sending:
            thread.join(5)
    assert written == [1, 19]


class Slow:
    """Each write of a store, which waits until the test lets it go; ``written``: how many messages each had."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.written: list[int] = []
        self._begun, self._let_go = threading.Semaphore(0), threading.Semaphore(0)
        patch.setattr("redelivery.broker.store.sqlite.execute", self._write)

    def _write(self, database: sqlite3.Connection, batch: Batch) -> None:
        self._begun.release()
        assert self._let_go.acquire(timeout=5)
        execute(database, batch)
        self.written.append(len(batch.put))

    def begun(self) -> bool:
        """Whether another one has begun, soon."""
        return self._begun.acquire(timeout=5)

    def go_on(self, writes: int = 1) -> None:
        self._let_go.release(writes)

    def end(self) -> None:
        """All that come."""
        self.go_on(1000)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    slow = Slow(monkeypatch)
    yield slow
    slow.end()


def test_who_asks_while_it_is_being_written_is_answered_after_that(broker: EmbeddedBroker, slow: Slow) -> None:
    """Of two threads whose steps are written together one writes, and the other waits for it as well."""
    core, noted, writing = broker.core, threading.Event(), threading.Event()
    when_answered: list[list[int]] = []

    def answered() -> None:
        with core.gathering():
            broker.send("q", "two")
            noted.set()
            assert writing.wait(5)
            core.sync()
        when_answered.append(list(slow.written))

    other = threading.Thread(target=answered)
    other.start()
    assert noted.wait(5)
    sending = threading.Thread(target=broker.send, args=("q", "one"))
    sending.start()
    try:
        assert slow.begun()
        writing.set()
        other.join(0.1)  # it has time to be answered too early
        assert when_answered == []
    finally:
        slow.end()
        for thread in (sending, other):
            thread.join(5)
    assert when_answered == [[2]]
    assert {message.body for message in broker.messages("q")} == {"one", "two"}


def test_what_could_not_be_written_is_answered_to_nobody(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    core, noted, failed = broker.core, threading.Event(), threading.Event()
    outcomes: list[BaseException | None] = []

    def answered() -> None:
        try:
            with core.gathering():
                broker.send("q", "two")
                noted.set()
                assert failed.wait(5)
                core.sync()
            outcomes.append(None)
        except IllegalStateError as error:
            outcomes.append(error)

    def broken(_database: sqlite3.Connection, _batch: Batch) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr("redelivery.broker.store.sqlite.execute", broken)
    other = threading.Thread(target=answered)
    other.start()
    assert noted.wait(5)
    with pytest.raises(IllegalStateError, match="disk I/O error"):
        broker.send("q", "one")
    failed.set()
    other.join(5)
    assert len(outcomes) == 1
    assert "disk I/O error" in str(outcomes[0])


def test_when_the_disk_is_full_sends_are_refused_and_the_rest_goes_on(broker: EmbeddedBroker, store: Path) -> None:
    with (
        redelivery.connect(broker.vm_url) as connection,
        connection.session() as session,
        connection.session("transacted") as transacted,
    ):
        producer = session.producer("q")
        producer.send("a")
        producer.send("b")
        broker.faults.fill_disk()
        with pytest.raises(ResourceAllocationError, match="full"):
            producer.send("c")
        transacted.producer("q").send("d")
        with pytest.raises(TransactionRolledBackError, match="full"):
            transacted.commit()
        assert session.consumer("q").receive(timeout=5).body == "a"  # type: ignore[union-attr]  # or it fails
        broker.faults.clear()
        producer.send("e")
    broker.close()
    assert bodies(store) == ["b", "e"]


def test_a_send_is_refused_over_stomp_when_the_disk_is_full(broker: EmbeddedBroker) -> None:
    broker.faults.fill_disk()
    with Raw(broker.stomp_url) as client:
        frame = client.call("SEND", b"x", destination="/queue/q", persistent="true")
        assert (frame.command, "full" in frame.headers["message"]) == ("ERROR", True)


def test_a_store_that_cannot_be_written_ends_the_broker_and_keeps_what_was_answered(
    broker: EmbeddedBroker, store: Path
) -> None:
    lost = threading.Event()
    client = Raw(broker.stomp_url)
    connection = redelivery.connect(broker.vm_url, exception_listener=lambda _: lost.set())
    with connection, connection.session("transacted") as session:
        producer = session.producer("q")
        producer.send("a")
        session.commit()
        producer.send("b")
        broker.faults.fail_sync()
        with pytest.raises(InDoubtError) as caught:
            session.commit()
        assert isinstance(caught.value.__cause__, ConnectionLostError)
        assert "cannot be written" in str(caught.value)
        assert lost.wait(5)
        with pytest.raises(IllegalStateError, match="cannot be written"):
            broker.send("q", "c")
    assert client.closed()
    client.drop()
    broker.close()
    assert bodies(store) == ["a"]


def test_store_faults_need_a_store() -> None:
    with EmbeddedBroker("memory") as broker:
        for plan in (broker.faults.fail_sync, broker.faults.fill_disk, lambda: broker.faults.delay_sync(1)):
            with pytest.raises(UnsupportedError, match="store"):
                plan()


def test_a_disk_that_is_full_in_the_middle_of_a_write_takes_nothing_that_was_answered(
    broker: EmbeddedBroker, store: Path
) -> None:
    written = broker.core._store
    assert written is not None
    written._database.execute("PRAGMA max_page_count=40")  # as if the disk had no more
    answered: list[object] = []

    def send() -> None:
        for number in range(1000):
            answered.append(broker.send("q", f"{number} {'x' * 2000}").body)

    with pytest.raises(IllegalStateError, match="full"):
        send()
    assert answered
    broker.close()
    assert bodies(store) == answered
