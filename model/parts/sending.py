"""The arguments of a send beside its body and destination, written once for all who send."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final, TypedDict

from redelivery.model.destinations import Destination

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
