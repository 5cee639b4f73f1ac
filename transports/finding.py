"""Finding a destination before it is used, where its name alone would not do."""

from __future__ import annotations

from typing import Protocol

from redelivery.model.destinations import Destination
from redelivery.transports.flows import Flow


class Finder(Protocol):
    """Of one connection."""

    def must_find(self, destination: Destination | None) -> bool:
        """Whether nothing is known of it yet, and something must be."""

    def find(self, destination: Destination) -> Flow[None]:
        """Find it.

        Raises:
            ConnectionLostError, RequestTimeoutError: the broker does not answer.
        """


def found(finder: Finder | None, destination: Destination | None) -> Flow[None]:
    """Done when it is found, where it must be. Raises as `Finder.find`."""
    if finder is not None and destination is not None and finder.must_find(destination):
        yield from finder.find(destination)
