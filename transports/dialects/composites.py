"""Composite destinations: ``a,topic://b`` means both where the broker has ActiveMQ's composites, a name elsewhere."""

from __future__ import annotations

from redelivery.model.capabilities import Capabilities
from redelivery.model.destinations import Destination, TemporaryQueue, TemporaryTopic
from redelivery.model.errors import UnsupportedError


def check_one(destination: Destination, capabilities: Capabilities) -> None:
    """Raise UnsupportedError where it is a composite one, and the broker would take it for a name."""
    if "," not in destination.name or capabilities.composite_destinations:
        return
    if not isinstance(destination, (TemporaryQueue, TemporaryTopic)):
        raise UnsupportedError(
            f"{destination}: this broker has no composite destinations, and would take it for one of that name; "
            "send to each of them, in a transaction if all or none is to get the message"
        )


def consumed(found: Destination, consumed_from: Destination, capabilities: Capabilities) -> Destination:
    """The destination of a message whose header names ``found``: of a composite one, the part that it came from."""
    if "," in found.name and capabilities.composite_destinations and not consumed_from.is_pattern:
        return consumed_from
    return found
