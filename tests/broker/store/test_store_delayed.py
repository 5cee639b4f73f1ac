"""Of a delayed message that is kept only its time is in memory; the message is on the disk until then."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.broker.engine.bench import Bench, Box

from redelivery.broker import EmbeddedBroker
from redelivery.broker.engine.config import BrokerConfig
from redelivery.broker.engine.engine import Engine
from redelivery.broker.engine.subscriptions import Subscription
from redelivery.broker.store import paging
from redelivery.broker.store.batch import Batch
from redelivery.broker.store.sqlite import SqliteStore
from redelivery.model.destinations import Queue
from redelivery.testing import fast_forward

DUE = 1000


class Life:
    """An engine with a store, which is written when the test says so."""

    def __init__(self, path: Path) -> None:
        self.store = SqliteStore(path, synchronous="off")
        self.engine = Engine(BrokerConfig(), journal=self.store)
        self.engine.restore(self.store.restore(), 0)
        self.bench = Bench()
        self.box = Box()
        consumer = Subscription(Queue("q"), self.box, prefetch=10)
        self.engine.subscribe(consumer)
        self.engine.start(consumer, 0)

    def send(self, body: str, **fields: Any) -> None:
        self.engine.send(self.bench.message(body, delivery_time=DUE, **fields), 0)

    def write(self, batch: Batch | None = None) -> None:
        self.store.write(batch or self.store.take())
        self.engine.deliver(self.store.durable)

    def begin_again(self) -> None:
        """A new engine with what is in the file."""
        self.store.close()
        vars(self).update(vars(Life(self.store.path)))


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    life = Life(tmp_path / "store.db")
    yield life
    life.store.close()


@pytest.mark.parametrize("until", ["it is noted", "it is taken", "it is written", "a restart"])
def test_it_is_delivered_from_where_it_is_then(life: Life, until: str) -> None:
    life.send("later", properties={"colour": "red"})
    assert life.engine.memory_used == 0
    batch = None
    if until == "it is taken":
        batch = life.store.take()
    elif until != "it is noted":
        life.write()
    if until == "a restart":
        life.begin_again()
        assert life.engine.memory_used == 0
    life.engine.tick(DUE - 1)
    life.engine.tick(DUE)
    if batch is not None:
        life.write(batch)
    life.write()
    assert life.box.bodies() == ["later"]
    assert life.box[0].message.properties == {"colour": "red"}
    life.engine.acknowledge(life.box, DUE)
    life.begin_again()
    assert not life.engine.next_deadline(), "nothing of it is left"


def test_one_that_is_not_kept_is_in_memory(life: Life) -> None:
    life.send("later", persistent=False)
    assert life.engine.memory_used == 100
    life.engine.tick(DUE)
    life.write()
    assert life.box.bodies() == ["later"]


def test_many_that_are_due_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paging, "_DUE", 2)
    with EmbeddedBroker("many", store=tmp_path / "store.db") as broker, fast_forward(broker) as clock:
        for number in range(5):
            broker.send("q", f"{number}", delivery_delay=60)
        clock.advance(60)
        broker.wait_for("q", depth=5)
        assert [message.body for message in broker.messages("q")] == list("01234")
