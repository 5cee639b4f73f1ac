"""What a session does when its connection was lost and another one comes: a channel, and its consumers by new links.

Sends can survive that (`deduplicate_sends`): each has an id by which the broker drops a second one. What the broker has
answered is done. What it has not is sent again on the next connection, in its first order, so that the application sees
no more of the loss than a wait. A transaction that has received is not repeated: what it received is redelivered.
"""

from __future__ import annotations

import logging
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Final

from redelivery.client.arguments import check_evaluates, check_selector
from redelivery.client.connection.channels import attach_link, begins_late, open_next
from redelivery.client.connection.lifecycle import SessionStage
from redelivery.client.connection.shared import begins_anew
from redelivery.client.ledger import ConsumerState, Detach
from redelivery.client.ledger.stages import OPEN
from redelivery.client.observing.log_lines import CONNECTIONS
from redelivery.client.state import SessionState
from redelivery.model.capabilities import Capabilities
from redelivery.model.errors import (
    ConnectError,
    ConnectionLostError,
    JMSError,
    RequestTimeoutError,
    ResourceAllocationError,
)
from redelivery.model.events import Sent
from redelivery.model.messages import Message
from redelivery.model.modes import AckMode
from redelivery.transports.finding import found
from redelivery.transports.flows import NotSent
from redelivery.transports.seam import Arrival, Flow, Parked, Pending

log = logging.getLogger(CONNECTIONS)
_NEWS: Final = 0.05  # seconds until one who has met a loss looks again for the news of it
_AGAIN: Final = 0.1  # seconds until one who could not open a socket tries again
_OURS: Final = "redelivery-"  # what the ids begin with


def await_return(s: SessionState, deadline: float | None = None, consumer: ConsumerState | None = None) -> Flow[bool]:
    """Done when the session has its channel and consumers on a connection.

    False: at ``deadline``, or once the session closes, or the ``consumer`` that waits.

    Raises:
        ConnectionLostError: there will be no other connection.
        JMSError: the other broker refuses the session.
    """
    while s.epoch.lost is not None:
        s.take_in()  # whatever woke the caller before it came here may have been the news
        until = deadline
        if s.epoch.successor is not None:
            if (yield from _reattached(s)):
                continue
            until = s.now() + _AGAIN if deadline is None else min(deadline, s.now() + _AGAIN)
        _check_hope(s)
        closed = s.closing or (consumer is not None and consumer.stage is not OPEN)
        if closed or (deadline is not None and s.now() >= deadline):
            return False
        yield Parked(until)
    return True


def await_return_for(s: SessionState, action: str, deadline: float) -> Flow[None]:
    """`await_return` for a call of its own: ``action`` is its name.

    Raises:
        RequestTimeoutError: it is not there at ``deadline``.
        IllegalStateError: the session closes.
        ConnectionLostError, JMSError: as there.
    """
    while not (yield from await_return(s, deadline)):
        if s.life.ended:
            raise s.life.problem(action)
        raise RequestTimeoutError(
            f"{action}: the connection was lost, and was not there again within request_timeout="
            f"{s.options.request_timeout:g} s: {s.epoch.lost}"
        ) from s.epoch.lost


def await_loss(s: SessionState, since: int | None = None) -> Flow[None]:
    """For one who has got a ConnectionLostError: done when the session knows of the loss, which is at once.

    ``since``: the number of the epoch in which the one began who was not inside the session all the while: it may have
    come back by now.

    Raises:
        ConnectionLostError: there will be no other connection.
    """
    s.take_in()
    until = s.now() + s.options.close_timeout
    _check_hope(s)
    while s.epoch.lost is None and since in (None, s.epoch.number):
        if s.now() >= until:
            raise ConnectionLostError("the connection was lost, and nothing is known of another one")
        yield Parked(s.now() + _NEWS)
        s.take_in()
        _check_hope(s)


def arrival(s: SessionState, wish: Arrival) -> Flow[None]:
    """The wish; where the connection is lost meanwhile, done when the session knows of it.

    Raises:
        ConnectionLostError: there will be no other connection.
    """
    try:
        yield wish
    except ConnectionLostError:
        if not s.comes_back:
            raise
        yield from await_loss(s)


def reattach(s: SessionState) -> Flow[None]:
    """A channel on the connection that has come, and its consumers; nothing where that is lost meanwhile."""
    transport = s.epoch.successor
    assert transport is not None, "it has come"
    try:
        if s.epoch.transport is not transport:
            named = [each.link.spec.subscription for each in s.ledger.consumers]
            yield from open_next(s, transport, client_id=any(each is not None and each.durable for each in named))
            s.epoch.again = deque(_unanswered(s))
        yield from _send_again(s)  # an interrupt may have come between two of them
        yield from _send_deferred(s)
        for consumer in [each for each in s.ledger.consumers if not each.attached]:
            late = begins_late(consumer.link.spec) and not consumer.listening
            if (yield from _renamed(s, consumer)) and not late:
                yield from _attach(s, consumer)  # one of 0 begins with its next receive
    except ConnectionLostError:
        if s.epoch.successor is transport:
            s.epoch.successor = None  # the news of the next one comes
        return
    s.came_back()


def _unanswered(s: SessionState) -> Iterator[tuple[Message, Pending | None]]:
    """What the lost connection has not answered, in its order; of a transaction the commit is the answer."""
    if s.mode == AckMode.TRANSACTED:
        yield from ((each, None) for each in s.sent)
        return
    for each in s.unanswered:
        if isinstance(each, Repeatable) and not each.done and each.message is not None:
            yield each.message, each


def _send_again(s: SessionState) -> Flow[None]:
    while s.epoch.again:
        message, pending = s.epoch.again[0]
        yield from found(s.epoch.channel.finder, message.destination)
        s.epoch.again.popleft()
        s.epoch.channel.send(message, transacted=pending is None, pending=pending, batched=pending is not None)
        yield from _make_room(s)


def _make_room(s: SessionState) -> Flow[None]:
    if s.epoch.channel.congested:
        with suppress(ResourceAllocationError):  # of what was sent last, whose answer says so
            yield from s.epoch.channel.room()


def _send_deferred(s: SessionState) -> Flow[None]:
    """What was to be sent while there was no connection, in its order."""
    for pending in [each for each in s.unanswered if isinstance(each, Deferrable) and each.waits]:
        message = pending.leave()
        if message is None:
            continue
        try:
            s.temporaries.check(message)
            yield from found(s.epoch.channel.finder, message.destination)
            s.epoch.channel.send(message, transacted=False, pending=pending, batched=True)
        except ConnectionLostError:
            pending.defer(message)  # not all of it has left
            raise
        except JMSError as error:
            pending.fail(error)
            continue
        if s.observed is not None:
            s.observed.notify(Sent(s.number, message, confirmed=False))
        yield from _make_room(s)


def _renamed(s: SessionState, consumer: ConsumerState) -> Flow[bool]:
    """It consumes from what its temporary destination is now; False, and it has ended, where there is none."""
    link = consumer.link
    try:
        now = yield from s.temporaries.take(link.destination, s.epoch.transport, s.waiter)
    except (ConnectionLostError, RequestTimeoutError):
        raise
    except JMSError as error:
        _ended(s, consumer, error)
        return False
    link.spec = replace(link.spec, destination=now)
    return True


def _ended(s: SessionState, consumer: ConsumerState, error: JMSError) -> None:
    s.ledger.link_ended(consumer, error)
    s.report(error, deadly=consumer.listening and not begins_anew(consumer, s.options.reconnect))


def _attach(s: SessionState, consumer: ConsumerState) -> Flow[None]:
    link = consumer.link
    try:
        # it may be another broker than the one before
        check_evaluates(s.epoch.transport.peer, check_selector(link.spec.selector))
        yield from attach_link(s, link)
    except ConnectionLostError:
        raise
    except (RequestTimeoutError, GeneratorExit):
        consumer.renew()  # or interrupted: the next one is attached, and what comes of this one is nobody's
        s.ledger.orders.append(Detach(link))
        raise
    except JMSError as error:
        _ended(s, consumer, error)
        return
    consumer.attached = True


def _reattached(s: SessionState) -> Flow[bool]:
    """False: the session needs a socket of its own, and got none; as the connection may be lost again, it is no end."""
    try:
        yield from reattach(s)
    except RequestTimeoutError:
        raise  # or an interrupt: it is tried again
    except ConnectError as error:
        log.debug("a session has no connection yet: %s", error)
        return False
    except JMSError as error:
        s.step("lose", "the other broker refused the session", error)
        s.report(error, deadly=s.listener is not None)
    return True


def _check_hope(s: SessionState) -> None:
    if s.lost is not None:
        raise ConnectionLostError(f"the connection was lost: {s.lost}") from s.lost
    if s.life.stage is SessionStage.LOST:
        raise s.life.problem("reconnect")


def identify(message: Message, capabilities: Capabilities) -> None:
    """Give it an id, unless the application has given it one; a message that is sent once more gets another one."""
    name = capabilities.duplicate_id_property
    if name is not None and str(message.properties.get(name, _OURS)).startswith(_OURS):
        message.properties = {**message.properties, name: f"{_OURS}{uuid.uuid4().hex}"}


class Deferrable(Pending):
    """The answer to an asynchronous send. Where the connection is away this leaves with the next one, and once only.

    A loss after it has left ends it. ``deferred``: it has waited. ``left``: not waiting any more, it was sent.
    ``message``: what leaves with the next one where it waited for credit at the loss; None where nothing does.
    """

    __slots__ = ("_comes_back", "_waiting", "deferred", "left", "message")

    def __init__(self, comes_back: Callable[[], bool]) -> None:
        super().__init__()
        self._comes_back = comes_back
        self._waiting: list[Message] = []  # taken out in one step: the thread that ends it is another's
        self.deferred = False
        self.left = True
        self.message: Message | None = None

    @property
    def waits(self) -> bool:
        """Whether it is to leave with the next connection."""
        return bool(self._waiting) and not self.done

    def defer(self, message: Message) -> None:
        """It leaves with the next connection."""
        self.deferred, self.left = True, False
        self._waiting.append(message)

    def leave(self) -> Message | None:
        """What is to be sent now; None: nothing any more."""
        try:
            message = self._waiting.pop()
        except IndexError:
            return None
        self.left = True
        return message

    def expire(self, error: ConnectionLostError) -> None:
        """Its time is over, where it waits still."""
        with suppress(IndexError):
            self._waiting.pop()
            super().fail(error)

    def fail(self, error: JMSError) -> None:
        """See Pending; to one that waits a loss is nothing new, while there will be another connection."""
        if isinstance(error, NotSent) and self.message is not None and not self._waiting and self._comes_back():
            self.defer(self.message)
        elif not (self._waiting and isinstance(error, ConnectionLostError) and self._comes_back()):
            super().fail(error)


class Repeatable(Pending):
    """The answer to an asynchronous send, which a loss does not end while there will be another connection.

    ``message``: what is sent again; None before it has left.
    """

    __slots__ = ("_comes_back", "message")

    def __init__(self, comes_back: Callable[[], bool]) -> None:
        super().__init__()
        self.message: Message | None = None
        self._comes_back = comes_back

    def fail(self, error: JMSError) -> None:
        """See Pending."""
        if not isinstance(error, ConnectionLostError) or not self._comes_back():
            super().fail(error)
