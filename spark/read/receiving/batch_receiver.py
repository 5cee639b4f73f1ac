"""One transacted session of the source, that batches a segment at a time, on a connection that comes back.

A batch is received, encoded and stays unacknowledged; the caller makes it durable and then calls `confirm`.
A connection that is lost before that discards it, and the session: the broker redelivers it. Where the broker has no
transactions (RabbitMQ over AMQP) the session is one of CLIENT mode, and `confirm` acknowledges.
"""

from __future__ import annotations

import importlib
import logging
import threading
from collections import Counter, deque
from types import TracebackType
from typing import Final, Self

import redelivery
from redelivery.model.errors import (
    ConfigError,
    ConnectionLostError,
    InDoubtError,
    JMSError,
    RequestTimeoutError,
    TransactionRolledBackError,
)
from redelivery.model.messages import Message
from redelivery.model.modes import AckMode
from redelivery.policies.dead_letters import BrokerDeadLetterStrategy, SharedDeadLetterStrategy
from redelivery.spark.options.query import SourceOptions
from redelivery.spark.options.reconnect import LOST, check_reachable, connect
from redelivery.spark.read.inspect.capable import check_connection
from redelivery.spark.read.receiving.bad_messages import BadMessageError, CountedStrategy, dead_letter
from redelivery.spark.read.receiving.consumer_group import ConsumerGroup, consumers_of
from redelivery.spark.read.receiving.consumer_rules import policy, window
from redelivery.spark.read.receiving.duplicates import Duplicates, SegmentsInDoubt
from redelivery.spark.read.receiving.keeping_up import KeepingUp
from redelivery.spark.read.receiving.received_batch import BatchBuilder, Pace, ReceivedBatch
from redelivery.spark.rows.columns import Converter
from redelivery.transports.wire.clock import monotonic

log = logging.getLogger(__name__)

COUNTS: Final = ("received", "duplicates", "deadLetters", "dropped")
_WAIT: Final = 0.1  # seconds for a first message, after which `receive` returns None
_LOOK: Final = 0.05  # seconds after which a connection that is away is looked at again
_ASK: Final = 0.01  # seconds without a message after which `pace` is asked again: Spark may wait for the batch by now
_PORTION: Final = 64  # a message that has not arrived yet may take this part of a segment
_MAYBE_DONE: Final = (InDoubtError, TransactionRolledBackError, *LOST)


class BatchReceiver:
    """The session. One thread at a time. ``in_doubt``: the segments whose messages the broker may redeliver.

    ``quota``: the most messages that it will receive; None: there is no limit. ``stopped``: set when nobody wants the
    messages any more, which ends every wait. ``broker``: of a list, which is asked first; None: as the URL says.
    """

    def __init__(
        self,
        options: SourceOptions,
        in_doubt: SegmentsInDoubt,
        *,
        quota: int | None = None,
        stopped: threading.Event | None = None,
        broker: int | None = None,
    ) -> None:
        self._options = options
        self._quota = quota
        self._broker = broker
        self._stopped = stopped or threading.Event()
        self._duplicates = Duplicates(in_doubt, self._stopped) if options.dedupe == "inDoubt" else None
        self._builder = BatchBuilder(options, load_converter(options.converter), self._duplicates)
        self._connection: redelivery.Connection | None = None
        self._connections = 0  # before this one
        self._session: redelivery.Session | None = None
        self._consumer: redelivery.Consumer | ConsumerGroup
        self._epoch = 0  # of the connection, when the session was made
        self._seen = KeepingUp()
        self._limits: deque[int] = deque()  # of the next batches, so that a message that fails stands alone
        self.empty = False  # what the last `receive` found: no message, though there was a connection all the time
        self.counts: Counter[str] = Counter()  # deadLetters, dropped, duplicates, reconnects

    def receive(self, rows: int, size: int, pace: Pace, *, first: float = _WAIT) -> ReceivedBatch | None:
        """Receive ``rows`` messages at most, until their rows have about ``size`` bytes; one that is larger stands
        alone.

        ``pace``: when to wait no longer for more of them. ``first``: seconds to wait for the first one. Returns None
        when nothing came (`empty`), what came was rolled back, or the connection was lost.

        Raises:
            ConnectError: the connection was lost and did not come back within `maxReconnectTime`.
            BadMessageError: see `badMessages`.
            JMSError: the broker refuses the consumer.
        """
        self.empty = False
        connection = self._open()
        try:
            if not self._begun(connection, first):
                return None
            message = self._consumer.receive(timeout=first)
            received = self._receive(message, self._limits[0] if self._limits else rows, size, pace)
            self._check_epoch(connection)
        except LOST as error:
            log.warning("the connection was lost, what was not committed is redelivered: %s", error)
            self._discard(error)
            check_reachable(connection, self._options, error)
            return None
        self.empty = message is None
        if received == 0:
            return None
        self.counts["received"] += received
        batch = self._builder.finish(received)
        self.counts["duplicates"] += batch.duplicates
        return batch

    def confirm(self) -> bool:
        """Acknowledge what the last batch received, and commit the dead letters that it sent.

        Returns:
            False when it is not known: the connection was lost, or the broker refused. The broker may redeliver it.
        """
        if self._limits:
            self._limits.popleft()
        connection, session = self._connection, self._session
        assert connection is not None, "what is confirmed was received"
        assert session is not None, "what is confirmed was received"
        try:
            if session.transacted:
                session.commit()
            else:
                session.acknowledge()
                self._check_epoch(connection)
        except _MAYBE_DONE as error:
            log.warning(
                "the commit of a segment is in doubt, its messages are dropped if they are redelivered: %s", error
            )
            self.counts["inDoubt"] += 1
            self._discard(error)
            return False
        if self._duplicates is not None:
            self._duplicates.committed()
        return True

    def close(self) -> None:
        """Release what is not confirmed."""
        self._count_connections()
        connection, self._connection, self._session = self._connection, None, None
        self._connections = self.counts["connections"]
        self._builder.clear()
        self._limits.clear()
        if connection is not None:
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _discard(self, error: JMSError) -> None:
        """The session, whose transaction cannot be committed."""
        connection, session = self._connection, self._session
        self._builder.clear()
        self._limits.clear()
        self._session = None
        if connection is None:
            return
        if isinstance(error, RequestTimeoutError):  # a broker that does not answer: perhaps another connection helps
            self.close()
        elif session is not None:
            session.close()

    def _check_epoch(self, connection: redelivery.Connection) -> None:
        """Raise where what was received since the session was made came by a connection that is lost by now."""
        self._count_connections()
        if connection.epoch != self._epoch or not connection.connected:
            raise ConnectionLostError("it was lost meanwhile")

    def _count_connections(self) -> None:
        if self._connection is not None:
            self.counts["connections"] = self._connections + self._connection.epoch

    def _open(self) -> redelivery.Connection:
        if self._connection is not None:
            return self._connection
        options = self._options
        strategy = (
            BrokerDeadLetterStrategy()
            if options.dead_letter_queue is None
            else SharedDeadLetterStrategy(dead_letter_queue=options.dead_letter_queue)
        )
        self._connection = connect(
            options,
            stopped=self._stopped,
            comes_back=True,
            redelivery_policy=policy(options),
            dead_letter_strategy=CountedStrategy(strategy, self._count_dead_letter),
            client_id=options.client_id,
            prefetch=window(options, self._quota),
            application=options.application,
            first=self._broker,
        )
        check_connection(self._connection, options)
        return self._connection

    def _begun(self, connection: redelivery.Connection, seconds: float) -> bool:
        """A session, where there is none. False: the connection is away, and was not there again within ``seconds``."""
        if self._session is not None:
            return True
        until = monotonic() + seconds
        while not connection.connected:
            connection.check_open("receive")
            if self._stopped.wait(_LOOK) or monotonic() >= until:
                return False
        options, self._epoch = self._options, connection.epoch
        transactions = connection.metadata.capabilities.transactions
        session = connection.session(AckMode.TRANSACTED if transactions else AckMode.CLIENT)
        try:
            consumers = consumers_of(session, options)
            self._consumer = consumers[0] if len(consumers) == 1 else ConsumerGroup(consumers)
            self._producer = session.producer()
        except BaseException:
            session.close()
            raise
        self._session = session
        self._count_connections()
        return True

    def _receive(self, first: Message | None, rows: int, size: int, pace: Pace) -> int:
        """Receive a batch: the number of its messages, with the first; those that can be rows are in the builder."""
        self._builder.clear()
        self._seen.begin()
        messages = [] if first is None else [first]
        received, largest, began = 0, 0, monotonic()
        while messages:
            for message in messages:
                added = self._take(message, received)
                if added is None:
                    return 0
                received += 1
                if added > largest:
                    largest = added
                self._builder.spill()
            room = size - self._builder.size
            if received >= rows or room <= 0 or self._stopped.is_set():
                break
            if room < largest:
                break
            # what comes next may be larger than all before: few at a time at the beginning, and near the end
            most = min(self._options.ack_chunk, rows - received, received, room // max(largest, size // _PORTION, 1))
            messages = self._more(max(1, most), began, pace)
        return received

    def _more(self, most: int, began: float, pace: Pace) -> list[Message]:
        """Some more messages; none when it is time to end."""
        since = now = monotonic()
        while not self._stopped.is_set():
            pause = pace()
            left = pause.end(began, since, self._seen) - now
            if left <= 0:
                break
            messages = self._consumer.receive_many(most, min(left, _ASK))
            asked, now = now, monotonic()
            if pause.target < pause.longest:
                self._seen.took(messages, most, now - asked)
            if messages:
                return messages
        return []

    def _take(self, message: Message, before: int) -> int | None:
        """Make a row of it, or what `badMessages` says: the row's bytes. None: all was rolled back, and is redelivered.

        ``before``: how many of this transaction came before it.
        """
        try:
            return self._builder.columns.add(message)
        except Exception as error:  # the application's converter may raise anything
            cause = f"{type(error).__name__}: {error}"
            match self._options.bad_messages:
                case "fail":
                    text = f"{message.message_id} of {message.destination} cannot be made a row: {cause}"
                    raise BadMessageError(f"{text} (badMessages=fail)") from error
                case "drop":
                    log.warning("%s is dropped: %s", message.message_id, cause)
                    self.counts["dropped"] += 1
                case "permissive":
                    return self._builder.columns.add_error(message, cause)
                case _ if self._consumer.redelivery_policy.maximum_redeliveries > 0:
                    self._redeliver(before, error)
                    return None
                case _:
                    dead_letter(self._producer, message, self._options, cause, error)
                    self._count_dead_letter()
        return 0

    def _redeliver(self, before: int, error: Exception) -> None:
        """Have it redelivered by the session's policy, which dead-letters it in the end.

        Next time what came before it is one transaction, and it is another: only its own redelivery is counted.
        """
        self._limits = deque([before, 1] if before else [1])
        session = self._session
        assert session is not None, "what cannot be a row was received"
        if session.transacted:
            session.rollback(error)
        else:
            session.recover(error)
        self._builder.clear()

    def _count_dead_letter(self) -> None:
        self.counts["deadLetters"] += 1


def load_converter(path: str | None) -> Converter | None:
    """The function that ``module:function`` names. Raises ConfigError if there is none."""
    if path is None:
        return None
    module, _, name = path.partition(":")
    try:
        found: Converter = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            f"converter={path!r} cannot be imported: {error}. The module must be installed where the source receives"
        ) from error
    return found
