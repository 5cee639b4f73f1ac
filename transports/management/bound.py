"""The queues of an address, as an Artemis' management lists them, and which of them a queue's name means."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from redelivery.policies.destinations.bound import BoundTo
from redelivery.transports.finding import QUALIFIED

ANYCAST: Final = "ANYCAST"
FRESH: Final = 30.0  # seconds after which an address whose queues have other names is asked for again
_MOST: Final = 100  # queues of an address, or of a name, that are looked at


def listing(field: str, value: str) -> list[object]:
    """The arguments that ask for a list: of those where a field has that value."""
    wanted = {"field": field, "operation": "EQUALS", "value": value, "sortField": "name", "sortOrder": "asc"}
    return [json.dumps(wanted), 1, _MOST]


def bound_queues(rows: Iterable[Mapping[str, Any]]) -> list[BoundTo]:
    """The queues of a list."""
    return [
        BoundTo(
            str(each.get("name", "")),
            str(each.get("address", "")),
            each.get("routingType") == ANYCAST,
            each.get("temporary") == "true",
        )
        for each in rows
    ]


def is_made(rows: Iterable[Mapping[str, Any]]) -> bool:
    """Check whether somebody has made the address that is listed: it is not there because it was used."""
    return any(each.get("autoCreated") == "false" for each in rows)


def queues_of(name: str, on: Iterable[BoundTo], named: Iterable[BoundTo], *, made: bool) -> tuple[BoundTo, ...]:
    """The queues that a queue's name means: it itself, or those of the address; none: they are not there.

    ``on``: the queues of the address of that name; ``named``: those of the queue's name. ``made``: somebody has made
    the address, so that its MULTICAST queues are no mere subscriptions.
    """
    address, whole, _ = name.rpartition(QUALIFIED)
    own = tuple(each for each in named if each.address == (address or name))
    if own or whole:
        return own[:1]
    others = tuple(named)[:1]
    bound = tuple(each for each in on if each.anycast)
    if not bound and made:
        bound = tuple(each for each in on if not each.temporary)
    return others or bound
