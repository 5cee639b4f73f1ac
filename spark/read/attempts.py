"""Batches that the query's own code always fails on: `maxBatchAttempts` and `onBatchFailure`.

Their messages are long committed at the broker, so no redelivery policy counts them. Spark plans a batch anew each time
the query is started again: that is what is counted, in the segments' own place.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

from redelivery.client.observing.passports import made_passport
from redelivery.model.destinations import Queue
from redelivery.model.errors import JMSError
from redelivery.model.modes import AckMode
from redelivery.policies.dead_letters import DEFAULT_DEAD_LETTER_QUEUE
from redelivery.spark.log.segments import segment_batches
from redelivery.spark.log.store.interface import Tombstone
from redelivery.spark.log.wal import SegmentName, Wal
from redelivery.spark.options.query import SourceOptions
from redelivery.spark.options.reconnect import connect
from redelivery.spark.read.receiving.bad_messages import send_dead_letter
from redelivery.spark.rows.to_message import messages

log = logging.getLogger(__name__)


class BatchFailedError(JMSError):
    """Spark has planned a batch for more than `maxBatchAttempts` times, and `onBatchFailure` is ``fail``."""


def planned(wal: Wal, options: SourceOptions, first: int, last: int) -> list[int]:
    """The segments of a batch that Spark plans, ``first`` to ``last``, of which quarantined ones will yield nothing.

    Raises:
        BatchFailedError: see the class.
    """
    count_attempt(wal, options, first, last)
    return list(range(first, last + 1))


def count_attempt(wal: Wal, options: SourceOptions, first: int, last: int) -> None:
    """One more try at the batch; what has been tried too often is dead-lettered, or fails the query."""
    if not options.max_batch_attempts or wal.quarantined(last):
        return
    attempt = wal.count_attempt(last)
    if attempt <= options.max_batch_attempts:
        return
    cause = f"the batch failed {attempt - 1} times (maxBatchAttempts={options.max_batch_attempts})"
    if options.on_batch_failure == "fail":
        raise BatchFailedError(
            f"{cause}: correct the query and raise maxBatchAttempts, or set onBatchFailure=deadLetter to put its "
            "messages on the dead-letter queue"
        )
    _dead_letter(wal, options, range(first, last + 1), cause)


def _dead_letter(wal: Wal, options: SourceOptions, numbers: range, cause: str) -> None:
    """Send copies of all messages of the batch, commit, and quarantine its segments; the last one at the end.

    A crash between the commit and the quarantine brings the same dead letters again, never none.
    """
    queue = Queue(options.dead_letter_queue or DEFAULT_DEAD_LETTER_QUEUE)
    sent = 0
    passport = replace(
        made_passport(None, f"spark.readStream of {options.source}", options.application),
        policy=f"maxBatchAttempts={options.max_batch_attempts}",
    )
    with connect(options) as connection:
        transactions = connection.metadata.capabilities.transactions
        with connection.session(AckMode.TRANSACTED if transactions else AckMode.AUTO) as session:
            producer = session.producer()
            for segment in wal.segments():
                reader = _reader(wal, segment) if segment.seq in numbers else None
                for batch in () if reader is None else segment_batches(reader):
                    for message in messages(batch):
                        origin = message.destination or options.destinations[0]
                        send_dead_letter(producer, message.copy(), queue, message, origin, cause, passport)
                        sent += 1
            if transactions:
                session.commit()
    for number in numbers:
        wal.quarantine(number)
    log.error("%s: its %d messages are dead-lettered to %s, and it yields no rows", cause, sent, queue)


def _reader(wal: Wal, segment: SegmentName) -> Any:
    try:
        return wal.reader(segment.seq, segment.part)
    except Tombstone:  # nobody has read it, and nobody will
        return None
