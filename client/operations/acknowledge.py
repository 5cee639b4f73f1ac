"""Acknowledging outside a transaction, which needs no answer; called by the holder of the session."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from redelivery.client.ledger import Received
from redelivery.client.ledger.state import ACCEPTED, RETURNED, STALE, TAKEN
from redelivery.client.observing.log_lines import MESSAGES, name_of
from redelivery.client.session.state import SessionState
from redelivery.model.errors import ConnectionLostError, IllegalStateError, JMSError
from redelivery.model.messages import Message

log = logging.getLogger(MESSAGES)
STRANDED: Final = "the broker has ended a consumer whose messages would be acknowledged; they go back to the broker"


def dispatched(s: SessionState, delivery: Received) -> None:
    """Notify the transport that the application has it."""
    s.epoch.channel.dispatched(delivery)
    if s.observed is not None:
        s.observed.delivered(s.number, (delivery,))
        if s.tracer is not None and s.listener is None:
            s.tracer.received((delivery,), held=True)


def accept(s: SessionState, deliveries: Sequence[Received], *, batched: bool) -> None:
    """Acknowledge what the application has, outside any transaction; what was already (`State.ACCEPTED`) is not.

    Where the connection is lost when that has left, or may have, the application has it all the same: the broker may
    have it no more. The next call meets the loss.
    """
    missing = deliveries if len(deliveries) == 1 else [each for each in deliveries if each.state is not ACCEPTED]
    if missing and missing[0].state is not ACCEPTED:
        done: list[None] = []
        if s.unsure is not None or s.history.places:
            s.settled(missing)
        try:
            s.epoch.channel.accept(missing, batched=batched, done=done)
            if len(missing) == 1 and missing[0].state is TAKEN:
                missing[0].state = ACCEPTED  # most of them: `Ledger.accepted` without its call, see the ledger's rule 7
            else:
                s.ledger.accepted(missing)
        except BaseException as problem:
            if not done:
                raise
            # lost behind it: what is accepted must not be so once more
            s.ledger.accepted(missing)
            if not isinstance(problem, ConnectionLostError):
                raise
    if s.observed is not None:
        s.observed.consumed(s.number, deliveries)
        if s.tracer is not None:
            s.tracer.received(deliveries, held=False)


def acknowledge_one(s: SessionState, message: Message) -> None:
    """INDIVIDUAL mode: this message; a stale object or a second time does nothing."""
    if s.tracer is None:
        _acknowledge_one(s, message)
        return
    source: Received | None = message.source  # type: ignore[assignment]  # as below
    with s.tracer.settling("acknowledge", () if source is None else (source,)):
        _acknowledge_one(s, message)


def _acknowledge_one(s: SessionState, message: Message) -> None:
    if s.inbox or s.arrivals or s.epoch.leaving is not None:  # as it looks itself; most calls are spared
        s.take_in()
    delivery: Received = message.source  # type: ignore[assignment]  # of a receipt of ours; others are in no ledger
    if delivery not in s.ledger.held:
        _not_held(s, delivery)
        return
    consumer = delivery.link.consumer
    if consumer.error is not None:
        raise give_up_stranded(s, "acknowledge", consumer.error)
    redeliveries = message.local_redeliveries
    if delivery.redeliveries != redeliveries:
        return  # an object from before it was redelivered
    done: list[None] = []
    if s.unsure is not None or s.history.places:
        s.settled((delivery,))
    try:
        s.epoch.channel.accept((delivery,), batched=True, done=done)
        s.ledger.acknowledge(delivery, redeliveries)
    except BaseException as problem:
        if done:
            s.ledger.acknowledge(delivery, redeliveries)
        if not isinstance(problem, ConnectionLostError) or not s.comes_back:
            raise
        _note_late(delivery)  # or just not
        s.epoch.acked_after_loss.append(delivery)  # an event when the loss has been taken in, which releases it
        s.take_in()
        return
    if s.observed is not None or log.isEnabledFor(logging.DEBUG):
        _say_acknowledged(s, delivery)


def _say_acknowledged(s: SessionState, delivery: Received) -> None:
    log.debug("%s: acknowledged", name_of(delivery))
    if s.observed is not None:
        s.observed.acknowledged(s.number, (delivery,))


def _not_held(s: SessionState, delivery: Received | None) -> None:
    if delivery is None or delivery.state is RETURNED:
        raise IllegalStateError(
            "acknowledge: the message was not received here, or the broker has ended its consumer and has it again"
        )
    if delivery.state is STALE:
        too_late(s, [delivery])


def too_late(s: SessionState, stale: list[Received]) -> None:
    """Acknowledged after the connection that had brought them was lost: nothing can be done; they are redelivered."""
    if not stale:
        return
    for delivery in stale:
        _note_late(delivery)
    if s.observed is not None:
        s.observed.too_late(s.number, stale)
    s.epoch.from_lost_connection.clear()


def _note_late(delivery: Received) -> None:
    log.debug("%s: acknowledged after its connection was lost; it is redelivered", name_of(delivery))


def give_up_stranded(s: SessionState, action: str, error: JMSError) -> JMSError:
    """The error for what cannot be acknowledged, as the broker has ended its consumer; the rest is held still."""
    s.ledger.give_up_stranded()
    problem = type(error)(f"{action}: nothing was acknowledged: {STRANDED}: {error}")
    problem.__cause__ = error
    return problem
