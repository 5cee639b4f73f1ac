"""What other threads notify a session of beside deliveries, in the order in which it happened.

They stand in its inbox between the deliveries; the holder of the session acts on them, when it takes them in.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeAlias

from redelivery.client.ledger import ConsumerState
from redelivery.model.errors import JMSError
from redelivery.transports.seam import Delivery, Transport


@dataclass(frozen=True, slots=True)
class LinkEnded:
    """The broker has ended a consumer."""

    consumer: ConsumerState
    error: JMSError


@dataclass(frozen=True, slots=True)
class Lost:
    """The connection is gone; nothing is the session's any more."""

    error: JMSError
    at: datetime


@dataclass(frozen=True, slots=True)
class Interrupted:
    """The connection is gone, and another one will come; what was delivered is the broker's again."""

    error: JMSError


@dataclass(frozen=True, slots=True)
class Restored:
    """There is another connection."""

    transport: Transport


@dataclass(frozen=True, slots=True)
class CloseAsked:
    """The application closes a consumer."""

    consumer: ConsumerState


@dataclass(frozen=True, slots=True)
class Returned:
    """A call that had taken these deliveries failed, or was interrupted: nobody has got them."""

    deliveries: tuple[Delivery, ...]


News: TypeAlias = LinkEnded | Lost | Interrupted | Restored | CloseAsked | Returned


class Report(Protocol):
    """How the connection is notified of an error that no call waits for."""

    def __call__(self, error: JMSError, *, deadly: bool = False) -> None:
        """``deadly``: a listener is called no more because of it."""


def ended(consumer: ConsumerState, action: str) -> JMSError:
    """The error for a call that needs a consumer that the broker has ended, in the broker's words."""
    error = consumer.error
    assert error is not None, "it has ended"
    problem = type(error)(f"{action}: the broker has ended the consumer of {consumer.link.destination}: {error}")
    problem.__cause__ = error
    return problem
