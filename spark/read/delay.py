"""Says how many messages the next batch waits for: `minMessagesPerBatch`, `maxTriggerDelay`, as Kafka's source does."""

from __future__ import annotations

from math import inf

from redelivery.spark.options.query import SourceOptions
from redelivery.transports.wire.clock import monotonic


class TriggerDelay:
    """The clock of one query. Its first batch does not wait, so that a restart goes on with what is pending."""

    def __init__(self, options: SourceOptions) -> None:
        self._least = options.min_messages_per_batch
        self._delay = options.max_trigger_delay
        self._planned = -inf

    def least(self) -> int:
        """The messages without which no batch begins now; 1 once `maxTriggerDelay` has passed."""
        return 1 if monotonic() - self._planned >= self._delay else max(1, self._least)

    def planned(self) -> None:
        """A batch begins."""
        self._planned = monotonic()
