"""From a poisoned delivery to what the transport is asked: the broker's own way, a copy, or nothing but an ack."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast

from redelivery.client.ledger import Poison
from redelivery.client.observing.log_lines import Lines, dead_lettered, dropped, not_dead_lettered, shown_destination
from redelivery.model.capabilities import Capabilities
from redelivery.model.destinations import Destination
from redelivery.model.errors import JMSError, MessageFormatError
from redelivery.model.messages import Message
from redelivery.model.times import to_epoch_ms
from redelivery.policies.dead_letter_headers import copy_properties, dead_letter_properties
from redelivery.policies.dead_letters import CopyTo, DeadLetterStrategy, Decision, Drop
from redelivery.transports.seam import Delivery

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do: drop it, send ``copy`` and acknowledge, or (neither) leave it to the broker."""

    decision: Decision
    copy: Message | None = None

    @property
    def drop(self) -> bool:
        """Whether it is acknowledged and nothing else."""
        return isinstance(self.decision, Drop)

    @property
    def where(self) -> str:
        """Where its dead letter is, for people."""
        if isinstance(self.decision, CopyTo):
            return shown_destination(self.decision.destination)
        return "the broker's dead-letter queue"


class DeadLetters:
    """One connection's dead letters: asks the strategy, makes the copies, says what became of them.

    Nothing is said or counted before it is done: the dead-letter queue may refuse.
    """

    def __init__(self, strategy: DeadLetterStrategy, lines: Lines) -> None:
        self._strategy = strategy
        self._lines = lines
        self.dropped = 0  # by a discarding strategy

    def decide(self, order: Poison, capabilities: Capabilities, now: datetime) -> Verdict:
        """What becomes of one poisoned or expired delivery; ``now``: of the wall clock, aware.

        Raises:
            MessageFormatError: its body cannot be read, so that no copy can be made.
        """
        delivery = order.delivery
        decision = self._strategy.decide(
            cast(Destination, delivery.header("destination")),
            persistent=bool(delivery.header("persistent")),
            expired=order.expired,
            native_available=capabilities.native_poison,
            native_possible=capabilities.poison_by_broker,
        )
        copy = _copy(delivery, order.cause, decision, now) if isinstance(decision, CopyTo) else None
        return Verdict(decision, copy)

    def done(self, order: Poison, verdict: Verdict) -> None:
        """It was carried out."""
        decision = verdict.decision
        if isinstance(decision, Drop):
            self._dropped(decision)
            level = logging.INFO if decision.discarded else logging.WARNING
            dropped(order, level, decision.reason, self._lines)
        else:
            dead_lettered(order, verdict.where, self._lines)

    def failed(self, order: Poison, verdict: Verdict | None, error: JMSError, outlook: str) -> None:
        """It was not, or perhaps not; ``verdict``: None where there was none. ``outlook``: what becomes of it now."""
        what = "dropped" if verdict is not None and verdict.drop else "dead-lettered"
        where = None if verdict is None or verdict.drop else verdict.where
        not_dead_lettered(order, what, where, f"{error}; {outlook}", self._lines, error)

    def _dropped(self, decision: Drop) -> None:
        if decision.discarded:
            self.dropped += 1
            if decision.report_interval and self.dropped % decision.report_interval == 0:
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
            cast(Destination, delivery.header("destination")),
            delivery.expires_at(),
            # of its last delivery: a failed one has been counted as the redelivery that will not be, and one that is
            # refused before it is shown (expired, or over its limit) is not a delivery; 0 where it had none
            original.delivery_count - 1,
            failed_at_ms=to_epoch_ms(now),
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
