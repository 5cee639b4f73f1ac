"""The queues behind the addresses where dead letters, and expired messages, go.

Artemis and HornetQ remove what goes to an address without a queue. Neither makes one for its own dead letters, whatever
``auto-create-queues`` says: that is for clients (`auto-create-dead-letter-resources` is for dead letters).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from redelivery.policies.brokers.rules import no_queue
from redelivery.policies.destinations.address_settings import AddressSettings
from redelivery.policies.destinations.bound import BoundTo
from redelivery.policies.files.places import NOWHERE, Place

Routing: TypeAlias = Literal["anycast", "multicast"]
_MEANT: Final = frozenset("*>#,")  # in a name of ours they mean more than one queue


@dataclass(frozen=True, slots=True)
class BoundQueue:
    """A queue that the file makes on an address."""

    address: str
    name: str
    routing: Routing
    filter: str | None = None
    place: Place = field(default=NOWHERE, compare=False)


def in_order(queues: Iterable[BoundQueue]) -> tuple[BoundQueue, ...]:
    """Sort them by address. What a file makes twice is one queue, and multicast where it says both (Artemis 2.44)."""
    made: dict[tuple[str, str], BoundQueue] = {}
    for each in queues:
        if (each.address, each.name) not in made or each.routing == "multicast":
            made[each.address, each.name] = each
    return tuple(sorted(made.values(), key=lambda each: (each.address, each.routing, each.name)))


def elsewhere(queues: Iterable[BoundQueue]) -> dict[str, str]:
    """Return the address of each queue that is on an address of another name."""
    own = {each.name for each in queues if each.name == each.address}
    return {each.name: each.address for each in queues if each.name not in own}


def queue_on(address: str | None, name: str | None) -> str | None:
    """Return a queue of an address, as it is addressed: that of the address' own name, or the one that is named."""
    return address if address is None or name is None else f"{address}::{name}"


def own_names(others: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return the same with keys of our maps: a queue is consumed by its own name, and has its address' rules.

    ``prefix``: how the names of JMS' queues begin; of others there are none of ours.
    """
    names = {each: each.removeprefix(prefix) for each in others if each.startswith(prefix)}
    return {f"queue://{name}": others[each] for each, name in names.items() if not _MEANT.intersection(name)}


def made(queues: Iterable[BoundQueue]) -> tuple[BoundTo, ...]:
    """List the queues as a client of the broker wants to know them."""
    return tuple(BoundTo(each.name, each.address, each.routing == "anycast") for each in queues)


def targets(settings: AddressSettings) -> Iterator[str]:
    """Iterate over these addresses, without those for which Artemis makes a queue by itself."""
    if settings.dead_letter_address and not settings.auto_create_dead_letter_resources:
        yield settings.dead_letter_address
    if settings.expiry_address and not settings.auto_create_expiry_resources:
        yield settings.expiry_address


def unmade(settings: Iterable[AddressSettings], queues: Iterable[BoundQueue]) -> tuple[str, ...]:
    """List those of these settings that have no queue."""
    there = {each.address for each in queues}
    found = dict.fromkeys(target for each in settings for target in targets(each))
    return tuple(each for each in found if each not in there)


def notes(settings: AddressSettings, queues: Iterable[BoundQueue], unless: str) -> Iterator[str]:
    """Say which of these addresses have no queue, or none that takes each message; ``unless`` others make them."""
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
