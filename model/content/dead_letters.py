"""`DeadLetterInfo`: reads what this library, ActiveMQ, Artemis, HornetQ and RabbitMQ write on a dead letter."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Final, Protocol, TypeGuard, runtime_checkable

from redelivery.model.content.errors import InvalidDestinationError
from redelivery.model.destinations import Destination, Queue, Topic, read_destination
from redelivery.model.passport import Passport, read_passport
from redelivery.model.values import from_epoch_ms

FAILURE_CAUSE: Final = "dlqDeliveryFailureCause"
ORIGINAL_DESTINATION: Final = "originalDestination"
ORIGINAL_EXPIRATION: Final = "originalExpiration"
ORIGINAL_DELIVERY_MODE: Final = "originalDeliveryMode"
DELIVERY_COUNT: Final = "dlqDeliveryCount"
FAILED_AT: Final = "dlqFailedAt"
PASSPORT: Final = "dlqPassport"

EXPIRED: Final = "expired"
"""RabbitMQ's cause of what has outlived its time, and ours where the broker gives none."""
_THROWABLE: Final = "java.lang.Throwable: "  # before every cause of a Java client
_EXPIRED: Final = "Message Expired"
_NUMBERED: Final = re.compile(r"(?:Delivery|[Dd]ispatch)\[(\d{1,9})\]")
_EXCEPTION: Final = ", cause:"
# Classic, in the property of a dead letter over STOMP
_STOMP_DESTINATION: Final = "original-destination"
# Artemis over STOMP and AMQP, HornetQ: the address, whether it is a queue's, and when it expired
_ADDRESSES: Final = ("_AMQ_ORIG_ADDRESS", "x-opt-ORIG-ADDRESS", "_HQ_ORIG_ADDRESS")
_ROUTING: Final = ("_AMQ_ORIG_ROUTING_TYPE", "x-opt-ORIG-ROUTING-TYPE")
_MULTICAST: Final = ("0", 0)
_EXPIRIES: Final = ("_AMQ_ACTUAL_EXPIRY", "x-opt-ACTUAL-EXPIRY", "_HQ_ACTUAL_EXPIRY")
# RabbitMQ over STOMP, and 4 over AMQP; the plug-in for AMQP 1.0 of 3 shows none of it
_FIRST_QUEUE: Final = "x-first-death-queue"
_REASONS: Final = ("x-last-death-reason", "x-first-death-reason")  # of a letter that has been on several queues
_DEATHS: Final = "x-opt-deaths"  # RabbitMQ 4 over AMQP: a list with a map for each queue and reason
_PREFIXES: Final[tuple[tuple[str, type[Destination]], ...]] = (
    ("/queue/", Queue),
    ("/topic/", Topic),
    ("jms.queue.", Queue),
    ("jms.topic.", Topic),
)


@dataclass(frozen=True, slots=True)
class DeadLetterInfo:
    """The facts that a message on a dead-letter queue has on it: `Message.dead_letter`. None where it does not say.

    ``origin``: where it was consumed from, or expired.
    ``cause``: why it is here, in the words of the client or broker that dead-lettered it.
    ``exception``: of the cause, the application's exception: ``ValueError: bad order``.
    ``count``: of its last delivery, 1 where it failed at its first.
    ``at``: when it became a dead letter: known of this library's copies, and of what expired on Artemis or HornetQ.
    ``expired``: whether it outlived its time instead of failing.
    ``passport``: what this library has written on its copy beside that; None: there is none that can be read.
    """

    origin: Destination | None
    cause: str | None = None
    exception: str | None = None
    count: int | None = None
    at: datetime | None = None
    expired: bool = False
    passport: Passport | None = None


@runtime_checkable
class Noting(Protocol):
    """A source that knows more of a message than its body, properties and headers."""

    def noted(self) -> Mapping[str, object]:
        """The broker's own notes on it beside the application's properties. Raises MessageFormatError."""

    def consumed_from(self) -> Destination:
        """The queue or topic that it was received from."""


def read_dead_letter(
    properties: Mapping[str, object], source: object, sent_to: Callable[[], Destination | None]
) -> DeadLetterInfo | None:
    """The facts of a dead letter; None where nothing says that the received message is one.

    ``source``: what it is read from, asked where it is `Noting`. ``sent_to``: reads its header ``destination``. Over
    AMQP it names the origin still, where a broker adds nothing.
    """
    said: Mapping[str, object] = {**source.noted(), **properties} if _is_noting(source) else properties
    origin = _origin(said)
    if origin is None and FAILURE_CAUSE not in said:
        origin = _by_address(source, sent_to)
        if origin is None:
            return None
    if origin is not None and "," in origin.name and FAILURE_CAUSE not in said and not _is_dead_letter_queue(source):
        return None  # a copy that was sent to a composite destination, which Classic says in the same place
    cause = _text(said, FAILURE_CAUSE, *_REASONS)
    if cause is not None:
        cause = cause.removeprefix(_THROWABLE)
    expiry = _number(_first(said, _EXPIRIES))
    at = _number(said.get(FAILED_AT)) or expiry or _last_death(said)
    return DeadLetterInfo(
        origin=origin,
        cause=cause,
        exception=_exception(cause),
        count=_count(said, cause),
        at=from_epoch_ms(at) if at else None,
        expired=bool(expiry) or cause == EXPIRED or (cause or "").startswith(_EXPIRED),
        passport=read_passport(said.get(PASSPORT)),
    )


def _is_noting(source: object) -> TypeGuard[Noting]:
    return _are_noting(type(source))  # type: ignore[arg-type]  # mypy takes the hash of its objects for its own


@lru_cache(maxsize=100)
def _are_noting(kind: type) -> bool:
    return issubclass(kind, Noting)  # which takes longer than all else that a letter is asked


def _origin(said: Mapping[str, object]) -> Destination | None:
    text = _text(said, ORIGINAL_DESTINATION, _STOMP_DESTINATION, *_ADDRESSES)
    try:
        if text:
            for prefix, kind in _PREFIXES:
                if text.startswith(prefix) and len(text) > len(prefix):
                    return kind(text.removeprefix(prefix))
            if "://" not in text and _first(said, _ROUTING) in _MULTICAST:
                return Topic(text)
            return read_destination(text.removeprefix("temp-"))
        queue = _text(said, _FIRST_QUEUE)
        return Queue(queue) if queue else None
    except InvalidDestinationError:
        return None


def _by_address(source: object, header: Callable[[], Destination | None]) -> Destination | None:
    """Classic over AMQP moves a rejected message as it is: only the address in it differs from the queue's."""
    if not _is_noting(source) or (sent_to := header()) is None:
        return None
    here = source.consumed_from()
    return sent_to if _is_dead_letter_queue(source) and sent_to.name != here.name and not here.is_pattern else None


def _is_dead_letter_queue(source: object) -> bool:
    return _is_noting(source) and "DLQ" in source.consumed_from().name.upper()


def _exception(cause: str | None) -> str | None:
    if cause is None or _EXCEPTION not in cause:
        return None
    text = cause.partition(_EXCEPTION)[2].strip().removeprefix(_THROWABLE)
    return None if text in ("", "null") else text


def _count(said: Mapping[str, object], cause: str | None) -> int | None:
    count = _number(said.get(DELIVERY_COUNT))
    if count is not None:
        return count
    numbered = _NUMBERED.search(cause or "")
    return int(numbered[1]) if numbered else None


def _last_death(said: Mapping[str, object]) -> int | None:
    deaths = said.get(_DEATHS)
    times = [each.get("last-time") for each in deaths if isinstance(each, dict)] if isinstance(deaths, list) else []
    return max((time for time in times if isinstance(time, int)), default=None)


def _first(said: Mapping[str, object], names: tuple[str, ...]) -> object:
    for name in names:
        if name in said:
            return said[name]
    return None


def _text(said: Mapping[str, object], *names: str) -> str | None:
    found = _first(said, names)
    return found if isinstance(found, str) else None


def _number(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19 else None
