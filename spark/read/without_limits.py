"""The stream's reader for Spark 4.0 and 4.1, which ask for the latest offset and do not say where the batch begins.

What they do: at a restart the last offset of the checkpoint comes through `partitions` first, as an empty range, then
the batch that was not finished, if there is one; in a new query `latestOffset` comes before `initialOffset`. So a batch
begins where the last one has ended that was planned or returned, and in a new query behind what the log has committed.

No such Spark announces AvailableNow: it asks once, and ends after that batch. So the first question of each run waits
until the queue is empty, as long as that is soon, and not only for a first segment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceStreamReader

from redelivery.model.errors import ConfigError
from redelivery.transports.wire.clock import monotonic

if TYPE_CHECKING:
    from redelivery.spark.read.driver import DriverStreamReader
    from redelivery.spark.read.executor import ExecutorStreamReader

_FIRST: Final = 10.0  # seconds for the first question, where availableNowMaxTime says nothing
_WRAPPED: Final = (
    "spark.sql.streaming.triggerAvailableNowWrapper.enabled is set, and with it Spark 4.0 and 4.1 may give batches "
    "twice or not at all: unset it (AvailableNow is then one batch of at most maxMessagesPerBatch), or use Spark 4.2"
)


class UnlimitedStreamReader(DataSourceStreamReader):
    """See the module. ``reader``: does the work, with the limit that this Spark does not know."""

    def __init__(self, reader: DriverStreamReader | ExecutorStreamReader) -> None:
        self.reader = reader
        self._last: Mapping[str, Any] | None = None  # where the batch ends that was planned or returned last
        self._due = False  # that one was returned, and not planned yet
        self._asked = False

    def initialOffset(self) -> dict[str, Any]:
        """As the reader's."""
        return self.reader.initialOffset()

    def latestOffset(self) -> dict[str, Any]:
        """As the reader's, for a batch of `maxMessagesPerBatch` at most.

        Raises:
            ConfigError: Spark wraps the source for AvailableNow, and would plan batches that are not there.
            JMSError: of the reader's.
        """
        if self._due:
            raise ConfigError(_WRAPPED)
        start = self._last or self.initialOffset()
        reader = self.reader
        if self._asked:
            reader.deadline = None
        else:
            reader.prepareForTriggerAvailableNow()
            if reader.options.available_now_max_time is None:
                reader.deadline = monotonic() + _FIRST
        end = reader.latestOffset(start, reader.getDefaultReadLimit())
        self._asked, self._last, self._due = True, end, end != start
        return end

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> Sequence[Any]:
        """As the reader's. Raises ConfigError as `latestOffset` does."""
        if start == end and (self._due or self._last not in (None, start)):
            raise ConfigError(_WRAPPED)
        self._last, self._due = end, False
        return self.reader.partitions(start, end)

    def read(self, partition: Any) -> Iterator[Any]:
        """As the reader's."""
        return self.reader.read(partition)

    def commit(self, end: Mapping[str, Any]) -> None:
        """As the reader's."""
        self.reader.commit(end)

    def stop(self) -> None:
        """As the reader's."""
        self.reader.stop()
