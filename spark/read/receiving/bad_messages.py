"""Handles messages that cannot be made a row (`badMessages`), and the dead letters of the source."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace

from redelivery.client.observing.passports import attempt_now, made_passport
from redelivery.client.sync.producer import Producer
from redelivery.model.content.dead_letters import PASSPORT
from redelivery.model.destinations import Destination, Queue
from redelivery.model.errors import JMSError, MessageFormatError, ResourceAllocationError
from redelivery.model.messages import Message
from redelivery.model.passport import Passport, write_passport
from redelivery.model.passport.failures import READ as MAX_TEXT
from redelivery.model.passport.redaction import redacted_start
from redelivery.model.values import to_epoch_ms
from redelivery.policies.dead_letter_headers import copy_properties, dead_letter_properties
from redelivery.policies.dead_letters import DEFAULT_DEAD_LETTER_QUEUE, DeadLetterStrategy, Decision, Facts
from redelivery.spark.options.query import SourceOptions
from redelivery.spark.rows.from_message import consumed_from
from redelivery.transports.wire.clock import epoch_ms

log = logging.getLogger(__name__)


class BadMessageError(JMSError):
    """A message cannot be made a row and `badMessages` is ``fail``: the query fails, the message stays on its queue."""


@dataclass(frozen=True, slots=True)
class CountedStrategy(DeadLetterStrategy):
    """Another strategy that says when it is asked: a message's redeliveries are exhausted, or it has expired."""

    strategy: DeadLetterStrategy
    asked: Callable[[], None]

    def _place(self, facts: Facts) -> Decision:
        self.asked()
        return self.strategy._place(facts)


def dead_letter(producer: Producer, message: Message, options: SourceOptions, cause: str, error: Exception) -> None:
    """Send a copy of ``message`` to the dead-letter queue, as part of the session's transaction if it has one.

    It says what a session's own dead letters say: the cause, the origin, the count of deliveries, and its passport.
    """
    origin, queue = consumed_from(message), options.dead_letter_queue or DEFAULT_DEAD_LETTER_QUEUE
    assert origin is not None, "a received message has a destination"
    log.warning("%s: %s is dead-lettered to %s: %s", origin, message.message_id, queue, cause)
    passport = replace(
        made_passport(error, f"spark.readStream of {options.source}", options.application),
        attempts=(attempt_now(message.delivery_count),),
        policy="badMessages=deadLetter",
    )
    send_dead_letter(producer, message.copy(), Queue(queue), message, origin, cause, passport)


def send_dead_letter(
    producer: Producer,
    copy: Message,
    queue: Queue,
    message: Message,
    origin: Destination,
    cause: str,
    passport: Passport,
) -> None:
    """``copy``, with the properties of a dead letter; the origin's headers are those of ``message``.

    Without the passport where there is no room for it.
    """
    properties = copy_properties(
        message.properties,
        dead_letter_properties(
            redacted_start(cause, MAX_TEXT),
            origin,
            to_epoch_ms(message.expiration) or 0,
            message.delivery_count,
            failed_at_ms=epoch_ms(),
            persistent=message.persistent,
        ),
    )
    for each in ({**properties, PASSPORT: write_passport(passport)}, properties):
        copy.properties = each
        try:
            producer.send(copy, queue, persistent=True, priority=message.priority)
            return
        except (MessageFormatError, ResourceAllocationError):  # before anything is written
            if each is properties:
                raise
