"""How receiving links end: drained, everything given back with the count that it has earned, then detached."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from redelivery.model.errors import RequestTimeoutError
from redelivery.transports.amqp.conversation import Conversation
from redelivery.transports.amqp.endpoints import AmqpSession
from redelivery.transports.amqp.receivers import Receiver
from redelivery.transports.base import Flow, Pending


def detach(talk: Conversation, receivers: Sequence[Receiver]) -> Flow[None]:
    """End them; what is not settled is the broker's again. Raises JMSError where no answer comes."""
    for receiver in receivers:
        receiver.wanted = False  # or what is given back may come to this link again
    if talk.dialect.drain:
        with suppress(RequestTimeoutError):  # it must be closed all the same
            yield from drain(talk, receivers)  # what is on its way would be charged with a delivery
    else:
        with talk.writing():
            for receiver in receivers:
                receiver.withdraw()
    if talk.dialect.end_drops_answers:
        with suppress(RequestTimeoutError):  # as above
            yield from _stop(talk, receivers)
    asked = []
    with talk.writing():
        for receiver in receivers:
            if receiver.ended is None or receiver.stopped:
                asked.append(talk.ask())
                _close(talk, receiver, asked[-1])
    for each in asked:
        yield from talk.answer(each)


def drain(talk: Conversation, receivers: Sequence[Receiver]) -> Flow[None]:
    """Everything that the broker has for them, as far as their windows go, has come when this ends."""
    asked: list[Pending] = []
    with talk.writing():
        for receiver in receivers:
            if receiver.ended is None and receiver.opened:
                asked.append(Drain(talk, receiver))
                receiver.drain(asked[-1])
    yield from _over(asked)


class Drain(Pending):
    """That a link is drained. Artemis misses the wish for it where it is just about to end an earlier one."""

    __slots__ = ("_receiver", "_talk")
    patience = 0.5

    def __init__(self, talk: Conversation, receiver: Receiver) -> None:
        super().__init__(talk.events.waiter)
        self._talk = talk
        self._receiver = receiver

    def ask_again(self) -> None:
        """Say the same once more."""
        with self._talk.writing():
            if self._receiver.drained is self:
                self._receiver.drain(self)


def echo(talk: Conversation) -> Flow[None]:
    """A question that everything written before is done before: a session that is opened for nothing."""
    asked = talk.ask()
    with talk.writing():
        session = AmqpSession(talk.connection)
        session.open(asked)
    yield from talk.answer(asked)
    with talk.writing():
        session.close(None)


def _stop(talk: Conversation, receivers: Sequence[Receiver]) -> Flow[None]:
    """The broker writes nothing more for them when this ends, and so has written everything."""
    asked: list[Pending] = []
    with talk.writing():
        for receiver in receivers:
            if receiver.ended is None:
                asked.append(talk.ask())
                receiver.stop(asked[-1])
    yield from _over(asked)


def _over(asked: Sequence[Pending]) -> Flow[None]:
    """Until they are done; an error is that the link has ended, which is told elsewhere."""
    for each in asked:
        if not each.done:
            yield each


def _close(talk: Conversation, receiver: Receiver, asked: Pending) -> None:
    """End the link, and its session where that is its own; inside `writing`."""
    dialect = talk.dialect
    if receiver.stopped:
        # At once and in order: there is no count to save, and no way to keep it from coming to this link again.
        receiver.session.close(asked)
        return
    if dialect.session_end_counts and any(each.credited for each in receiver.unsettled):
        receiver.session.close(asked)  # outcomes would count nothing, and cost the broker milliseconds each
        return
    receiver.give_back(list(receiver.unsettled))
    if not dialect.session_per_link and not dialect.session_end_counts:
        receiver.close(asked)
        return
    receiver.close(None)  # first, for that counts nothing
    receiver.session.close(asked)
