"""An engine with a store of which each call reads a page at most, as the broker has it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.broker.engine.bench import Bench, Box

from redelivery.broker.engine.config import BrokerConfig
from redelivery.broker.engine.engine import Engine
from redelivery.broker.engine.subscriptions import CreditSubscription, Subscription
from redelivery.broker.store.sqlite import SqliteStore
from redelivery.model.destinations import Queue

PAGE = 10  # messages
LONG = 100
NUMBERS = [str(number) for number in range(LONG)]
RED: dict[str, Any] = {"properties": {"colour": "red"}}
SELECTS_RED = "colour = 'red'"


class Turns(Bench):
    """An engine with a store, of which each call reads a page at most; ``peak``: so many messages were in memory."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.store = SqliteStore(path, synchronous="off", window=PAGE)
        self.engine = Engine(BrokerConfig(), journal=self.store)
        self.peak = 0
        self.begin()

    def begin(self) -> None:
        """The call before is over."""
        self.store.write(self.store.take())
        self.engine.deliver(self.store.durable)
        self.peak = max([self.peak, *(len(queue.entries) for queue in self.engine.queues.values())])
        self.engine.begin()

    def send(self, *bodies: str, to: str = "q", now: int = 0, **fields: object) -> None:
        for body in bodies:
            super().send(body, to=to, now=now, **fields)
            self.begin()

    def consumer(self, *options: Any, **more: Any) -> tuple[Subscription, Box]:
        made = super().consumer(*options, **more)
        self.begin()
        return made

    def credited(self, credit: int) -> tuple[CreditSubscription, Box]:
        box = Box()
        subscription = CreditSubscription(Queue("q"), box)
        self.engine.subscribe(subscription)
        self.engine.start(subscription, 0)
        self.engine.grant(subscription, credit, 0)
        self.begin()
        return subscription, box

    def acknowledge(self, box: Box) -> list[object]:
        """What it was given, and `settle`."""
        bodies = box.bodies()
        self.engine.acknowledge(box.take(), 0)
        self.settle()
        return bodies

    def all_of(self, box: Box) -> list[object]:
        """What it is given while it acknowledges."""
        found = []
        while box:
            found += self.acknowledge(box)
        return found

    def settle(self) -> int:
        """Let the broker go on until nothing is left to do; how many calls that took."""
        self.begin()
        calls = 0
        while self.engine.next_deadline() == 0:
            self.engine.tick(0)
            self.begin()
            calls += 1
        return calls
