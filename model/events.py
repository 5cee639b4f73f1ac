"""Events of messages, transactions and connections, as an ``observer`` is given them.

``redelivery.connect(url, observer=f)`` calls ``f(event)`` with each event, in the order of its session, in the step in
which it happened. An event is immutable. One about a message reads the message's id and destination when they are asked
for; as long as the event is kept, the message is.

A message's life: Delivered, then Acknowledged, RolledBack (it is delivered again, later), Released (as if it had not
been delivered), or DeadLettered or Discarded, an expired one after Expired. Names and fields are stable; others may be
added.

``EmbeddedBroker(observer=f)`` is notified of what the broker does, one life for each copy that it holds: Enqueued,
Dispatched, then Acknowledged or Released (it waits again), and DeadLettered, Discarded, Expired and Committed as above.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import ParamSpec, TypeAlias, TypeVar

from redelivery.model.callables import check_takes_one, deferred
from redelivery.model.capabilities import ConnectionMetaData
from redelivery.model.destinations import Destination
from redelivery.model.errors import ConfigError, InDoubtError, JMSError, MessageFormatError
from redelivery.model.messages import Message, MessageSource

log = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, init=False)
class MessageEvent:
    """One message of a session, or of a broker.

    ``session``: a number that no other session of this process has; 0 in a broker's events.
    ``source``: where the rest is read from; not part of what is stable.
    ``delivery_count``: of the delivery that it is about (JMSXDeliveryCount): 1 for the first.
    """

    session: int
    source: MessageSource = field(repr=False, compare=False)
    delivery_count: int

    def __init__(self, session: int, source: MessageSource, delivery_count: int) -> None:
        # what a dataclass makes of `frozen` takes half as long again, and each message that is received has two events
        _set_session(self, session)
        _set_source(self, source)
        _set_count(self, delivery_count)

    @property
    def message_id(self) -> str | None:
        """JMSMessageID; None where there is none, or where the message cannot be read."""
        identifier = _read(self.source, "message_id")
        return identifier if isinstance(identifier, str) else None

    @property
    def destination(self) -> Destination | None:
        """JMSDestination: the message's own queue or topic, also where the consumer's is a pattern."""
        destination = _read(self.source, "destination")
        return destination if isinstance(destination, Destination) else None

    @property
    def subscription(self) -> str | None:
        """The name of the subscription that its consumer has; None where that has none, and in a broker's events."""
        found: str | None = getattr(self.source, "subscription_name", None)
        return found


_set_session, _set_source, _set_count = (
    vars(MessageEvent)[name].__set__ for name in ("session", "source", "delivery_count")
)


@dataclass(frozen=True, slots=True)
class Enqueued(MessageEvent):
    """A broker has put it on a queue, or has it for one subscriber of its topic; a delayed one when it is due.

    ``delivery_count``, here: 0.
    """


@dataclass(frozen=True, slots=True)
class Dispatched(MessageEvent):
    """A broker has given it to a consumer, whose window it fills; the application may not have it yet."""


@dataclass(frozen=True, slots=True, init=False)
class Delivered(MessageEvent):
    """The application has it now, or its listener is about to be called."""


@dataclass(frozen=True, slots=True, init=False)
class Acknowledged(MessageEvent):
    """The message is consumed: acknowledged by itself, by its session, or by a commit (then before Committed)."""


@dataclass(frozen=True, slots=True)
class AcknowledgedTooLate(MessageEvent):
    """The application acknowledged it after the connection that had brought it was lost: it is redelivered."""


@dataclass(frozen=True, slots=True)
class Released(MessageEvent):
    """The application has not got it, or not kept it: it is delivered again, as if this had not been.

    A call that was interrupted or cancelled, a ``receive_body`` that did not fit, or a session or consumer that was
    closed with it. In a broker's events: it waits again, whether its next delivery counts as another or not.
    """


@dataclass(frozen=True, slots=True)
class RolledBack(MessageEvent):
    """A rollback, a recover or a listener that raised: it is delivered again, not before ``again_at``.

    ``cause``: the exception, if one was given.
    """

    cause: BaseException | None
    again_at: datetime


@dataclass(frozen=True, slots=True)
class NearReturnLimit(MessageEvent):
    """The broker gives it up when it has gone back to its queue more than ``limit`` times, which is soon.

    Once for a message. It was prefetched; the application may not have it yet. ``then``: what the broker does, as the
    log says it.
    """

    limit: int
    then: str


@dataclass(frozen=True, slots=True)
class Expired(MessageEvent):
    """The message's time to live was over before it was delivered; it is dead-lettered or discarded next.

    ``delivery_count``, here and in what follows: of its last delivery, 0 where it had none.
    """


@dataclass(frozen=True, slots=True)
class DeadLettered(MessageEvent):
    """The message is a dead letter now.

    ``cause``: the exception of its last failure, if the application gave one. ``reason``: what the dead letter says.
    ``dead_letter_destination``: where its copy is; None where the broker has been asked to move it.
    """

    cause: BaseException | None
    reason: str
    dead_letter_destination: Destination | None


@dataclass(frozen=True, slots=True)
class Discarded(MessageEvent):
    """The message was discarded: the strategy drops it instead of dead-lettering it.

    ``cause``, ``reason``: as in DeadLettered.
    """

    cause: BaseException | None
    reason: str


@dataclass(frozen=True, slots=True)
class Sent:
    """A message has been sent, by a ``session``.

    ``confirmed``: the broker has said that it has it. False: it is written; what happens to it the commit says, or the
    future of an asynchronous send, and nothing where it is not persistent.
    """

    session: int
    message: Message
    confirmed: bool


@dataclass(frozen=True, slots=True)
class Committed:
    """A transaction of ``session``, with so many messages ``sent`` and ``received``, is committed."""

    session: int
    sent: int
    received: int


@dataclass(frozen=True, slots=True)
class InDoubt:
    """The answer to a commit, an acknowledgement or a confirmed send did not come: it may or may not have happened.

    ``session``: whose. ``sent``, ``received``: the messages concerned. ``error``: what the call raises.
    """

    session: int
    sent: tuple[Message, ...]
    received: tuple[Message, ...]
    error: InDoubtError


@dataclass(frozen=True, slots=True)
class ConsumerEnded:
    """The broker has ended a consumer; what it had delivered goes back to the broker.

    ``session``, ``destination``: whose. ``error``: the broker's words.
    """

    session: int
    destination: Destination
    error: JMSError


@dataclass(frozen=True, slots=True)
class Connected:
    """A connection is there: ``url`` as it was given, the password masked; ``metadata``: which broker it is."""

    url: str
    metadata: ConnectionMetaData


@dataclass(frozen=True, slots=True)
class ConnectionLost:
    """A connection is gone, noticed at ``at``; what was not acknowledged goes back to the broker.

    The sessions know before the observer does: no call that begins then returns what had been prefetched.
    ``url``: of the broker, the password masked. ``error``: why. ``planned``: it was left, to move to a priority broker
    that has answered.
    """

    url: str
    error: JMSError
    at: datetime
    planned: bool = False


@dataclass(frozen=True, slots=True)
class ReconnectFailed:
    """No broker of the list answered in the ``attempt``-th round; the next one is at ``again_at``, None for none.

    ``url``: of the broker that was tried last, the password masked. ``error``: its answer, or that there was none.
    """

    url: str
    error: JMSError
    attempt: int
    again_at: datetime | None


@dataclass(frozen=True, slots=True)
class Reconnected:
    """The connection is there again since ``at``: to the broker of ``url`` and ``metadata``, consumers and all."""

    url: str
    metadata: ConnectionMetaData
    at: datetime


@dataclass(frozen=True, slots=True)
class ConnectionClosed:
    """A connection, to ``url``, was closed by the application."""

    url: str


Event: TypeAlias = (
    Enqueued
    | Dispatched
    | Delivered
    | Acknowledged
    | AcknowledgedTooLate
    | Released
    | RolledBack
    | NearReturnLimit
    | Expired
    | DeadLettered
    | Discarded
    | Sent
    | Committed
    | InDoubt
    | ConsumerEnded
    | Connected
    | ConnectionLost
    | ReconnectFailed
    | Reconnected
    | ConnectionClosed
)
Observer: TypeAlias = Callable[[Event], object]


class GuardedObserver:
    """Calls an observer; what it raises reaches nobody, and is logged once.

    Raises:
        ConfigError: it cannot be called, or is a coroutine function, which nobody would await.
    """

    def __init__(self, observer: Observer) -> None:
        if not callable(observer):
            raise ConfigError(f"observer must be callable, not a {type(observer).__name__}: it is called with an event")
        kind = deferred(observer)
        if kind is not None:
            raise ConfigError(f"observer must be a plain function, not {kind}: it is not awaited")
        check_takes_one(observer, "observer", "an event", "; is it to be called, as redelivery.otel.observer()?")
        self._observer = observer
        self._failed = False

    def notify(self, event: Event) -> None:
        """Give it one event."""
        try:
            self._observer(event)
        except Exception:  # noqa: BLE001  # a guard of application code: its failure must not end what it looks at
            self._complain()

    def ask(self, question: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """``question(…)``, which is the observer's; None where it raised."""
        try:
            return question(*args, **kwargs)
        except Exception:  # noqa: BLE001  # as above
            self._complain()
            return None

    def _complain(self) -> None:
        if not self._failed:
            self._failed = True
            log.exception("the observer raised; it is called further on, and further failures are not logged")


def _read(source: MessageSource, name: str) -> object:
    try:
        return source.header(name)
    except MessageFormatError:
        return None
