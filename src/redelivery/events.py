"""What an ``observer`` is given: see `redelivery.model.events`.

import redelivery

def observe(event):
    match event:
        case redelivery.events.DeadLettered(message_id=message_id, reason=reason):
            print(message_id, reason)

connection = redelivery.connect("vm://example", observer=observe)
"""

from redelivery.model.events import (
    Acknowledged,
    AcknowledgedTooLate,
    Committed,
    Connected,
    ConnectionClosed,
    ConnectionLost,
    ConsumerEnded,
    DeadLettered,
    Delivered,
    Discarded,
    Dispatched,
    Enqueued,
    Event,
    Expired,
    InDoubt,
    MessageEvent,
    NearReturnLimit,
    Observer,
    Reconnected,
    ReconnectFailed,
    Released,
    RolledBack,
    Sent,
)

__all__ = [
    "Acknowledged",
    "AcknowledgedTooLate",
    "Committed",
    "Connected",
    "ConnectionClosed",
    "ConnectionLost",
    "ConsumerEnded",
    "DeadLettered",
    "Delivered",
    "Discarded",
    "Dispatched",
    "Enqueued",
    "Event",
    "Expired",
    "InDoubt",
    "MessageEvent",
    "NearReturnLimit",
    "Observer",
    "ReconnectFailed",
    "Reconnected",
    "Released",
    "RolledBack",
    "Sent",
]
