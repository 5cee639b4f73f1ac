"""Remembers the span of each message's first delivery, for the link of its redelivery to it."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final

from opentelemetry.trace import SpanContext

from redelivery.model.events import MessageEvent

_REMEMBERED: Final = 10_000  # messages


class FirstDeliveries:
    """First deliveries by message id: of this process, neither consumed nor dead letters yet, the latest ones."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spans: OrderedDict[str, SpanContext] = OrderedDict()

    def note(self, event: MessageEvent, span: SpanContext) -> None:
        """Remember that a message is delivered in this span, for the first time."""
        identifier = event.message_id
        if identifier is None or not span.is_valid:
            return
        with self._lock:
            self._spans[identifier] = span
            if len(self._spans) > _REMEMBERED:
                self._spans.popitem(last=False)

    def of(self, event: MessageEvent) -> SpanContext | None:
        """The span of its first delivery; None where that was elsewhere, or is forgotten."""
        identifier = event.message_id
        return None if identifier is None else self._spans.get(identifier)

    def forget(self, event: MessageEvent) -> None:
        """Forget a message that is not delivered again."""
        if self._spans:
            identifier = event.message_id
            if identifier is not None:
                self._spans.pop(identifier, None)
