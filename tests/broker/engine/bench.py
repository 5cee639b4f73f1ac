"""What the engine's tests have in common: an engine with short words, and a box for what a consumer is given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redelivery.broker.engine.config import BrokerConfig
from redelivery.broker.engine.engine import Engine
from redelivery.broker.engine.stored import StoredMessage
from redelivery.broker.engine.subscriptions import Dispatch, Subscription
from redelivery.model.destinations import destination
from redelivery.model.selectors.selector import Selector


class Box(list[Dispatch]):
    """Collects what a consumer is given."""

    def wake(self) -> None:
        """Nobody waits here."""

    def end_slow(self, ending: object) -> None:
        """No consumer is slow here."""

    def bodies(self) -> list[object]:
        return [dispatch.message.body for dispatch in self]

    def take(self) -> list[Dispatch]:
        taken = list(self)
        self.clear()
        return taken


class Bench:
    """An engine with short words for a test."""

    def __init__(self, config: BrokerConfig | None = None) -> None:
        self.engine = Engine(config or BrokerConfig())
        self.sent = 0

    def message(self, body: str, to: str = "q", **fields: Any) -> StoredMessage:
        self.sent += 1
        return StoredMessage(message_id=f"ID:{self.sent}", destination=destination(to), body=body, size=100, **fields)

    def send(self, *bodies: str, to: str = "q", now: int = 0, **fields: object) -> None:
        for body in bodies:
            self.engine.send(self.message(body, to, **fields), now)

    def consumer(
        self,
        name: str = "q",
        prefetch: int = 100,
        now: int = 0,
        *,
        no_local: bool = False,
        origin: str = "",
        selector: str | None = None,
    ) -> tuple[Subscription, Box]:
        box = Box()
        subscription = Subscription(destination(name), box, prefetch=prefetch, no_local=no_local, origin=origin)
        self.engine.subscribe(subscription, selector=None if selector is None else Selector(selector))
        self.engine.start(subscription, now)
        return subscription, box

    def held(self, queue: str) -> list[object]:
        return [entry.message.body for entry in self.engine.entries(queue)]


def bodies(dispatches: Sequence[Dispatch]) -> list[object]:
    return [dispatch.message.body for dispatch in dispatches]
