"""A queue of an address, on brokers where an address is no queue."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BoundTo:
    """A queue and its address, as a broker's management lists them or its configuration makes them."""

    name: str
    address: str
    anycast: bool
    temporary: bool = False
