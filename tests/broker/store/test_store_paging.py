"""A long queue is on the disk, not in memory; and so are large bodies."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import redelivery
from redelivery import Connection
from redelivery.broker import EmbeddedBroker
from redelivery.broker.engine.engine import Engine
from redelivery.broker.store import bodies
from redelivery.broker.store.sqlite import SqliteStore

LONG = 30  # messages
IN_MEMORY = 4


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "LARGE", 10_000)
    monkeypatch.setattr(bodies, "PIECE", 3_000)
    made = SqliteStore.__init__

    def init(self: SqliteStore, path: Path, **options: Any) -> None:
        made(self, path, **{**options, "synchronous": "off", "window": IN_MEMORY})

    monkeypatch.setattr(SqliteStore, "__init__", init)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


@pytest.fixture
def broker(store: Path) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker("long", store=store, stomp_port=0, amqp_port=0) as broker:
        yield broker


def in_memory(broker: EmbeddedBroker, queue: str = "q") -> int:
    def count(engine: Engine, _: int) -> int:
        return len(engine.queues[queue].entries) if queue in engine.queues else 0

    return broker.core.call(count)


def pieces(broker: EmbeddedBroker) -> int:
    """Of large bodies, in the file, after a sync that removes what nobody needs."""
    gc.collect()
    broker.send("other", "x")
    store = broker.core._store
    assert store is not None
    count: int = store._database.execute("SELECT count(*) FROM piece").fetchone()[0]
    return count


def fill(broker: EmbeddedBroker, **options: Any) -> list[str]:
    sent = [f"message {number}" for number in range(LONG)]
    for body in sent:
        broker.send("q", body, **options)
    return sent


def received(connection: Connection, wanted: int, prefetch: int = 3) -> list[object]:
    with connection.session("transacted") as session:
        consumer = session.consumer("q", prefetch=prefetch)
        found = []
        for _ in range(wanted):
            message = consumer.receive(timeout=5)
            assert message is not None
            found.append(message.body)
            session.commit()
    return found


@pytest.mark.parametrize("url", ["vm_url", "stomp_url", "amqp_url"])
@pytest.mark.parametrize("persistent", [True, False])
def test_a_long_queue_comes_in_order_and_only_its_front_is_in_memory(
    broker: EmbeddedBroker, url: str, persistent: bool
) -> None:
    sent = fill(broker)
    sent += [str(broker.send("q", "last", persistent=persistent).body)]
    assert (broker.queue_depth("q"), in_memory(broker)) == (LONG + 1, IN_MEMORY)
    assert [message.body for message in broker.messages("q")] == sent
    with redelivery.connect(getattr(broker, url)) as connection:
        assert received(connection, 20) == sent[:20]
        assert in_memory(broker) <= 2 * IN_MEMORY + 3
        assert received(connection, LONG - 19) == sent[20:]
    assert broker.queue_depth("q") == 0


@pytest.mark.parametrize("url", ["vm_url", "stomp_url", "amqp_url"])
def test_a_browser_reads_a_long_queue_as_it_goes(broker: EmbeddedBroker, url: str) -> None:
    sent = fill(broker)
    with redelivery.connect(getattr(broker, url)) as connection, connection.session().browser("q") as browser:
        found = iter(browser)
        assert [next(found).body for _ in range(3)] == sent[:3]
        broker.send("q", "later")
        assert [message.body for message in found] == sent[3:]
    assert in_memory(broker) == IN_MEMORY


def test_after_a_restart_a_queue_is_read_when_it_is_used(broker: EmbeddedBroker, store: Path) -> None:
    sent = fill(broker)
    broker.close()
    with EmbeddedBroker("again", store=store) as again, redelivery.connect(again.vm_url) as connection:
        assert (again.queue_depth("q"), in_memory(again)) == (LONG, 0)
        again.send("q", "last")
        assert received(connection, LONG + 1) == [*sent, "last"]


def test_what_is_not_persistent_ends_with_the_broker_even_if_it_went_to_the_disk(
    broker: EmbeddedBroker, store: Path
) -> None:
    sent = fill(broker)
    broker.send("q", "volatile", persistent=False)
    broker.kill()
    with EmbeddedBroker("again", store=store) as again:
        assert [message.body for message in again.messages("q")] == sent


def test_what_expires_behind_the_front_of_a_queue_is_dead_lettered_when_it_comes_to_the_front(
    broker: EmbeddedBroker,
) -> None:
    fill(broker, ttl=0.05)
    broker.wait_for("ActiveMQ.DLQ", depth=LONG, timeout=5)
    assert broker.queue_depth("q") == 0


def test_after_a_restart_what_has_expired_is_dead_lettered_without_a_consumer(
    broker: EmbeddedBroker, store: Path
) -> None:
    fill(broker, ttl=0.2)
    broker.close()
    with EmbeddedBroker("again", store=store) as again:
        again.wait_for("ActiveMQ.DLQ", depth=LONG, timeout=5)


@pytest.mark.parametrize("body", ["ä" * 20_000, b"\x00\xff" * 10_000, {"a": "b" * 20_000}, ["c" * 20_000, 1]])
@pytest.mark.parametrize("url", ["vm_url", "stomp_url", "amqp_url"])
def test_a_large_body_is_in_the_file_until_its_message_is_consumed(
    broker: EmbeddedBroker, store: Path, url: str, body: Any
) -> None:
    if url == "stomp_url" and not isinstance(body, (str, bytes)):
        pytest.skip("a STOMP frame of a map is JSON, and there is none of a stream")
    with redelivery.connect(getattr(broker, url)) as connection, connection.session() as session:
        session.producer("q").send(body)
    assert pieces(broker) > 1
    assert not isinstance(broker.core.call(lambda engine, _: engine.entries("q"))[0].message.body, (str, bytes, dict))
    broker.close()
    with EmbeddedBroker("again", store=store, stomp_port=0, amqp_port=0) as again:
        with redelivery.connect(getattr(again, url)) as connection, connection.session() as session:
            message = session.consumer("q").receive(timeout=5)
            assert message is not None
            assert message.body == body, "it was acknowledged before it is read here"
            del message
        again.wait_for("q", depth=0)
        assert pieces(again) == 0


def test_a_large_body_goes_with_its_message_to_the_dead_letters(broker: EmbeddedBroker, store: Path) -> None:
    body = "x" * 50_000
    broker.send("q", body, ttl=0.01)
    broker.wait_for("ActiveMQ.DLQ", depth=1, timeout=5)
    written = pieces(broker)
    broker.close()
    with EmbeddedBroker("again", store=store) as again:
        assert pieces(again) == written
        assert [message.body for message in again.messages("ActiveMQ.DLQ")] == [body]


def test_large_bodies_of_a_killed_process_that_nobody_has_are_removed(broker: EmbeddedBroker, store: Path) -> None:
    broker.send("q", "x" * 50_000)
    with redelivery.connect(broker.vm_url) as connection, connection.session() as session:
        message = session.consumer("q").receive(timeout=5)
        broker.kill()  # it is acknowledged, and still read here
    with EmbeddedBroker("again", store=store) as again:
        assert again.queue_depth("q") == 0
        assert pieces(again) == 0
    assert message is not None


@pytest.mark.parametrize("url", ["vm_url", "stomp_url", "amqp_url"])
def test_a_consumer_with_a_selector_finds_what_is_far_behind(broker: EmbeddedBroker, url: str) -> None:
    sent = fill(broker)
    broker.send("q", "wanted", properties={"colour": "red"})
    with redelivery.connect(getattr(broker, url)) as connection:
        with connection.session() as session:
            message = session.consumer("q", selector="colour = 'red'").receive(timeout=5)
            assert message is not None
            assert message.body == "wanted"
        assert received(connection, LONG) == sent
