"""Errors of the broker as conditions of AMQP 1.0."""

from __future__ import annotations

from typing import Any, Final

import proton

from redelivery.model.errors import (
    IllegalStateError,
    InvalidClientIDError,
    InvalidDestinationError,
    InvalidSelectorError,
    JMSError,
    MessageFormatError,
    ProtocolError,
    ResourceAllocationError,
    SecurityError,
    TransactionRolledBackError,
    UnsupportedError,
)

UNKNOWN_TRANSACTION: Final = "amqp:transaction:unknown-id"
_CONDITIONS: Final[tuple[tuple[type[JMSError], str], ...]] = (
    (SecurityError, "amqp:unauthorized-access"),
    (InvalidClientIDError, "amqp:invalid-field"),
    (InvalidDestinationError, "amqp:not-found"),
    (InvalidSelectorError, "amqp:invalid-field"),
    (UnsupportedError, "amqp:not-implemented"),
    (ResourceAllocationError, "amqp:resource-limit-exceeded"),
    (TransactionRolledBackError, "amqp:transaction:rollback"),
    (MessageFormatError, "amqp:decode-error"),
    (ProtocolError, "amqp:invalid-field"),
    (IllegalStateError, "amqp:illegal-state"),
)


class RefusedError(JMSError):
    """A refusal with a condition of its own."""

    def __init__(self, condition: str, text: str) -> None:
        super().__init__(text)
        self.condition = condition


def condition(error: JMSError, info: dict[Any, Any] | None = None) -> Any:
    """The proton Condition for an error; one without a condition of its own is an internal error."""
    return proton.Condition(condition_name(error), str(error), info)


def condition_name(error: JMSError) -> str:
    """The name of the condition."""
    if isinstance(error, RefusedError):
        return error.condition
    return next((name for kind, name in _CONDITIONS if isinstance(error, kind)), "amqp:internal-error")
