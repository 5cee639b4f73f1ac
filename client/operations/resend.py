"""Sends that survive a loss: those of `deduplicate_sends`, and those that waited for a connection.

With `deduplicate_sends` each has an id by which the broker drops a second one. What the broker has answered is done.
What it has not is sent again on the next connection, in its first order, so that the application sees no more of the
loss than a wait. A transaction that has received is not repeated: what it received is redelivered.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from redelivery.client.session.state import SessionState
from redelivery.model.capabilities import Capabilities
from redelivery.model.errors import ConnectionLostError, JMSError, ResourceAllocationError
from redelivery.model.events import Sent
from redelivery.model.messages import Message
from redelivery.model.modes import AckMode
from redelivery.transports.finding import found
from redelivery.transports.flows import NotSent
from redelivery.transports.seam import Flow, Pending

_OURS: Final = "redelivery-"  # what the ids begin with


def unanswered(s: SessionState) -> Iterator[tuple[Message, Pending | None]]:
    """The sends that the lost connection has not answered, in order; of a transaction the commit is the answer."""
    if s.mode == AckMode.TRANSACTED:
        yield from ((each, None) for each in s.sent)
        return
    for each in s.unanswered:
        if isinstance(each, Repeatable) and not each.done and each.message is not None:
            yield each.message, each


def send_again(s: SessionState) -> Flow[None]:
    """Send again what the lost connection has not answered; an interrupt may come between two of them."""
    while s.epoch.again:
        message, pending = s.epoch.again[0]
        yield from found(s.epoch.channel.finder, message.destination)
        s.epoch.again.popleft()
        if isinstance(pending, Repeatable):
            pending.leaves(message)
        s.epoch.channel.send(message, transacted=pending is None, pending=pending, batched=pending is not None)
        yield from _await_room(s)


def _await_room(s: SessionState) -> Flow[None]:
    if s.epoch.channel.congested:
        with suppress(ResourceAllocationError):  # of what was sent last, whose answer says so
            yield from s.epoch.channel.room()


def send_deferred(s: SessionState) -> Flow[None]:
    """Send what was to be sent while there was no connection, in its order."""
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
        yield from _await_room(s)


def away(timeout: float | None, lost: JMSError | None) -> str:
    """Why something was not sent, where the connection was away for too long."""
    return f"the connection was not there again within {timeout:g} s: {lost}"


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

    __slots__ = ("_session", "_waiting", "deferred", "left", "message")

    def __init__(self, session: SessionState) -> None:
        super().__init__()
        self._session = session
        self._waiting: list[Message] = []  # taken out in one step: the thread that ends it is another's
        self.deferred = False
        self.left = True
        self.message: Message | None = None

    def another(self) -> Deferrable:
        """See Pending."""
        return Deferrable(self._session)

    @property
    def waits(self) -> bool:
        """True: it is to leave with the next connection."""
        return bool(self._waiting) and not self.done

    def defer(self, message: Message) -> None:
        """Let the message leave with the next connection."""
        self.deferred, self.left = True, False
        self._waiting.append(message)

    def leave(self) -> Message | None:
        """Take the message to be sent now; None: there is none any more."""
        try:
            message = self._waiting.pop()
        except IndexError:
            return None
        self.left = True
        return message

    def expire(self, error: ConnectionLostError) -> None:
        """Fail where it waits still, as its time is over."""
        with suppress(IndexError):
            self._waiting.pop()
            super().fail(error)

    def fail(self, error: JMSError) -> None:
        """See Pending; to one that waits a loss is nothing new, while there will be another connection."""
        if isinstance(error, NotSent) and self.message is not None and not self._waiting and self._session.comes_back:
            self.defer(self.message)
        elif not (self._waiting and isinstance(error, ConnectionLostError) and self._session.comes_back):
            super().fail(error)


class Repeatable(Pending):
    """The answer to an asynchronous send, which a loss does not end while there will be another connection.

    ``message``: what is sent again; None before it has left.
    """

    __slots__ = ("_left", "_session", "message")

    def __init__(self, session: SessionState) -> None:
        super().__init__()
        self.message: Message | None = None
        self._left = 0.0
        self._session = session

    def leaves(self, message: Message) -> None:
        """Note what leaves now, also once more; the answer may come at the same time, from another thread."""
        self._left = self._session.now()
        self.message = message

    def complete(self, value: object = None, error: JMSError | None = None) -> None:
        """See Pending."""
        if error is None and not self.done and self.message is not None:
            self._session.storing.took(self._session.now() - self._left)
        super().complete(value, error)

    def fail(self, error: JMSError) -> None:
        """See Pending."""
        if not isinstance(error, ConnectionLostError) or not self._session.comes_back:
            super().fail(error)
