"""A message that fails again and again on an engine that obeys a file, by a clock that only this test moves."""

from __future__ import annotations

from tests.broker.engine.bench import Box

from redelivery.broker.engine.config import BrokerConfig
from redelivery.broker.engine.engine import Engine
from redelivery.broker.engine.rules.rules import Manner
from redelivery.broker.engine.stored import StoredMessage
from redelivery.broker.engine.subscriptions import Dispatch, Subscription
from redelivery.model.destinations import Destination, destination
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.brokers.rules import Rules


class Bench:
    """``waits``: milliseconds between the failure of a delivery and the next one."""

    def __init__(self, rules: Rules | BrokerPolicies, *, now: int = 1_000_000) -> None:
        found = rules.rules if isinstance(rules, BrokerPolicies) else rules
        self.engine = Engine(BrokerConfig(rules=found))
        self.now = now
        self.waits: list[int] = []
        self.counts: list[int] = []

    def send(self, queue: str | Destination = "q", body: str = "m", **fields: object) -> None:
        message = StoredMessage(message_id=f"ID:{body}", destination=destination(queue), body=body, **fields)  # type: ignore[arg-type]  # handed through
        self.engine.send(message, self.now)

    def consumer(self, queue: str | Destination = "q") -> tuple[Subscription, Box]:
        box = Box()
        subscription = Subscription(destination(queue), box, prefetch=10)
        self.engine.subscribe(subscription)
        self.engine.start(subscription, self.now)
        return subscription, box

    def taken(self, box: Box) -> Dispatch:
        dispatch = box.pop(0)
        self.counts.append(dispatch.count)
        self.engine.mark_seen((dispatch,), self.now)
        return dispatch

    def pass_time(self, milliseconds: int) -> None:
        self.now += milliseconds
        self.engine.tick(self.now)

    def await_next(self, box: Box) -> bool:
        """Go on to the next delivery; False: none comes."""
        began = self.now
        while not box:
            due = self.engine.next_deadline()
            if due is None:
                return False
            self.pass_time(max(due - self.now, 0))
        self.waits.append(self.now - began)
        return True

    def fail(self, queue: str = "q", *, most: int = 100, manner: Manner | None = None) -> int:
        """Let each delivery fail until none comes, or ``most`` did; how many there were."""
        subscription, box = self.consumer(queue)
        number = 0
        while number < most:
            number += 1
            dispatch = self.taken(box)
            if manner is None:
                self.engine.release((dispatch,), self.now)
            else:
                self.engine.poison(dispatch, "it was bad", self.now, manner)
            if not self.await_next(box):
                break
        self.engine.unsubscribe(subscription, self.now, all_seen=False)
        return number

    def close(self, queue: str = "q", *, times: int, manner: Manner, seen: bool = True) -> int:
        """Let a consumer after the other end in that manner; how many got the message."""
        for number in range(times):
            subscription, box = self.consumer(queue)
            if not box and not self.await_next(box):
                return number
            if seen:
                self.taken(box)
            self.engine.unsubscribe(subscription, self.now, all_seen=False, manner=manner)
        return times

    def letters(self, queue: str) -> list[StoredMessage]:
        return [entry.message for entry in self.engine.entries(queue)]
