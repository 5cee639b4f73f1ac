"""Sending: the broker's answer, and what it means for the message."""

from __future__ import annotations

from redelivery.client.connection.reattach import arrival, await_loss, await_return
from redelivery.client.connection.repeats import Repeatable
from redelivery.client.state import SILENCE, SessionState
from redelivery.model.errors import ConnectionLostError, InDoubtError, JMSError
from redelivery.model.events import InDoubt, Sent
from redelivery.model.messages import Message
from redelivery.transports.seam import NO_ANSWER, Arrival, Flow, Pending


def send(s: SessionState, message: Message, pending: Pending | None, *, transacted: bool) -> None:
    """Hand it to the transport, and to the open transaction; its answer is not waited for here."""
    _write(s, message, pending, transacted=transacted)
    if s.observed is not None:
        s.observed.notify(Sent(s.number, message, confirmed=False))


def _write(s: SessionState, message: Message, pending: Pending | None, *, transacted: bool) -> None:
    if s.channel.whole:
        _send(s, message, pending, transacted=transacted)
    else:
        s.whole(lambda: _send(s, message, pending, transacted=transacted))


def _send(s: SessionState, message: Message, pending: Pending | None, *, transacted: bool) -> None:
    s.channel.send(message, transacted=transacted, pending=pending)
    if transacted:
        s.sent.append(message)


def send_confirmed(s: SessionState, message: Message) -> Flow[None]:
    """Done when the broker has confirmed it. Its steps are whole without a shelter.

    Raises:
        InDoubtError: no answer came.
        JMSError: the broker refused it.
    """
    pending = Pending(s.waiter)
    if s.options.reconnect is None:  # no loss that is known before it would be any better
        _write(s, message, pending, transacted=False)
    else:
        yield from send_when_connected(s, message, pending, transacted=False)
    try:
        if s.channel.congested:
            yield from s.channel.room()
        yield pending
    except NO_ANSWER as none:
        pending.error = pending.error or none
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


def _sent_again(s: SessionState, message: Message, error: JMSError) -> Flow[Pending]:
    """After a send without an answer: the answer to another one, where the broker drops what it has.

    Raises:
        InDoubtError: it does not, or there is no answer either.
    """
    while s.options.deduplicate_sends and s.comes_back and isinstance(error, ConnectionLostError):
        pending = Pending(s.waiter)
        try:
            yield from await_loss(s)
            yield from send_when_connected(s, message, pending, transacted=False)
            yield pending
        except NO_ANSWER as none:
            pending.error = pending.error or none
        if not isinstance(pending.error, NO_ANSWER):
            return pending
        error = pending.error
    raise _in_doubt(s, message, error) from error


def make_room(s: SessionState) -> Flow[None]:
    """`Channel.room`; where the connection is lost and comes back, nothing waits any more."""
    try:
        yield from s.channel.room()
    except ConnectionLostError:
        if not s.comes_back:
            raise
        yield from await_loss(s)


def send_when_connected(s: SessionState, message: Message, pending: Pending | None, *, transacted: bool) -> Flow[None]:
    """`send`, where the connection comes back: what has not left is sent when it is there.

    In a transaction that the loss has ended there is nothing to send any more: its commit says so.

    Raises:
        InvalidDestinationError: it goes to a temporary destination that went with the lost connection, or its reply.
        ConnectionLostError: it was not there within the `timeout` of the ReconnectPolicy, or there will be none.
    """
    if s.now() - s.heard > SILENCE and s.away is None:
        yield from arrival(s, Arrival(poll=True))  # a message that does not leave is no doubt
    policy = s.options.reconnect
    timeout = None if policy is None else policy.timeout
    deadline = None if timeout is None else s.now() + timeout
    while not (transacted and s.doomed is not None):
        if s.away is not None and not (yield from await_return(s, deadline)):
            if s.closing:
                raise s.life.problem("send")
            raise ConnectionLostError(
                f"send: not sent, as the connection was not there again within {timeout:g} s: {s.away}"
            ) from s.away
        s.temporaries.check(message)
        try:
            _write(s, message, pending, transacted=transacted)  # not all of it has left where it raises
        except ConnectionLostError:
            yield from await_loss(s)
            if pending is not None and pending.done:
                pending.done, pending.error = False, None
        else:
            if isinstance(pending, Repeatable):
                pending.message = message
            return


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
