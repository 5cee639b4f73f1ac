"""The sink: each task sends its rows in one transaction, so that an attempt that failed has left nothing.

1. Where the broker has no transactions (RabbitMQ over AMQP) every send is confirmed instead: an attempt that failed may
   leave some of its rows, and the next one sends them again.
2. Tasks commit on their own. When the write fails for good, what the finished tasks have sent stays sent.
3. A task whose transaction had been committed may be tried again: its answer was lost, Spark lost the executor, or the
   stream was restarted. To Artemis over AMQP the last message of the transaction carries an id by which the broker
   refuses the whole transaction if it knows it already; then the task is done. The id has a digest of all rows, so that
   other rows under the same numbers, after a repartitioning, are sent and not lost.
4. The property `redelivery_dedupe_id` of every message serves consumers on the other brokers.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, TypeVar

from pyspark import TaskContext
from pyspark.sql.datasource import WriterCommitMessage

import redelivery
from redelivery.model.destinations import Destination
from redelivery.model.errors import InDoubtError, JMSError, RequestTimeoutError, TransactionRolledBackError
from redelivery.model.messages import Message
from redelivery.model.modes import AckMode
from redelivery.spark.options.query import SinkOptions
from redelivery.spark.options.reconnect import connect
from redelivery.spark.write.rows import DEDUPE_ID, Outgoing, Rows
from redelivery.transports.dialects.detect import duplicate_refusal

log = logging.getLogger(__name__)

_T = TypeVar("_T")
_UNCONFIRMED: Final = 512  # sends on their way at once where each is confirmed
_CONFIRM_TIMEOUT: Final = 60.0  # seconds


@dataclass(frozen=True, slots=True)
class TaskCommit(WriterCommitMessage):
    """The count of rows and bytes that a task has sent.

    ``bytes``: of the bodies. ``repeated``: an earlier attempt had sent it all, this one nothing.
    """

    partition: int
    rows: int
    bytes: int
    repeated: bool = False


def query_ids() -> list[str]:
    """The ids of the query and of its batch, of the running task; none in a batch job."""
    task = TaskContext.get()
    names = ("sql.streaming.queryId", "streaming.sql.batchId")
    found = [task.getLocalProperty(name) for name in names]
    return found if all(found) else []


def send_task(options: SinkOptions, batches: Iterable[Any], identity: list[str] | None) -> TaskCommit:
    """The rows of the running task. ``identity``: what its ids for duplicate detection begin with; None: it has none.

    Raises:
        JMSError: a row cannot be sent, or the broker refuses; nothing of the task was sent.
        InDoubtError: the answer to the commit did not come.
    """
    partition: int = TaskContext.get().partitionId()
    dedupe = "-".join([*identity, str(partition)]) if identity and options.dedupe else None
    rows = Rows(options, dedupe)
    filled = (batch for batch in batches if batch.num_rows)
    repeated = False
    for first in filled:  # an empty task connects to nothing
        with connect(options) as connection:
            repeated = _send(connection, options.destination, rows, chain([first], filled))
    return TaskCommit(partition, rows.count, rows.bytes, repeated)


def _send(
    connection: redelivery.Connection, destination: Destination | None, rows: Rows, batches: Iterable[Any]
) -> bool:
    """All rows, committed or confirmed. True: an earlier attempt had committed them, and the broker says so."""
    if not connection.metadata.capabilities.transactions:
        _send_confirmed(connection, destination, rows.outgoing(batches))
        return False
    refusal = _duplicate_refusal(connection) if rows.have_ids else None
    name = connection.metadata.capabilities.duplicate_id_property
    outgoing = rows.outgoing(batches)
    if refusal is not None and name is not None:
        rows.start_digest()
        outgoing = _name_the_last(outgoing, name, rows)
    try:
        with connection.session(AckMode.TRANSACTED) as session, session.transaction():
            producer = session.producer(destination)
            for number, each in enumerate(outgoing):
                _start(producer.send, number, each)
    except TransactionRolledBackError as error:
        if refusal is None or refusal not in str(error):
            raise
        log.warning("%s: an earlier attempt has committed these %d rows, nothing is sent", rows.task_id, rows.count)
        return True
    except InDoubtError as error:
        raise InDoubtError(
            f"{error}; so it is not known whether the {rows.count} rows of this task were sent, all or none. Another "
            f"attempt {_of_another_attempt(rows, refused=refusal is not None)}",
            transaction_id=error.transaction_id,
        ) from error
    return False


def _duplicate_refusal(connection: redelivery.Connection) -> str | None:
    """Over AMQP only: there a refusal says why."""
    return duplicate_refusal(connection.dialect) if connection.metadata.protocol.startswith("AMQP") else None


def _of_another_attempt(rows: Rows, *, refused: bool) -> str:
    if refused:
        return "sends them only if this one did not."
    if rows.have_ids:
        return f"may send them twice; consumers can recognise them by the property {DEDUPE_ID}."
    return "may send them twice."


def _name_the_last(outgoing: Iterator[Outgoing], name: str, rows: Rows) -> Iterator[Outgoing]:
    """The same; the last one has the id of the whole transaction."""
    last: Outgoing | None = None
    for each in outgoing:
        if last is not None:
            yield last
        last = each
    if last is not None:
        last.message.properties = {**last.message.properties, name: rows.task_id}
        yield last


def _send_confirmed(
    connection: redelivery.Connection, destination: Destination | None, outgoing: Iterator[Outgoing]
) -> None:
    """Each row by itself, a number of them on their way at once."""
    waiting: deque[Future[Message]] = deque()
    with connection.session() as session:
        producer = session.producer(destination)
        for number, each in enumerate(outgoing):
            waiting.append(_start(producer.send_async, number, each))
            if len(waiting) == _UNCONFIRMED:
                _confirm(waiting.popleft())
        while waiting:
            _confirm(waiting.popleft())


def _start(send: Callable[..., _T], number: int, row: Outgoing) -> _T:
    try:
        return send(row.message, row.destination, persistent=row.persistent, priority=row.priority, ttl=row.ttl)
    except JMSError as error:
        error.add_note(f"in row {number} of the task, counted from 0")
        raise


def _confirm(sent: Future[Message]) -> None:
    try:
        sent.result(_CONFIRM_TIMEOUT)
    except TimeoutError as error:
        if isinstance(error, JMSError):
            raise
        raise RequestTimeoutError(f"the broker did not confirm a send within {_CONFIRM_TIMEOUT:g} s") from error
