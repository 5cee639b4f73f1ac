"""The numbers: four of the semantic conventions, and those of what only redelivery knows."""

from __future__ import annotations

from typing import Final

from opentelemetry.metrics import Meter

from redelivery.model.events import (
    ConnectionLost,
    ConsumerEnded,
    DeadLettered,
    Discarded,
    Event,
    Expired,
    InDoubt,
    MessageEvent,
    Reconnected,
    ReconnectFailed,
    RolledBack,
)
from redelivery.otel.names import DESTINATION, ERROR, URL, Attributes, error_type

_BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10)
# event -> the counter of it, what it counts, and of what
_COUNTED: Final[dict[type[Event], tuple[str, str, str]]] = {
    RolledBack: ("redelivery.redeliveries", "{message}", "Messages that failed and are redelivered"),
    DeadLettered: ("redelivery.dead_letters", "{message}", "Messages that became dead letters"),
    Discarded: ("redelivery.discards", "{message}", "Messages that were dropped instead of being dead-lettered"),
    Expired: ("redelivery.expirations", "{message}", "Messages that expired before they were delivered"),
    InDoubt: ("redelivery.in_doubt", "{operation}", "Commits and sends whose answer did not come"),
    ConsumerEnded: ("redelivery.consumers.ended", "{consumer}", "Consumers that the broker ended"),
    ConnectionLost: ("redelivery.connections.lost", "{connection}", "Connections that were lost"),
    Reconnected: ("redelivery.reconnects", "{connection}", "Connections that came back"),
    ReconnectFailed: ("redelivery.reconnects.failed", "{attempt}", "Attempts to reconnect in which no broker answered"),
}


class Instruments:
    """Made once by an observer."""

    def __init__(self, meter: Meter) -> None:
        self.operation = meter.create_histogram(
            "messaging.client.operation.duration",
            unit="s",
            description="Duration of sending, receiving and settling",
            explicit_bucket_boundaries_advisory=_BUCKETS,
        )
        self.process = meter.create_histogram(
            "messaging.process.duration",
            unit="s",
            description="Duration of a listener's or handler's work on a message",
            explicit_bucket_boundaries_advisory=_BUCKETS,
        )
        self.sent = meter.create_counter(
            "messaging.client.sent.messages", unit="{message}", description="Messages that a producer tried to send"
        )
        self.consumed = meter.create_counter(
            "messaging.client.consumed.messages", unit="{message}", description="Messages given to the application"
        )
        self._counters = {
            kind: meter.create_counter(name, unit=unit, description=description)
            for kind, (name, unit, description) in _COUNTED.items()
        }

    def count(self, event: Event, session: Attributes) -> None:
        """One more of what it counts; ``session``: what is known of its session's broker."""
        counter = self._counters.get(type(event))
        if counter is None:
            return
        attributes = dict(session)
        if isinstance(event, MessageEvent | ConsumerEnded) and event.destination is not None:
            attributes[DESTINATION] = event.destination.name
        if isinstance(event, ConnectionLost | Reconnected | ReconnectFailed):
            attributes[URL] = event.url
        error = _error(event)
        if error is not None:
            attributes[ERROR] = error_type(error)
        counter.add(1, attributes)


def _error(event: Event) -> BaseException | None:
    match event:
        case RolledBack() | DeadLettered() | Discarded():
            return event.cause
        case ConsumerEnded() | ConnectionLost() | ReconnectFailed():
            return event.error
    return None
