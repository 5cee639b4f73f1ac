"""Sending: the broker's answer, and what it means for the message."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from redelivery.client.operations.reattach import arrival, await_loss, connected_to_send
from redelivery.client.operations.resend import Deferrable, Repeatable
from redelivery.client.session.state import SILENCE, SessionState
from redelivery.model.errors import (
    ConnectionLostError,
    IllegalStateError,
    InDoubtError,
    JMSError,
    RequestTimeoutError,
)
from redelivery.model.events import InDoubt, Sent
from redelivery.model.messages import Message
from redelivery.transports.finding import found
from redelivery.transports.flows import NotSent
from redelivery.transports.seam import NO_ANSWER, Arrival, Flow, InterruptedWait, Pending

_MOST_WAITING: Final = 1000  # asynchronous sends of a session that wait for a connection, before a sender waits too
NOT_SENT: Final = "not sent, as "  # what the errors of sends that waited for a connection begin with
_PATIENCE: Final = 4  # times a `request_timeout` and a `heartbeat`, of which a silent broker may take one and two


def send(s: SessionState, message: Message, pending: Pending | None, *, transacted: bool) -> None:
    """Hand it to the transport, and to the open transaction; its answer is not waited for here."""
    poll_once(s)
    s.epoch.channel.send(message, transacted=transacted, pending=pending, batched=pending is not None)
    if transacted:
        s.sent.append(message)
    if s.observed is not None:
        s.observed.notify(Sent(s.number, message, confirmed=False))


def poll_once(s: SessionState) -> None:
    """Take in what the wire has brought after a silence: a loss that was there before it, or the end of an idle link by
    the broker, is no send's error. Raises ConnectionLostError.
    """
    now = s.now()
    if now - s.heard > SILENCE:
        s.heard = now
        with suppress(IllegalStateError):  # a callback, in the midst of a read
            s.epoch.transport.wait(s.waiter, 0)


def send_confirmed(s: SessionState, message: Message) -> Flow[None]:
    """Done when the broker has confirmed it.

    Raises:
        InDoubtError: no answer came.
        ResourceAllocationError: the broker gave no credit, and nothing was sent.
        JMSError: the broker refused it.
    """
    while isinstance((pending := (yield from _asked(s, message))).error, NotSent):
        yield from await_loss(s, not_sent(str(pending.error), pending.error))
    if isinstance(pending.error, NO_ANSWER):
        pending = yield from _sent_again(s, message, pending.error)
    error = pending.error
    if error is None:
        s.heard = s.now()
        if pending.value is not None:
            message.stamp(message_id=pending.value)
        if s.observed is not None:
            s.observed.notify(Sent(s.number, message, confirmed=True))
    else:
        raise refused_send(message, error)


def _asked(s: SessionState, message: Message) -> Flow[Pending]:
    """The answer to the first attempt, or that none came."""
    pending = Pending(s.waiter)
    if s.options.reconnect is None:
        poll_once(s)
        yield from found(s.epoch.channel.finder, message.destination)
        s.epoch.channel.send(message, transacted=False, pending=pending)
    else:
        pending = (yield from send_when_connected(s, message, pending, transacted=False, batched=False)) or pending
    try:
        if s.epoch.channel.congested:
            yield from s.epoch.channel.room()
        if s.options.deduplicate_sends:
            yield from patiently(s, _answer(pending))
        else:
            yield pending
    except NO_ANSWER as none:
        if isinstance(none, RequestTimeoutError):
            s.epoch.channel.withdraw(pending)
        if pending.error is None or isinstance(none, InterruptedWait):  # which no lack of credit has caused
            pending.error = none
    return pending


def _sent_again(s: SessionState, message: Message, error: JMSError) -> Flow[Pending]:
    """After a send without an answer: the answer to another one, where the broker drops what it has.

    Raises:
        InDoubtError: it does not, or there is no answer either.
    """
    while s.options.deduplicate_sends and s.comes_back and isinstance(error, ConnectionLostError):
        pending = Pending(s.waiter)
        try:
            yield from await_loss(s)
            pending = (yield from send_when_connected(s, message, pending, transacted=False, batched=False)) or pending
            yield from patiently(s, _answer(pending))
        except NO_ANSWER as none:
            pending.error = pending.error or none
        if not isinstance(pending.error, NO_ANSWER):
            return pending
        error = pending.error
    raise _in_doubt(s, message, error) from error


def _answer(pending: Pending) -> Flow[None]:
    yield pending


def patiently(s: SessionState, flow: Flow[None]) -> Flow[None]:
    """A flow that `deduplicate_sends` repeats after a loss: its answers may take longer than `request_timeout`.

    A connection that is lost without a sign is noticed only by its heart-beats, as a rule later; and what is repeated
    while the broker is only slow might be stored twice. So an answer is waited for as long as the connection is there,
    for at most the `timeout` of the ReconnectPolicy. Without one: for longer than a loss takes to be noticed.
    """
    policy, wire = s.options.reconnect, s.options.transport
    timeout = None if policy is None else policy.timeout
    began = s.now()
    until = began + (_PATIENCE * (wire.request_timeout + wire.heartbeat) if timeout is None else timeout)
    try:
        wish = next(flow)
        while True:
            error: JMSError | None = None
            try:
                yield wish
            except JMSError as thrown:
                error = thrown
            if isinstance(error, RequestTimeoutError) and not isinstance(error, InterruptedWait):
                waits = isinstance(wish, Pending) and not wish.done and s.comes_back and s.epoch.lost is None
                if waits and s.now() < until:
                    continue
            wish = next(flow) if error is None else flow.throw(error)
    except StopIteration:
        s.storing.took(s.now() - began)


def await_room(s: SessionState, unconfirmed: Message | None = None) -> Flow[None]:
    """`Channel.room`; where the connection is lost and comes back, nothing waits any more.

    ``unconfirmed``: what was sent last, and nobody has an answer of: if it has not left, the next connection sends it.
    """
    while s.epoch.lost is None and s.epoch.channel.congested:
        try:
            yield from s.epoch.channel.room()
        except ConnectionLostError as error:
            yield from await_loss(s, error)
            if unconfirmed is None or not isinstance(error, NotSent):
                return
            yield from send_when_connected(s, unconfirmed, None, transacted=False, batched=False)
        else:
            return


def send_when_connected(
    s: SessionState, message: Message, pending: Pending | None, *, transacted: bool, batched: bool
) -> Flow[Pending | None]:
    """`send`, where the connection comes back: what has not left is sent when it is there.

    In a transaction that the loss has ended there is nothing to send any more: its commit says so. Returns the pending
    that the answer is for: ``pending``, or another one where that was done when another attempt began.

    Raises:
        InvalidDestinationError: it goes to a temporary destination that went with the lost connection, or its reply.
        ConnectionLostError: it was not there within the `timeout` of the ReconnectPolicy, or there will be none.
    """
    if s.now() - s.heard > SILENCE and s.epoch.lost is None:
        s.heard = s.now()
        yield from arrival(s, Arrival(poll=True))  # a message that does not leave is no doubt
    began, first = s.now(), pending
    while not (transacted and s.epoch.rollback_only is not None):
        if _deferred(s, message, pending, transacted=transacted):
            break
        yield from connected_to_send(s, "send", NOT_SENT, began)
        s.temporaries.check(message)
        try:
            yield from found(s.epoch.channel.finder, message.destination)
            # not all has left where it raises
            s.epoch.channel.send(message, transacted=transacted, pending=pending, batched=batched)
            if transacted:
                s.sent.append(message)
        except ConnectionLostError:
            yield from await_loss(s)
            if pending is not None and pending.done:
                pending = pending.another()
        else:
            _note_left(s, message, pending, batched=batched)
            break
    if batched and pending is not None and pending is not first:
        s.unanswered.watch(pending)
    return pending


def _note_left(s: SessionState, message: Message, pending: Pending | None, *, batched: bool) -> None:
    """Note what has left, for the observer, and for a loss after which it is sent once more."""
    policy = s.options.reconnect
    if isinstance(pending, Repeatable):
        pending.leaves(message)
    elif isinstance(pending, Deferrable) and (policy is None or policy.timeout is None):
        pending.message = message
    if s.observed is not None and (batched or pending is None):  # `send_confirmed` says so itself
        s.observed.notify(Sent(s.number, message, confirmed=False))


def not_sent(why: str, cause: JMSError | None) -> ConnectionLostError:
    """Of a send that waited for a connection."""
    error = ConnectionLostError(f"send: {NOT_SENT}{why}")
    error.__cause__ = cause
    return error


def _deferred(s: SessionState, message: Message, pending: Pending | None, *, transacted: bool) -> bool:
    """Check whether it leaves with the next connection, and its caller does not wait: not where many wait already."""
    if s.epoch.lost is None or transacted or not s.comes_back:
        return False
    if s.unanswered.more_than(_MOST_WAITING):  # `pending` is one of them
        return False  # the caller waits, and those before it leave first: see `reattach`
    policy = s.options.reconnect
    match pending:
        case Repeatable() if policy is not None and policy.timeout is None:
            pending.message = message
            return True
        case Deferrable():
            pending.defer(message)
            return True
    return False


def _in_doubt(s: SessionState, message: Message, error: BaseException) -> InDoubtError:
    doubt = in_doubt_send(message, error)
    if s.observed is not None:
        s.observed.notify(InDoubt(s.number, doubt.sent, (), doubt))
    return doubt


def in_doubt_send(message: Message, error: BaseException) -> InDoubtError:
    """A send whose confirmation did not come."""
    doubt = InDoubtError(
        f"the broker's answer to the send to {message.destination} did not come, so the message may or may not have "
        f"been delivered: {error}",
        sent=(message,),
    )
    doubt.__cause__ = error
    return doubt


def refused_send(message: Message, error: JMSError) -> JMSError:
    """The broker's refusal, which says where the message was to go."""
    destination = message.destination
    if destination is None or destination.name in str(error):
        return error
    named = type(error)(f"send to {destination}: {error}")
    named.__cause__ = error
    return named
