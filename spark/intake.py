"""One transacted session of the source, that fills a segment at a time; it is made anew when its connection is lost.

A fill is received, made into columns and stays unacknowledged; the caller makes it durable and then calls `confirm`.
A lost connection before that throws it away: the broker delivers it again. Where the broker has no transactions
(RabbitMQ over AMQP) the session is one of CLIENT mode, and `confirm` acknowledges.
"""

from __future__ import annotations

import importlib
import logging
import math
import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

import pyarrow as pa

import redelivery
from redelivery.model.errors import ConfigError, InDoubtError, TransactionRolledBackError
from redelivery.model.messages import Message
from redelivery.model.modes import AckMode
from redelivery.policies.dead_letters import BrokerDeadLetterStrategy, SharedDeadLetterStrategy
from redelivery.policies.redelivery import RedeliveryPolicy
from redelivery.spark.bad_messages import BadMessageError, CountedStrategy, dead_letter
from redelivery.spark.columns import Columns, Converter
from redelivery.spark.options import SourceOptions
from redelivery.spark.reconnect import LOST, factory, persist
from redelivery.transports.wire.clock import monotonic

log = logging.getLogger(__name__)

_WAIT: Final = 0.25  # seconds for a first message, after which the caller looks around
_MOMENT: Final = 0.005  # seconds for one more, where somebody waits for what there is
_DEAD_LETTERS: Final = "ActiveMQ.DLQ"
_MAYBE_DONE: Final = (InDoubtError, TransactionRolledBackError, *LOST)


@dataclass(frozen=True, slots=True)
class Fill:
    """What one transaction has received.

    ``received``: messages, those that gave no row included. ``duplicates``: that stand in a segment already.
    """

    batches: Sequence[pa.RecordBatch]
    rows: int
    received: int
    duplicates: int


class Intake:
    """The session. One thread at a time.

    Args:
        in_doubt: the ids of messages that stand in a segment although the broker may deliver them again.
        prefetch: the consumer's window, in messages.
        stopped: set when nobody wants the messages any more, which ends every wait.
    """

    def __init__(
        self,
        options: SourceOptions,
        in_doubt: Callable[[], frozenset[str]],
        *,
        prefetch: int,
        stopped: threading.Event | None = None,
    ) -> None:
        self._options = options
        self._in_doubt = in_doubt
        self._prefetch = prefetch
        self._stopped = stopped or threading.Event()
        self._columns = Columns(
            options.properties_type, errors=options.errors, converter=load_converter(options.converter)
        )
        self._connection: redelivery.Connection | None = None
        self._limits: deque[int] = deque()  # of the next fills, so that a message that fails stands alone
        self.counts: Counter[str] = Counter()  # deadLetters, dropped, duplicates, reconnects

    def fill(
        self, rows: int, linger: float, *, longest: float = math.inf, hurry: Callable[[], bool] = lambda: False
    ) -> Fill | None:
        """Receive up to ``rows`` messages.

        Args:
            linger: seconds without a further message that end it.
            longest: seconds after the first message that end it.
            hurry: whether what is there is wanted at once: it ends ``linger`` after the first message, or earlier
                where nothing more is there.

        Returns:
            None when nothing came, or the connection was lost and made anew.

        Raises:
            ConnectError: the connection was lost and could not be made anew within `maxReconnectTime`.
            BadMessageError: see `badMessages`.
            JMSError: the broker refuses the consumer.
        """
        self._open()
        try:
            received = self._receive(self._limits[0] if self._limits else rows, linger, longest, hurry)
        except LOST as error:
            log.warning("the connection was lost, what was not committed comes again: %s", error)
            self.close()
            return None
        if received == 0:
            return None
        self.counts["received"] += received
        drop: Sequence[int] = ()
        if self._options.dedupe == "inDoubt" and (ids := self._in_doubt()):
            drop = [place for place, each in enumerate(self._columns.message_ids) if each in ids]
            self.counts["duplicates"] += len(drop)
        batches = self._columns.batches(drop=drop)
        return Fill(batches, len(self._columns) - len(drop), received, len(drop))

    def confirm(self) -> bool:
        """Acknowledge what the last fill received, and commit the dead letters that it sent.

        Returns:
            False when it is not known: the connection was lost, or the broker refused. The broker may deliver it again.
        """
        if self._limits:
            self._limits.popleft()
        try:
            if self._session.transacted:
                self._session.commit()
            else:
                self._session.acknowledge()
        except _MAYBE_DONE as error:
            log.warning("the commit of a segment is in doubt, its messages are dropped if they come again: %s", error)
            self.counts["inDoubt"] += 1
            self.close()
            return False
        return True

    def close(self) -> None:
        """Give back what is not confirmed."""
        connection, self._connection = self._connection, None
        self._columns.clear()
        self._limits.clear()
        if connection is not None:
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _open(self) -> None:
        if self._connection is not None:
            return
        options = self._options
        strategy = (
            BrokerDeadLetterStrategy()
            if options.dead_letter_queue is None
            else SharedDeadLetterStrategy(dead_letter_queue=options.dead_letter_queue)
        )
        made = factory(
            options,
            redelivery_policy=policy(options),
            dead_letter_strategy=CountedStrategy(strategy, self._count_dead_letter),
            prefetch=self._prefetch,
        )
        persist(lambda: self._begin(made), made, options.max_reconnect_time, self._stopped)

    def _begin(self, made: redelivery.ConnectionFactory) -> None:
        options = self._options
        connection = made.create_connection()
        try:
            transactions = connection.metadata.capabilities.transactions
            self._session = connection.session(AckMode.TRANSACTED if transactions else AckMode.CLIENT)
            self._consumer = self._session.consumer(options.destination, selector=options.selector)
            self._producer = self._session.producer()
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        self.counts["connections"] += 1

    def _receive(self, rows: int, linger: float, longest: float, hurry: Callable[[], bool]) -> int:
        """How many messages came; those that can be rows are in the columns."""
        self._columns.clear()
        first = self._consumer.receive(timeout=max(_WAIT, linger))
        messages = [] if first is None else [first]
        received, began = 0, monotonic()
        while messages:
            for message in messages:
                if not self._take(message, received):
                    return 0
                received += 1
            waited = monotonic() - began
            if received >= rows or self._stopped.is_set() or waited > (linger if hurry() else longest):
                break
            wait = min(linger, _MOMENT) if hurry() else linger
            messages = self._consumer.receive_many(min(self._options.ack_chunk, rows - received), wait)
        return received

    def _take(self, message: Message, before: int) -> bool:
        """Make a row of it, or what `badMessages` says. False: all was rolled back, and comes again.

        ``before``: how many of this transaction came before it.
        """
        try:
            self._columns.add(message)
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
                    self._columns.add_error(message, cause)
                case _ if self._consumer.redelivery_policy.maximum_redeliveries > 0:
                    self._again(before, error)
                    return False
                case _:
                    dead_letter(self._producer, message, self._options.dead_letter_queue or _DEAD_LETTERS, cause)
                    self._count_dead_letter()
        return True

    def _again(self, before: int, error: Exception) -> None:
        """Have it come again by the session's policy, which dead-letters it in the end.

        Next time what came before it is a transaction of its own, and so is it: only it counts as redelivered again.
        """
        self._limits = deque([before, 1] if before else [1])
        if self._session.transacted:
            self._session.rollback(error)
        else:
            self._session.recover(error)
        self._columns.clear()

    def _count_dead_letter(self) -> None:
        self.counts["deadLetters"] += 1


def policy(options: SourceOptions) -> RedeliveryPolicy | None:
    """Without a limit unless there is one: a job that is restarted must not dead-letter what it never looked at.

    None: the URL has a policy of its own.
    """
    if "jms.redeliveryPolicy." in options.url:
        return None
    delay = options.redelivery_delay
    return RedeliveryPolicy(
        maximum_redeliveries=options.max_redeliveries, initial_redelivery_delay=delay, redelivery_delay=delay
    )


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
