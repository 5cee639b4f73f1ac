"""The answer of a broker's management, over HTTP or by its methods over AMQP, and the error that a refusal is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from redelivery.model.errors import InvalidDestinationError, JMSError, SecurityError

REFUSALS: Final[Mapping[int, type[JMSError]]] = {401: SecurityError, 403: SecurityError, 404: InvalidDestinationError}

_TO_DO: Final[Mapping[str, str]] = {
    "Not management user": ": give this user one of the tags monitoring and management, by rabbitmqctl set_user_tags"
}


@dataclass(frozen=True, slots=True)
class ManagementAnswer:
    """``status``: HTTP's; ``body``: None where it is empty."""

    status: int
    body: Any

    def refusal(self, doing: str, otherwise: type[JMSError] = JMSError) -> JMSError | None:
        """The error in the broker's words; None: it is no refusal. ``otherwise``: of a status that says nothing."""
        return None if self.status < 300 else refused(self.status, f"{doing}: the broker", self.body, otherwise)

    def check(self, doing: str, otherwise: type[JMSError] = JMSError) -> None:
        """Raise what `refusal` is."""
        error = self.refusal(doing, otherwise)
        if error is not None:
            raise error


def refused(status: int, who: str, said: object, otherwise: type[JMSError] = JMSError) -> JMSError:
    """The error of a refusal; ``who``: what was done, and who says this of it."""
    return REFUSALS.get(status, otherwise)(f"{who} says: {said} ({status}){_TO_DO.get(str(said), '')}")
