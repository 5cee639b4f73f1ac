"""The batches that Spark plans again and again, and those whose messages are dead letters: see `maxBatchAttempts`."""

from __future__ import annotations

from redelivery.spark.log.names import ATTEMPTS, QUARANTINE, batch_name, leading_number
from redelivery.spark.log.store.interface import SegmentStore


class FailedBatches:
    """The part of a log that counts them."""

    store: SegmentStore

    def attempts(self, seq: int) -> int:
        """The number of times that `count_attempt` was called for the batch."""
        return sum(leading_number(name) == seq for name in self.store.list(ATTEMPTS))

    def count_attempt(self, seq: int) -> int:
        """Spark plans the batch once more; the number of times, this one included."""
        number = self.attempts(seq) + 1
        while not self.store.put_if_absent(f"{ATTEMPTS}/{batch_name(seq)}-{number:06d}", b""):
            number += 1
        return number

    def quarantine(self, seq: int) -> None:
        """The batch's messages are dead letters: nothing of it is read any more."""
        self.store.put_if_absent(f"{QUARANTINE}/{batch_name(seq)}", b"")

    def quarantined(self, seq: int) -> bool:
        """Check whether `quarantine` was called for the batch."""
        return self.store.exists(f"{QUARANTINE}/{batch_name(seq)}")
