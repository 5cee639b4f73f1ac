"""From a poisoned delivery to what the transport is asked: the broker's own way, a copy, or nothing but an ack."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta

from redelivery.client.ledger import Poison
from redelivery.client.observing.log_lines import Lines, dead_lettered, dropped, shown_destination
from redelivery.model.capabilities import Capabilities
from redelivery.model.errors import MessageFormatError
from redelivery.model.messages import Message
from redelivery.policies.dead_letter_headers import copy_properties, dead_letter_properties
from redelivery.policies.dead_letters import CopyTo, DeadLetterStrategy, Drop, Native
from redelivery.transports.seam import Delivery

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do: drop it, send ``copy`` and acknowledge, or (neither) leave it to the broker."""

    drop: bool = False
    copy: Message | None = None


class DeadLetters:
    """One connection's dead letters: asks the strategy, makes the copies, counts what a discarding strategy drops."""

    def __init__(self, strategy: DeadLetterStrategy, lines: Lines) -> None:
        self._strategy = strategy
        self._lines = lines
        self.dropped = 0

    def decide(self, order: Poison, capabilities: Capabilities, now: datetime) -> Verdict:
        """What becomes of one poisoned or expired delivery; ``now``: of the wall clock, aware.

        Raises:
            MessageFormatError: its body cannot be read, so that no copy can be made.
        """
        delivery = order.delivery
        origin = delivery.header("destination")
        decision = self._strategy.decide(
            origin,
            persistent=delivery.header("persistent"),
            expired=order.expired,
            native_available=capabilities.native_poison,
            native_possible=capabilities.poison_by_broker,
        )
        match decision:
            case Native():
                dead_lettered(order, "the broker's dead-letter queue", self._lines)
                return Verdict()
            case Drop(reason, discarded, interval):
                self._dropped(discarded, interval)
                dropped(order, logging.INFO if discarded else logging.WARNING, reason, self._lines)
                return Verdict(drop=True)
            case CopyTo():
                dead_lettered(order, shown_destination(decision.destination), self._lines)
                return Verdict(copy=_copy(delivery, order.cause, decision, now))

    def _dropped(self, discarded: bool, interval: int) -> None:
        if discarded:
            self.dropped += 1
            if interval and self.dropped % interval == 0:
                log.warning("%d messages dropped so far by the discarding dead-letter strategy", self.dropped)


def _copy(delivery: Delivery, cause: str, decision: CopyTo, now: datetime) -> Message:
    """The dead letter: body, application's properties and headers as they were; persistent; says where from and why."""
    original = Message.received(delivery, delivery.redeliveries, None)
    try:
        copy = original.copy()
    except MessageFormatError as error:
        raise MessageFormatError(f"no copy can be made of a message that cannot be read: {error}") from error
    copy.properties = copy_properties(
        original.properties,
        dead_letter_properties(
            cause,
            delivery.header("destination"),
            delivery.expires_at(),
            # of its last delivery: a failed one has been counted as the redelivery that will not be, and one that is
            # refused before it is shown (expired, or over its limit) is not a delivery; 0 where it had none
            original.delivery_count - 1,
            persistent=original.persistent,
        ),
    )
    expires = None if not decision.expiration else now + timedelta(seconds=decision.expiration)
    copy.stamp(
        destination=decision.destination,
        persistent=True,
        priority=original.priority,
        timestamp=original.timestamp or now.replace(microsecond=now.microsecond // 1000 * 1000),
        expiration=expires,
        delivery_time=None,
        message_id=None,
    )
    return copy
