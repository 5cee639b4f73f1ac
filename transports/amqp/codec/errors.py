"""Translates an AMQP error condition into an error of ours."""

from __future__ import annotations

from typing import Final, Protocol

from redelivery.model.errors import (
    InvalidDestinationError,
    InvalidSelectorError,
    JMSError,
    MessageFormatError,
    ResourceAllocationError,
    SecurityError,
    UnsupportedError,
)
from redelivery.transports.dialects.refusals import AMQP_HINTS, AMQP_SELECTOR_REFUSED, AMQP_WORDS

# Of AMQP 1.0, "amqp:" left out; what is not here is a JMSError.
_MEANINGS: Final[dict[str, type[JMSError]]] = {
    "unauthorized-access": SecurityError,
    "not-found": InvalidDestinationError,
    "resource-deleted": InvalidDestinationError,
    "invalid-address": InvalidDestinationError,
    "not-implemented": UnsupportedError,
    "decode-error": MessageFormatError,
    "resource-limit-exceeded": ResourceAllocationError,
    "link:message-size-exceeded": ResourceAllocationError,
    "link:transfer-limit-exceeded": ResourceAllocationError,
}
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
    """The error that a condition means, in the broker's own words; None: it gave no reason."""
    if condition is None:
        return JMSError(f"{doing}: the broker refuses, without a reason")
    name = str(condition.name or "")
    said = f"{name}: {condition.description}" if condition.description else name
    lower = said.lower()
    kind = _MEANINGS.get(name.removeprefix("amqp:"), JMSError)
    if name == AMQP_SELECTOR_REFUSED and "consumer" in doing:
        kind = InvalidSelectorError
    if kind is not UnsupportedError:
        kind = next((error for words, error in AMQP_WORDS if words in lower), kind)
    hint = next((advice for words, advice in AMQP_HINTS if words in lower), "")
    return kind(f"{doing}: the broker says: {said[:_LONGEST] or 'nothing'}{hint}")
