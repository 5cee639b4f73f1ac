"""Ends receiving links: drained, everything released with the count that it has earned, then detached."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from redelivery.model.errors import RequestTimeoutError
from redelivery.transports.amqp.channel.context import AmqpChannelContext
from redelivery.transports.amqp.links.receivers import Receiver
from redelivery.transports.amqp.links.sessions import AmqpSession
from redelivery.transports.seam import Flow, Pending


def detach(context: AmqpChannelContext, receivers: Sequence[Receiver]) -> Flow[None]:
    """End them; what is not settled goes back to the broker. Raises JMSError where no answer comes."""
    for receiver in receivers:
        receiver.wanted = False  # or what is released may come to this link again
    if context.dialect.drain:
        with suppress(RequestTimeoutError):  # it must be closed all the same
            yield from drain(context, receivers)  # what is on its way would be charged with a delivery
    else:
        with context.writing():
            for receiver in receivers:
                receiver.withdraw()
    if context.dialect.end_drops_answers:
        with suppress(RequestTimeoutError):  # as above
            yield from _stop(context, receivers)
    asked = []
    with context.writing():
        for receiver in receivers:
            if receiver.ended is None or receiver.stopped:
                asked.append(context.ask_for_end() if receiver.stopped else context.ask())
                _close(context, receiver, asked[-1])
    for each in asked:
        yield from context.answer(each)


def drain(context: AmqpChannelContext, receivers: Sequence[Receiver]) -> Flow[None]:
    """Everything that the broker has for them, as far as their windows go, has come when this ends."""
    asked: list[Pending] = []
    with context.writing():
        for receiver in receivers:
            if receiver.ended is None and receiver.opened:
                asked.append(Drain(context, receiver))
                receiver.drain(asked[-1])
    yield from _answered(asked)


class Drain(Pending):
    """That a link is drained. Artemis misses the wish for it where it is just about to end an earlier one."""

    __slots__ = ("_context", "_receiver")
    patience = 0.5

    def __init__(self, context: AmqpChannelContext, receiver: Receiver) -> None:
        super().__init__(context.events.waiter)
        self._context = context
        self._receiver = receiver

    def ask_again(self) -> None:
        """Say the same once more."""
        with self._context.writing():
            if self._receiver.drained is self:
                self._receiver.drain(self)


def echo(context: AmqpChannelContext) -> Flow[None]:
    """A question that everything written before is done before: a session that is opened for nothing."""
    asked = context.ask()
    with context.writing():
        session = AmqpSession(context.protocol.table)
        session.open(asked)
    yield from context.answer(asked)
    with context.writing():
        session.close(None)


def _stop(context: AmqpChannelContext, receivers: Sequence[Receiver]) -> Flow[None]:
    """The broker writes nothing more for them when this ends, and so has written everything."""
    asked: list[Pending] = []
    with context.writing():
        for receiver in receivers:
            if receiver.ended is None:
                asked.append(context.ask())
                receiver.stop(asked[-1])
    yield from _answered(asked)


def _answered(asked: Sequence[Pending]) -> Flow[None]:
    """Wait until they are done; an error is that the link has ended, which is reported elsewhere."""
    for each in asked:
        if not each.done:
            yield each


def _close(context: AmqpChannelContext, receiver: Receiver, asked: Pending) -> None:
    """End the link, and its session where that is its own; inside `writing`."""
    dialect = context.dialect
    if receiver.stopped:
        # At once and in order: no count has to be saved, and nothing keeps it from coming to this link again.
        receiver.session.close(asked)
        return
    if dialect.session_end_counts and any(each.credited for each in receiver.unsettled):
        receiver.session.close(asked)  # outcomes would count nothing, and cost the broker milliseconds each
        return
    receiver.release(list(receiver.unsettled))
    if dialect.keeps_sessions:
        receiver.close(asked)
        context.let_go(receiver.session)
        return
    if not dialect.session_per_link and not dialect.session_end_counts:
        receiver.close(asked)
        return
    receiver.close(None)  # first, for that counts nothing
    receiver.session.close(asked)
