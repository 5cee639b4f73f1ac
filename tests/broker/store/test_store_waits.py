"""A message that waits for its redelivery waits as long after a kill -9, as on Artemis and HornetQ."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.broker.engine.bench import Box
from tests.broker.rules.test_artemis_rules import artemis
from tests.broker.store.test_store_kill import killed
from tests.policies.readers.documents import address_settings, classic, redelivery_plugin, written

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.broker.engine.config import BrokerConfig
from redelivery.broker.engine.engine import Engine
from redelivery.broker.engine.rules.rules import Manner
from redelivery.broker.engine.stored import StoredMessage
from redelivery.broker.engine.subscriptions import Subscription
from redelivery.broker.store.sqlite import SqliteStore
from redelivery.model.destinations import Queue
from redelivery.policies.brokers.rules import Rules
from redelivery.testing import fast_forward

HOUR = 3_600_000  # milliseconds


class Life:
    """A broker from one start to a kill, by a clock that only this test moves; ``window``: so much is in memory."""

    def __init__(self, path: Path, *, now: int, window: int = 1000, rules: Rules | None = None) -> None:
        self.now = now
        self.store = SqliteStore(path, synchronous="off", window=window)
        rules = rules or artemis(redelivery_delay=HOUR, max_delivery_attempts=3).rules
        self.engine = Engine(BrokerConfig(rules=rules), journal=self.store)
        self.engine.restore(self.store.restore(), now)
        self.box = Box()
        self.consumer = Subscription(Queue("q"), self.box, prefetch=10)

    def send(self, *bodies: str) -> None:
        for body in bodies:
            self.engine.send(StoredMessage(f"ID:{body}", Queue("q"), body), self.now)

    def consume(self) -> None:
        self.engine.subscribe(self.consumer)
        self.engine.start(self.consumer, self.now)
        self.write()

    def write(self) -> None:
        self.store.write(self.store.take())
        self.engine.deliver(self.store.durable)

    def release(self, *, seen: bool, only: int | None = None) -> None:
        """What the consumer has, or the first ``only`` of it."""
        dispatches = self.box[:only]
        for dispatch in dispatches:
            dispatch.seen = seen
        self.engine.release(dispatches, self.now)
        self.box.clear()
        self.write()

    def taken(self) -> list[tuple[object, int]]:
        return [(each.message.body, each.count) for each in self.box]

    def pass_time(self, milliseconds: int) -> None:
        self.now += milliseconds
        self.engine.tick(self.now)
        self.write()

    def kill(self) -> int:
        self.store.give_up()
        self.store.close()
        return self.now


@pytest.mark.parametrize("seen", [True, False])  # it failed, or was released: both wait there
def test_it_waits_for_the_rest_of_its_time(tmp_path: Path, seen: bool) -> None:
    first = Life(tmp_path / "shop.db", now=1_000_000)
    first.send("m")
    first.consume()
    first.release(seen=seen)
    first.pass_time(HOUR // 2)
    again = Life(tmp_path / "shop.db", now=first.kill())
    again.consume()
    assert again.taken() == []
    assert again.engine.next_deadline() == 1_000_000 + HOUR
    again.pass_time(HOUR // 2 - 1)
    assert again.taken() == []
    again.pass_time(1)
    assert again.taken() == [("m", 1 + seen)]
    once_more = Life(tmp_path / "shop.db", now=again.kill())
    once_more.consume()
    assert once_more.taken() == [("m", 1 + seen)]  # that wait is over
    once_more.kill()


def test_it_is_where_it_stood_when_its_time_passed_while_the_broker_was_down(tmp_path: Path) -> None:
    first = Life(tmp_path / "shop.db", now=1_000_000)
    first.send("1", "2")
    first.consume()
    first.release(seen=True, only=1)
    later = Life(tmp_path / "shop.db", now=first.kill() + HOUR)
    later.consume()
    assert later.taken() == [("1", 2), ("2", 1)]
    later.kill()


def test_those_behind_it_are_delivered_meanwhile_whatever_of_the_queue_is_in_memory(tmp_path: Path) -> None:
    first = Life(tmp_path / "shop.db", now=1_000_000)
    first.send("1", "2", "3", "4")
    first.consume()
    first.release(seen=True, only=3)
    again = Life(tmp_path / "shop.db", now=first.kill(), window=1)
    assert again.engine.depth("q") == 4
    again.consume()
    assert again.taken() == [("4", 1)]
    again.engine.acknowledge(again.box, again.now)
    again.box.clear()
    again.pass_time(HOUR)
    assert again.taken() == [("1", 2), ("2", 2), ("3", 2)]
    again.kill()


def test_nothing_of_it_stays_when_it_is_consumed(tmp_path: Path) -> None:
    first = Life(tmp_path / "shop.db", now=1_000_000)
    first.send("m")
    first.consume()
    first.release(seen=False)
    first.pass_time(HOUR)
    first.engine.poison(first.box[0], None, first.now, Manner.NACKED)
    first.write()
    assert first.engine.depth("q") == 0
    first.store.close()
    store = SqliteStore(tmp_path / "shop.db", synchronous="off")
    assert store.restore().queues == {}
    assert store._database.execute("SELECT count(*) FROM counted").fetchone() == (0,)
    store.close()


def test_what_classic_s_plug_in_has_scheduled_is_sent_again_when_it_is_due(tmp_path: Path) -> None:
    plugin = redelivery_plugin().replace("SpecialQueue", ">")
    rules = classic(plugin).rules
    first = Life(tmp_path / "shop.db", now=1_000_000, rules=rules)
    first.send("m")
    first.consume()
    first.engine.poison(first.box[0], None, first.now, Manner.NACKED)
    first.write()
    due = first.engine.next_deadline()
    assert due is not None
    again = Life(tmp_path / "shop.db", now=first.kill(), rules=rules)
    again.consume()
    assert again.engine.next_deadline() == due
    again.pass_time(due - again.now)
    assert again.taken() == [("m", 2)]
    again.kill()


@pytest.mark.short_form
def test_after_a_kill_of_the_process(tmp_path: Path) -> None:
    config = written(tmp_path, "broker.xml", address_settings(**{"#": {"redelivery_delay": HOUR}}))
    store = tmp_path / "shop.db"
    killed(store, "client", "producer.send('a')", "producer.send('b')", "consume()", "fail()", config=config)
    with (
        EmbeddedBroker("again", config=config, store=store) as broker,
        fast_forward(broker) as clock,
        redelivery.connect(broker.vm_url) as connection,
        connection.session("auto") as session,
    ):
        consumer = session.consumer("q")
        found = [consumer.receive(5)]
        assert consumer.receive_nowait() is None
        clock.advance(HOUR / 1000)
        found.append(consumer.receive(5))
        assert [(each.body, each.delivery_count) for each in found if each] == [("b", 1), ("a", 2)]
