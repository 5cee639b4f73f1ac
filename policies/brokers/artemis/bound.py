"""The queues behind the addresses where dead letters, and expired messages, go.

Artemis and HornetQ remove what goes to an address without a queue. Neither makes one for its own dead letters, whatever
``auto-create-queues`` says: that is for clients (`auto-create-dead-letter-resources` is for dead letters).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from redelivery.policies.brokers.rules import no_queue
from redelivery.policies.destinations.address_settings import AddressSettings
from redelivery.policies.destinations.bound import BoundTo


class Bound(Protocol):
    """A queue of an address."""

    @property
    def address(self) -> str: ...  # noqa: D102  # the class says it

    @property
    def name(self) -> str: ...  # noqa: D102  # the class says it

    @property
    def routing(self) -> str: ...  # noqa: D102  # the class says it

    @property
    def filter(self) -> str | None: ...  # noqa: D102  # the class says it


def made(queues: Iterable[Bound]) -> tuple[BoundTo, ...]:
    """List the queues as a client of the broker wants to know them."""
    return tuple(BoundTo(each.name, each.address, each.routing == "anycast") for each in queues)


def targets(settings: AddressSettings) -> Iterator[str]:
    """Iterate over these addresses, without those for which Artemis makes a queue by itself."""
    if settings.dead_letter_address and not settings.auto_create_dead_letter_resources:
        yield settings.dead_letter_address
    if settings.expiry_address and not settings.auto_create_expiry_resources:
        yield settings.expiry_address


def unmade(settings: Iterable[AddressSettings], queues: Iterable[Bound]) -> tuple[str, ...]:
    """List those of these settings that have no queue."""
    there = {each.address for each in queues}
    found = dict.fromkeys(target for each in settings for target in targets(each))
    return tuple(each for each in found if each not in there)


def notes(settings: AddressSettings, queues: Iterable[Bound], unless: str) -> Iterator[str]:
    """Say which of these addresses have no queue, or none that takes each message.

    Args:
        settings: of the destination.
        queues: that the file makes.
        unless: who else may make them.
    """
    for target in dict.fromkeys(targets(settings)):
        found = [each for each in queues if each.address == target]
        if not found:
            yield no_queue(target, f", unless {unless}")
        elif all(each.filter is not None for each in found):
            yield f"each queue on {target} has a filter: what none of them takes is removed"
    if settings.auto_create_dead_letter_resources:
        for each in queues:
            if each.address == settings.dead_letter_address and each.filter is None:
                yield f"queue {each.name!r} on {each.address} gets a copy of each of these dead letters too"
