"""Logs messages: one line each, with the ids that an operator looks for; never a body, never a secret.

Every line carries what it says as attributes of its record too (``extra``): ``message_id``, ``destination``,
``delivery_count`` and ``cause``, for a formatter that writes JSON.

What fails a thousand times a minute does not fill the disk: `Lines` says which line of a kind is logged as what.

There are three loggers that a program may set by name: what happens to messages, what workers do, and connections. A
failure is one line: INFO where the message is redelivered, and DEBUG has the traceback; WARNING where it is for the
last time; ERROR, with the traceback, where it has become a dead letter.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Final

from redelivery.client.ledger import Poison, Received
from redelivery.client.ledger.redelivery import is_exceeded, limit
from redelivery.model.destinations import Destination, Topic
from redelivery.model.errors import ConnectionLostError, InDoubtError, JMSError, MessageFormatError
from redelivery.model.messages import Message
from redelivery.policies.activemq.causes import describe_cause
from redelivery.policies.redelivery import NO_LIMIT
from redelivery.transports.delivery import Delivery
from redelivery.transports.wire.clock import monotonic

MESSAGES: Final = "redelivery.messages"
WORKERS: Final = "redelivery.worker"
CONNECTIONS: Final = "redelivery.connection"
log = logging.getLogger(MESSAGES)
_NO_CAUSE: Final = "no cause given: rollback(cause=error)"
_MOST: Final = 20  # lines of one rollback
_LONGEST: Final = 200  # characters of an application's exception in a line
FIRST: Final = 20  # lines of one kind that are logged as they come, in `WINDOW`
WINDOW: Final = 60.0  # seconds
_KINDS: Final = 1000  # that are counted at the same time
_GIVEN_UP: Final = "] given up: "  # and why, in a cause: `redelivery.policies.activemq.causes`
_UNSEEN: Final = ("Dispatch[", "listener dispatch[")  # how a cause begins of what was refused before it was shown


class Lines:
    """Of one connection or container: how many lines of each kind there were of late. Any thread may ask."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._kinds: dict[str, _Kind] = {}

    def level(self, level: int, kind: str) -> int:
        """The level to log a line at: ``level``, or DEBUG after the first ones of its kind.

        How many those were is logged once a minute, as long as there are more lines, and by `end`.
        """
        with self._lock:
            now = self._clock()
            ended = self._ended(now)
            found = self._kinds.setdefault(kind, _Kind(level, now))
            found.lines += 1
            limited = found.lines > FIRST
        _summarize(ended, now)
        return logging.DEBUG if limited else level

    def _ended(self, now: float) -> list[tuple[str, _Kind]]:
        """The kinds whose minute is over, which are counted no more."""
        oldest = next(iter(self._kinds.values()), None)
        if oldest is None or (now - oldest.began < WINDOW and len(self._kinds) < _KINDS):
            return []
        expired = [each for each, found in self._kinds.items() if now - found.began >= WINDOW] or list(self._kinds)
        return [(each, self._kinds.pop(each)) for each in expired]

    def end(self) -> None:
        """There are no more lines."""
        with self._lock:
            ended, self._kinds = list(self._kinds.items()), {}
        _summarize(ended, self._clock())


class _Kind:
    __slots__ = ("began", "level", "lines")

    def __init__(self, level: int, began: float) -> None:
        self.level = level
        self.began = began
        self.lines = 0


def _summarize(ended: Sequence[tuple[str, _Kind]], now: float) -> None:
    for name, kind in ended:
        if kind.lines > FIRST:
            log.log(kind.level, "%s: … %s more in the last %.0f s", name, f"{kind.lines - FIRST:,}", now - kind.began)


def says_redelivered() -> bool:
    """Check whether anybody reads what `say_redelivered` logs."""
    return log.isEnabledFor(logging.WARNING)


def say_redelivered(again: Sequence[tuple[Received, float]], lines: Lines) -> None:
    """Log which redelivery comes when, in so many seconds; at WARNING the last one that the policy allows."""
    for delivery, wait in again[:_MOST]:
        policy, redelivered = limit(delivery, delivery.link.consumer)
        last = is_exceeded(policy, redelivered + 1, delivery)
        number = count_of(delivery) - 1
        of = "" if policy.maximum_redeliveries == NO_LIMIT else f" of {policy.maximum_redeliveries}"
        why, kind = short_cause(delivery.cause), f"redeliveries of {_place(delivery)}"
        log.log(
            lines.level(logging.WARNING, f"last {kind}") if last else lines.level(logging.INFO, kind),
            "%s: redelivery %d%s in %.3g s: %s",
            name_of(delivery),
            number,
            of,
            wait,
            why,
            extra=facts(delivery, number, why),
        )
        if (failure := traceback_of(delivery.cause)) is not None:
            log.debug("%s: how it failed", name_of(delivery), exc_info=failure)
    if len(again) > _MOST:
        log.info("and %d more of the same rollback", len(again) - _MOST)


def dead_lettered(order: Poison, where: object, lines: Lines) -> None:
    """Log that a message has become a dead letter: after how many deliveries, why, and where it is.

    At ERROR, with the traceback; at WARNING where it has expired, which is nobody's failure.
    """
    count, why = reason(order)
    level, kind = (logging.WARNING, "expired") if order.expired else (logging.ERROR, "dead letters")
    log.log(
        lines.level(level, f"{kind} of {_place(order.delivery)}"),
        "%s: dead-lettered %s (to %s)",
        name_of(order.delivery),
        why,
        where,
        exc_info=None if order.expired else traceback_of(order.delivery.cause),
        extra=facts(order.delivery, count, why),
    )


def dropped(order: Poison, level: int, why_dropped: str, lines: Lines) -> None:
    """Log that a message was dropped instead of being dead-lettered."""
    count, why = reason(order)
    log.log(
        lines.level(level, f"dropped messages of {_place(order.delivery)}"),
        "%s: dropped %s (%s)",
        name_of(order.delivery),
        why,
        why_dropped,
        extra=facts(order.delivery, count, why),
    )


def not_dead_lettered(order: Poison, what: str, where: str | None, news: str, lines: Lines, error: JMSError) -> None:
    """Log that a message was not ``what`` it was to be, dead-lettered or dropped; ``news``: why, and what comes next.

    At ERROR, as somebody must help; at WARNING where the connection was lost meanwhile.
    """
    count, why = reason(order)
    lost = isinstance(error, ConnectionLostError)
    log.log(
        lines.level(logging.WARNING if lost else logging.ERROR, f"failed dead letters of {_place(order.delivery)}"),
        "%s: %s %s %s%s: %s",
        name_of(order.delivery),
        "perhaps not" if lost or isinstance(error, InDoubtError) else "not",
        what,
        why,
        "" if where is None else f" (to {where})",
        news,
        extra=facts(order.delivery, count, why),
    )


def say_dropped_by_handler(message: Message, why: str, lines: Lines) -> None:
    """Log at INFO that its handler has dropped it."""
    _say_message(message, "dropped by their handler", "dropped by its handler", why, lines)


def say_deferred(message: Message, why: str, lines: Lines) -> None:
    """Log at INFO that it has failed, which is not counted, and is tried again when others have been."""
    _say_message(message, "set aside", "set aside, uncounted, and others are tried first", why, lines)


def _say_message(message: Message, kind: str, what: str, why: str, lines: Lines) -> None:
    """At INFO: ``kind`` of all such messages of a destination, ``what`` of this one."""
    where = shown_destination(message.destination)
    log.log(
        lines.level(logging.INFO, f"messages of {where} {kind}"),
        "%s %s: %s: %s",
        where,
        message.message_id,
        what,
        why,
        extra=message_facts(message, why),
    )


def traceback_of(cause: BaseException | None) -> BaseException | None:
    """The cause, to be logged with its traceback; None: that says nothing, as the handler has decided it itself."""
    return None if cause is None or cause.__traceback__ is None or _is_decision(cause) else cause


def _is_decision(cause: BaseException | None) -> bool:
    """Check for `Retry`, `DeadLetter` or `Drop`."""
    return getattr(cause, "decided", False) is True


def reason(order: Poison) -> tuple[int, str]:
    """The count of its last delivery, and ``after 4 deliveries (limit 3): ValueError: bad order``."""
    delivery = order.delivery
    if order.expired:
        return count_of(delivery), "as it has expired"
    count = count_of(delivery)
    most = delivery.link.consumer.policy(delivery).maximum_redeliveries
    if order.cause.startswith(_UNSEEN) and not delivery.earlier:
        return count, f"unseen: the broker counts {count} deliveries (limit {most})"
    count -= 1  # the one that will not be has been counted
    deliveries = "delivery" if count == 1 else "deliveries"
    given_up = order.cause.partition(_GIVEN_UP)[2].partition(", cause:")[0]
    ruled = f"limit {most}" if not given_up or _is_decision(delivery.cause) else given_up
    return count, f"after {count} {deliveries} ({ruled}): {short_cause(delivery.cause)}"


def short_cause(cause: BaseException | None) -> str:
    """``ValueError: bad order``, cut; what to do where the application gave none."""
    if cause is None:
        return _NO_CAUSE
    text = describe_cause(f"{type(cause).__name__}: {cause}" if _is_decision(cause) else cause)
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def name_of(delivery: Delivery) -> str:
    """``orders ID:…``, or ``topic://news ID:…``."""
    identifier, place = _read(delivery, "message_id"), _place(delivery)
    return f"{place} {identifier}" if identifier else place


def shown_destination(destination: object) -> str:
    """A queue by its name alone, anything else with its scheme."""
    if isinstance(destination, Destination) and not isinstance(destination, Topic):
        return destination.name
    return str(destination)


def facts(delivery: Delivery, count: int, cause: str) -> dict[str, object]:
    """The attributes of a record."""
    return {
        "message_id": _read(delivery, "message_id"),
        "destination": str(_read(delivery, "destination")),
        "delivery_count": count,
        "cause": cause,
    }


def message_facts(message: Message, cause: str) -> dict[str, object]:
    """The same, of a message as the application has it."""
    return {
        "message_id": _attribute(message, "message_id"),
        "destination": str(_attribute(message, "destination")),
        "delivery_count": message.delivery_count,
        "cause": cause,
    }


def count_of(delivery: Delivery) -> int:
    """JMSXDeliveryCount of the delivery that the application has, or would have next."""
    return delivery.wire_count() + delivery.redeliveries


def _place(delivery: Delivery) -> str:
    return shown_destination(_read(delivery, "destination"))


def _attribute(message: Message, name: str) -> object:
    try:
        return getattr(message, name)
    except MessageFormatError:
        return None


def _read(delivery: Delivery, name: str) -> object:
    try:
        return delivery.header(name)
    except MessageFormatError:
        return None
