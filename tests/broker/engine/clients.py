"""The engine's clients as the state machine's model knows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from redelivery.broker.engine.subscriptions import Dispatch, Subscription
from redelivery.broker.engine.transactions import Transaction

# What consumers select by, and the same for the model: of a message's kind and the count of its next delivery.
SELECTORS: Final[Mapping[str | None, Callable[[int, int], bool]]] = {
    None: lambda _kind, _count: True,
    "kind = 1": lambda kind, _: kind == 1,
    "kind <> 1": lambda kind, _: kind != 1,
    "JMSXDeliveryCount < 2 OR kind = 2": lambda kind, count: count < 2 or kind == 2,
}


@dataclass(eq=False)
class Consumer:
    """A consumer with the dispatches that it holds, by message number."""

    queue: str
    prefetch: int
    selector: str | None = None
    box: list[Dispatch] = field(default_factory=list)
    held: dict[int, Dispatch] = field(default_factory=dict)
    free: set[int] = field(default_factory=set)  # of the held, those that no longer fill the window
    seen: set[int] = field(default_factory=set)
    subscription: Subscription = field(init=False)

    def append(self, dispatch: Dispatch) -> None:
        self.box.append(dispatch)

    def wake(self) -> None:
        """Nobody waits here."""

    def end_slow(self, ending: object) -> None:
        """No consumer is slow here."""


@dataclass(eq=False)
class OpenTransaction:
    """A transaction: numbers to send, and dispatches to acknowledge with the consumer of each."""

    enlisted: Transaction
    sends: list[tuple[str, int]] = field(default_factory=list)
    acks: list[tuple[Consumer, int]] = field(default_factory=list)
