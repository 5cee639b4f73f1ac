"""From a poisoned delivery to what the transport is asked: the broker's own way, a copy, or nothing but an ack."""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeVar
from weakref import WeakSet

from redelivery.client.ledger import Ledger, Poison, Received
from redelivery.client.observing.log_lines import (
    MESSAGES,
    Lines,
    dead_lettered,
    dropped,
    not_dead_lettered,
    shown_destination,
)
from redelivery.client.observing.passports import Passports
from redelivery.model.content.bodies import RawBody, named, readable_of
from redelivery.model.content.dead_letters import FAILURE_CAUSE, ORIGINAL_DELIVERY_MODE, PASSPORT
from redelivery.model.content.headers import COPIED
from redelivery.model.destinations import Destination, Queue
from redelivery.model.errors import (
    ConnectionLostError,
    InDoubtError,
    InvalidDestinationError,
    JMSError,
    MessageFormatError,
    ResourceAllocationError,
    UnsupportedError,
)
from redelivery.model.messages import Message
from redelivery.model.passport import Passport, write_passport
from redelivery.model.values import Value, to_epoch_ms
from redelivery.policies.dead_letter_headers import copy_properties, dead_letter_properties
from redelivery.policies.dead_letters import CopyTo, Decision, Discard, Native
from redelivery.policies.destinations.strategy_map import DeadLetterStrategyMap
from redelivery.transports.seam import NO_ANSWER, Peer

log = logging.getLogger(MESSAGES)


T = TypeVar("T")
UNFIT: Final = (MessageFormatError, UnsupportedError, InvalidDestinationError)
"""What says that a message cannot be sent as it is, before anything is written."""
_NAMED: Final = 10  # of what is left out, in a cause
_ROOM: Final = (4096, 1024, 256, 64)  # bytes of a passport: the last is that of its fingerprint


@dataclass(frozen=True, slots=True)
class DeadLetterPlan:
    """The decision: drop it, send ``copy`` and acknowledge, or (neither) leave it to the broker."""

    decision: Decision
    copy: Message | None = None

    @property
    def drop(self) -> bool:
        """True: it is acknowledged and nothing else."""
        return isinstance(self.decision, Discard)

    @property
    def where(self) -> str:
        """The place of its dead letter, for people."""
        if isinstance(self.decision, CopyTo):
            return shown_destination(self.decision.destination)
        return "the broker's dead-letter queue"


class DeadLetters:
    """One connection's dead letters: asks the strategy, makes the copies, says what became of them.

    Nothing is said or counted before it is done: the dead-letter queue may refuse.
    """

    def __init__(self, strategies: DeadLetterStrategyMap, lines: Lines, passports: Passports | None) -> None:
        self._strategies = strategies
        self._lines = lines
        self._passports = passports  # None: they have none
        self.dropped = 0  # by a discarding strategy
        self._ledgers: WeakSet[Ledger] = WeakSet()  # that have had one which could not be written

    def decide(self, order: Poison, peer: Peer, now: datetime, check: Callable[[Message], None]) -> DeadLetterPlan:
        """Decide about one poisoned or expired delivery; ``now`` is the wall clock's, aware.

        ``check``: raises what keeps a message from being sent; see `Channel.check`. Raises MessageFormatError,
        UnsupportedError: no copy can be made, and the broker is not known to keep it.
        """
        delivery = order.delivery
        original = delivery.came_from()
        subscription = delivery.link.spec.subscription
        kept = isinstance(original, Queue) or (subscription is not None and subscription.durable)
        taken = kept or peer.capabilities.poison_of_topics  # by the broker, if it takes any
        decision = self._strategies.strategy_for(original).decide(
            original,
            persistent=_persistent(delivery),
            expired=order.expired,
            native_available=peer.capabilities.native_poison and taken,
            native_possible=peer.capabilities.poison_by_broker and taken,
            address=delivery.sent_to().name if peer.capabilities.addresses else None,
            broker=peer.dialect,
        )
        if not isinstance(decision, CopyTo):
            return DeadLetterPlan(decision)
        try:
            copy = _copy(delivery, order.cause, decision, now, check)
        except UNFIT:
            if not decision.or_native:
                raise
            return DeadLetterPlan(Native())
        if self._passports is not None and (passport := self._passports.of(order)) is not None:
            _add(copy, passport, check)
        return DeadLetterPlan(decision, copy)

    def done(self, order: Poison, verdict: DeadLetterPlan) -> None:
        """Note that it was carried out."""
        decision = verdict.decision
        if isinstance(decision, Discard):
            self._dropped(decision)
            level = logging.INFO if decision.discarded else logging.WARNING
            dropped(order, level, decision.reason, self._lines)
        else:
            dead_lettered(order, verdict.where, self._lines)

    def failed(self, order: Poison, verdict: DeadLetterPlan | None, error: JMSError, outlook: str) -> None:
        """Log that it was not, or perhaps not; ``verdict``: None where there was none. ``outlook``: its next end."""
        what = "dropped" if verdict is not None and verdict.drop else "dead-lettered"
        where = None if verdict is None or verdict.drop else verdict.where
        not_dead_lettered(order, what, where, f"{error}; {outlook}", self._lines, error)

    def stays(self, ledger: Ledger) -> None:
        """One of a session's could not be written, and stays with it."""
        self._ledgers.add(ledger)

    def stuck(self, destination: Destination) -> int:
        """The number of messages of a consumer's destination that cannot be dead-lettered now. Any thread may ask."""
        found = [each for ledger in list(self._ledgers) for each in list(ledger.condemned)]
        return sum(each.link.destination == destination for each in found)

    def _dropped(self, decision: Discard) -> None:
        if decision.discarded:
            self.dropped += 1
            if decision.report_interval and self.dropped % decision.report_interval == 0:
                log.warning("%d messages dropped so far by the discarding dead-letter strategy", self.dropped)


def otherwise(verdict: DeadLetterPlan, error: JMSError) -> DeadLetterPlan | None:
    """The second choice for a message whose copy the broker has refused; None: there is none.

    A broker that keeps nothing on a disk refuses what is persistent: the copy is as its original then. One that cannot
    read the copy may keep the original.
    """
    copy = verdict.copy
    if copy is None or isinstance(error, (ConnectionLostError, InDoubtError, *NO_ANSWER)):
        return None
    if isinstance(error, MessageFormatError):
        native = isinstance(verdict.decision, CopyTo) and verdict.decision.or_native
        return DeadLetterPlan(Native()) if native else None
    if copy.persistent and ORIGINAL_DELIVERY_MODE in copy.properties:
        copy.stamp(persistent=False, message_id=None)
        return verdict
    return None


def _copy(delivery: Received, cause: str, decision: CopyTo, now: datetime, check: Callable[[Message], None]) -> Message:
    """The dead letter: body, application's properties and headers as they came; persistent; says where from and why.

    What cannot be read, or not be written, is left out and named in the cause; a body that is one of these is bytes.
    """
    original = Message.received(delivery, delivery.redeliveries, None)
    if not original.carried().whole:
        raise MessageFormatError("its body did not come: the broker could not translate it, and has it still")
    copy, left_out = readable_copy(original)
    stamp = dead_letter_properties(
        cause,
        delivery.sent_to(),
        delivery.expires_at(),
        # of its last delivery: a failed one has been counted as the redelivery that will not be, and one that is
        # refused before it is shown (expired, or over its limit) is not a delivery; 0 where it had none
        original.delivery_count - 1,
        failed_at_ms=to_epoch_ms(now),
        persistent=_persistent(delivery),
    )
    expires = None if not decision.expiration else now + timedelta(seconds=decision.expiration)
    copy.stamp(
        destination=decision.destination,
        persistent=True,
        priority=_readable(lambda: original.priority, 4),
        timestamp=_readable(lambda: original.timestamp, None) or _milliseconds(now),
        expiration=expires,
        delivery_time=None,
        message_id=None,
    )
    copy.adopt(copy_properties(copy.properties, stamp))
    left_out += without_unfit(copy, check, frozenset(stamp))
    if left_out:
        named = ", ".join(left_out[:_NAMED]) + (f" and {len(left_out) - _NAMED} more" if left_out[_NAMED:] else "")
        copy.adopt({**copy.properties, FAILURE_CAUSE: f"{cause}; not in this copy: {named}"})
        check(copy)
    return copy


def _add(copy: Message, passport: Passport, check: Callable[[Message], None]) -> None:
    """Put a passport on a copy, with as much in it as there is room for beside all that the copy has."""
    properties = copy.properties
    for room in _ROOM:
        copy.adopt({**properties, PASSPORT: write_passport(passport, room)})
        try:
            check(copy)
            return
        except (*UNFIT, ResourceAllocationError):
            continue
    copy.adopt(properties)


def without_unfit(copy: Message, check: Callable[[Message], None], stamp: frozenset[str]) -> list[str]:
    """Take out of a copy what its protocol or broker cannot carry, and return how that is called.

    Raises:
        MessageFormatError, UnsupportedError: it cannot even carry what is left (see ``stamp``) with the body's bytes.
    """
    if _fits(copy, check):
        return []
    body, properties = copy.fields["body"], copy.properties
    headers = {name: copy.fields.pop(name) for name in COPIED if name in copy.fields}
    kept = {name: value for name, value in properties.items() if name in stamp}
    left_out: list[str] = []
    copy.adopt(kept)
    if not _fits(copy, check):
        copy.fields["body"] = body.data() if isinstance(body, RawBody) else body
        check(copy)
        left_out.append("the kind of its body")
    for name, value in headers.items():
        copy.fields[name] = value
        if not _fits(copy, check):
            del copy.fields[name]
            left_out.append(name)
    fit = [name for name in properties if name not in stamp and _fits_with(copy, check, kept, properties, [name])]
    left_out += [named(name) for name in properties if name not in stamp and name not in fit]
    fit.sort(key=lambda name: len(name) + len(str(properties[name])))
    most = bisect_left(range(len(fit)), True, key=lambda n: not _fits_with(copy, check, kept, properties, fit[: n + 1]))
    left_out += [named(name) for name in fit[most:]]
    copy.adopt({name: properties[name] for name in properties if name in stamp or name in fit[:most]})
    return left_out


def _fits_with(
    copy: Message,
    check: Callable[[Message], None],
    kept: Mapping[str, Value],
    properties: Mapping[str, Value],
    names: Sequence[str],
) -> bool:
    copy.adopt({**{name: properties[name] for name in names}, **kept})
    return _fits(copy, check)


def _fits(copy: Message, check: Callable[[Message], None]) -> bool:
    try:
        check(copy)
    except UNFIT:
        return False
    return True


def _persistent(delivery: Received) -> bool:
    return _readable(lambda: bool(delivery.header("persistent")), True)


def readable_copy(message: Message) -> tuple[Message, list[str]]:
    """As `Message.copy`, of a received message: without what cannot be read, and how that is called. Never raises."""
    properties, left_out = (message.properties, []) if message.source is None else readable_of(message.source)
    left_out = [*left_out, *(named(name) for name in properties if not name)]
    copy = Message()
    copy.fields["body"] = message.carried()
    for header in COPIED:
        try:
            value = getattr(message, header)
            if value is not None:
                setattr(copy, header, value)
        except (MessageFormatError, InvalidDestinationError):
            left_out.append(header)
    copy.adopt({name: value for name, value in properties.items() if name})
    return copy, left_out


def _readable(read: Callable[[], T], otherwise: T) -> T:
    try:
        return read()
    except MessageFormatError:
        return otherwise


def _milliseconds(now: datetime) -> datetime:
    return now.replace(microsecond=now.microsecond // 1000 * 1000)
