"""What the ledger knows of a consumer and of a delivery, and the orders that it gives."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from redelivery.policies.redelivery import RedeliveryPolicy
from redelivery.transports.delivery import Delivery, Link


class State(IntEnum):
    """Where a delivery is (`Delivery.state`)."""

    READY = 0  # with its consumer, not shown yet or waiting for a blocking redelivery
    HELD = 1  # with the application, not acknowledged
    DELAYED = 2  # waits for a non-blocking redelivery
    CONDEMNED = 3  # ready, but over its limit: to be dead-lettered instead of shown
    GONE = 4  # settled, or the broker's again
    TAKEN = 5  # the caller acknowledges it at once (AUTO, DUPS_OK)
    RETURNED = 6  # the broker's again although the application holds it: its consumer was closed (INDIVIDUAL)


# Looking a member up in its class costs a fifth of a microsecond, on the path of every message.
READY, HELD, DELAYED, CONDEMNED, GONE, TAKEN, RETURNED = State


class Station:
    """One consumer in the ledger: its ready deliveries, in order, and until when it stands still.

    ``policy`` answers for one delivery, because a wildcard consumer uses the policy of each message's real queue.
    ``check_limit`` is ActiveMQ's pre-dispatch check. ``name`` stands in cause texts.
    """

    __slots__ = ("check_limit", "closing", "held", "link", "listening", "name", "not_before", "policy", "ready")

    def __init__(
        self, link: Link, policy: Callable[[Delivery], RedeliveryPolicy], *, name: str, check_limit: bool = False
    ) -> None:
        self.link = link
        self.policy = policy
        self.name = name
        self.check_limit = check_limit
        self.ready: deque[Delivery] = deque()
        self.held = 0  # deliveries of this consumer that the application holds
        self.not_before = 0.0  # blocked until then; 0.0: not blocked
        self.listening = False  # a message listener is set
        self.closing = False  # closed by the application, detached when it holds nothing any more
        link.consumer = self


@dataclass(frozen=True, slots=True)
class Poison:
    """Dead-letter one delivery, after whatever rollback is under way; on failure report `Ledger.poison_failed`."""

    delivery: Delivery
    cause: str
    expired: bool = False


@dataclass(frozen=True, slots=True)
class Release:
    """The application never saw them and never will: the broker may have them back."""

    deliveries: tuple[Delivery, ...]


@dataclass(frozen=True, slots=True)
class Park:
    """They wait for a non-blocking redelivery, and must not hold up the window."""

    deliveries: tuple[Delivery, ...]


@dataclass(frozen=True, slots=True)
class Unpark:
    """Their wait is over."""

    deliveries: tuple[Delivery, ...]


@dataclass(frozen=True, slots=True)
class Detach:
    """The consumer holds nothing any more: its deferred close can be done."""

    link: Link


Order: TypeAlias = Poison | Release | Park | Unpark | Detach
