"""The orders that the ledger gives; the session carries them out, one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from redelivery.client.ledger.state import ConsumerState, Received
from redelivery.transports.delivery import Link


@dataclass(frozen=True, slots=True)
class Poison:
    """Dead-letter one delivery, after whatever rollback is under way; on failure report `Ledger.poison_failed`."""

    delivery: Received
    cause: str
    expired: bool = False


@dataclass(frozen=True, slots=True)
class Release:
    """The application never saw them and never will: the broker may have them back."""

    deliveries: tuple[Received, ...]


@dataclass(frozen=True, slots=True)
class Park:
    """The order to take deliveries out of the window, as they wait for a non-blocking redelivery."""

    deliveries: tuple[Received, ...]


@dataclass(frozen=True, slots=True)
class Unpark:
    """The order to count them in the window again, as their wait is over."""

    deliveries: tuple[Received, ...]


@dataclass(frozen=True, slots=True)
class Detach:
    """The consumer holds nothing any more: its deferred close can be done."""

    link: Link[ConsumerState]


Order: TypeAlias = Poison | Release | Park | Unpark | Detach
