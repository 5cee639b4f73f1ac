"""What an AMQP error condition means, as an error of ours."""

from __future__ import annotations

from typing import Final, Protocol

from redelivery.model.errors import (
    InvalidClientIDError,
    InvalidDestinationError,
    InvalidSelectorError,
    JMSError,
    ResourceAllocationError,
    SecurityError,
    UnsupportedError,
)

# Of AMQP 1.0, "amqp:" left out; what is not here is a JMSError.
_MEANINGS: Final[dict[str, type[JMSError]]] = {
    "unauthorized-access": SecurityError,
    "not-found": InvalidDestinationError,
    "resource-deleted": InvalidDestinationError,
    "invalid-address": InvalidDestinationError,
    "not-implemented": UnsupportedError,
    "not-allowed": SecurityError,
    "resource-limit-exceeded": ResourceAllocationError,
    "link:message-size-exceeded": ResourceAllocationError,
    "link:transfer-limit-exceeded": ResourceAllocationError,
}
# Some brokers have no condition of their own for it, only words.
_WORDS: Final[tuple[tuple[str, type[JMSError]], ...]] = (
    ("already connected from", InvalidClientIDError),
    ("invalid-client-id", InvalidClientIDError),
    ("invalidclientid", InvalidClientIDError),
    ("selector", InvalidSelectorError),
    ("invalid filter", InvalidSelectorError),
    ("is not authorized", SecurityError),
    ("does not have permission", SecurityError),
    ("not authorized", SecurityError),
    ("usage manager", ResourceAllocationError),
    ("is full", ResourceAllocationError),
)
_LONGEST: Final = 500  # of the broker's text


class Reason(Protocol):
    """An AMQP error condition."""

    @property
    def name(self) -> str | None:
        """Such as ``amqp:not-found``."""

    @property
    def description(self) -> str | None:
        """The peer's own words."""


def broker_error(condition: Reason | None, doing: str) -> JMSError:
    """The error that a condition tells, in the broker's own words; None is that it gave no reason."""
    if condition is None:
        return JMSError(f"{doing}: the broker refuses, without a reason")
    name = str(condition.name or "")
    said = f"{name}: {condition.description}" if condition.description else name
    lower = said.lower()
    kind = _MEANINGS.get(name.removeprefix("amqp:"), JMSError)
    if kind is not UnsupportedError:
        kind = next((error for words, error in _WORDS if words in lower), kind)
    return kind(f"{doing}: the broker says: {said[:_LONGEST] or 'nothing'}")
