"""Writers that Spark calls of the sink: one for a batch, one for a stream. Each task sends and commits on its own."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from redelivery.model.errors import ConfigError
from redelivery.spark.options.query import SinkOptions
from redelivery.spark.versions import StreamArrowWriter
from redelivery.spark.write.rows import check_columns
from redelivery.spark.write.task import TaskCommit, query_ids, send_task

log = logging.getLogger(__name__)


class BatchWriter(DataSourceArrowWriter):
    """``df.write``. Its ids for duplicate detection begin with the option `jobId`; without it there are none.

    In ``foreachBatch`` the query's and the batch's id follow. Raises ConfigError: rows of this schema cannot be sent;
    the text names the column.
    """

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        check_columns(schema, destination_given=options.destination is not None)
        self._options = options

    def write(self, iterator: Iterator[Any]) -> TaskCommit:
        """Send the rows of one task, given as RecordBatches.

        Raises:
            JMSError: a row cannot be sent, or the broker refuses; nothing of the task was sent.
            InDoubtError: the answer to the commit did not come.
        """
        job = self._options.job_id
        return send_task(self._options, iterator, None if job is None else [job, *query_ids()])

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Say what was sent; it is committed already."""
        _log_sent("the write", messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Say what stays sent."""
        _log_failed("the write", messages)


class StreamWriter(StreamArrowWriter):
    """``df.writeStream``. Its ids for duplicate detection begin with the query's and the batch's.

    Raises:
        ConfigError: as with `BatchWriter`; or the option `jobId` is given, which a stream has no use for.
    """

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        if options.job_id is not None:
            raise ConfigError("jobId names a batch write; a stream has the query's id, which is kept across restarts")
        check_columns(schema, destination_given=options.destination is not None)
        self._options = options

    def write(self, iterator: Iterator[Any]) -> TaskCommit:
        """As `BatchWriter.write`."""
        return send_task(self._options, iterator, query_ids() or None)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Say what was sent; it is committed already."""
        _log_sent(f"batch {batchId}", messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Say what stays sent."""
        _log_failed(f"batch {batchId}", messages)


def _log_sent(what: str, messages: Sequence[WriterCommitMessage | None]) -> None:
    tasks, rows, size, repeated = _sum(messages)
    log.info(
        "%s: %d tasks have sent %d rows, %d bytes of bodies (%d of the tasks in an earlier attempt)",
        *(what, tasks, rows, size, repeated),
    )


def _log_failed(what: str, messages: Sequence[WriterCommitMessage | None]) -> None:
    tasks, rows, size, _ = _sum(messages)
    log.warning(
        "%s has failed: what %d finished tasks have sent stays sent, %d rows, %d bytes of bodies",
        *(what, tasks, rows, size),
    )


def _sum(messages: Sequence[WriterCommitMessage | None]) -> tuple[int, int, int, int]:
    sent = [each for each in messages if isinstance(each, TaskCommit)]
    return (
        len(sent),
        sum(each.rows for each in sent),
        sum(each.bytes for each in sent),
        sum(each.repeated for each in sent),
    )
