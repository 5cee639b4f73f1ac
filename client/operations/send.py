"""Sending: the broker's answer, and what it means for the message."""

from __future__ import annotations

from redelivery.client.state import SessionState
from redelivery.model.errors import InDoubtError, JMSError
from redelivery.model.events import InDoubt, Sent
from redelivery.model.messages import Message
from redelivery.transports.seam import NO_ANSWER, Flow, Pending


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
    _write(s, message, pending, transacted=False)
    if s.channel.congested:
        yield from s.channel.room()
    try:
        yield pending
    except NO_ANSWER as none:
        raise _in_doubt(s, message, none) from none
    error = pending.error
    if error is None:
        if pending.value is not None:
            message.stamp(message_id=pending.value)
        if s.observed is not None:
            s.observed.notify(Sent(s.number, message, confirmed=True))
    elif isinstance(error, NO_ANSWER):
        raise _in_doubt(s, message, error)
    else:
        raise refused_send(message, error)


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
