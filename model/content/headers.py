"""The headers that an application sets, checked as it sets them, and the keywords of a send."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final, TypedDict

from redelivery.model.content.errors import MessageFormatError
from redelivery.model.destinations import Destination, destination

COPIED: Final = ("correlation_id", "reply_to", "type", "group_id", "group_sequence")
"""The headers that a copy has from its original."""
SYNONYMS: Final = {
    "headers": "properties",
    "expiration": "ttl",
    "time_to_live": "ttl",
    "delay": "delivery_delay",
    "durable": "persistent",
    "delivery_mode": "persistent",
}
"""What other clients call an option -> its name here."""


class SendKeywords(TypedDict, total=False):
    """The keywords of a send; what is left out is as the producer was made.

    properties: added to those of the message.
    persistent: whether the broker keeps it through a restart.
    priority: 0 to 9.
    ttl: seconds until it expires; None or 0: never.
    delivery_delay: seconds before it may be delivered.
    correlation_id: links a reply to its request.
    reply_to: where a reply is expected.
    type: JMSType.
    group_id: JMSXGroupID.
    """

    properties: Mapping[str, object] | None
    persistent: bool | None
    priority: int | None
    ttl: float | timedelta | None
    delivery_delay: float | timedelta | None
    correlation_id: str | bytes | None
    reply_to: Destination | str | None
    type: str | None
    group_id: str | None


def check_header(name: str, value: object) -> object:
    """The value of a header, if it is one. Raises MessageFormatError, which names the header."""
    if value is None:
        return None
    if name == "reply_to":
        return destination(value)  # type: ignore[arg-type]  # it checks the type itself
    if name == "group_sequence":
        if isinstance(value, int) and not isinstance(value, bool) and value >= -1:
            return value
        raise MessageFormatError(f"group_sequence={value!r} must be an integer >= 0, or -1 (the last)")
    if isinstance(value, str) or (name == "correlation_id" and isinstance(value, bytes)):
        return value
    raise MessageFormatError(f"{name}={value!r} is not a str")
