"""Acknowledging outside a transaction, which needs no answer; called by the holder of the session.

An interrupt (KeyboardInterrupt, or whatever a signal handler raises) may come after any call of the main thread. Where
the channel is not `whole`, a thread that signals do not reach calls it; that costs about as much as a message itself.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from redelivery.client.ledger.state import ACCEPTED, HELD, RETURNED, STALE, ConsumerState
from redelivery.client.log_lines import name_of
from redelivery.client.state import SessionState
from redelivery.model.errors import ConnectionLostError, IllegalStateError, JMSError
from redelivery.model.messages import Message
from redelivery.transports.seam import Delivery

log = logging.getLogger(__name__)
STRANDED: Final = "the broker has ended a consumer whose messages would be acknowledged; they are the broker's again"


def hand_out(s: SessionState, delivery: Delivery) -> None:
    """Tell the transport that the application has it."""
    if s.channel.whole:
        s.channel.dispatched(delivery)
    else:
        s.whole(lambda: s.channel.dispatched(delivery))
    if s.observed is not None:
        s.observed.delivered(s.number, (delivery,))


def accept(s: SessionState, deliveries: Sequence[Delivery], *, batched: bool) -> None:
    """Acknowledge what the application has, outside any transaction; what was already (`State.ACCEPTED`) is not.

    Where the connection is lost when that has left, or may have, the application has it all the same: the broker may
    have it no more. The next call meets the loss.
    """
    missing = [each for each in deliveries if each.state is not ACCEPTED] if len(deliveries) > 1 else deliveries
    if missing and missing[0].state is not ACCEPTED:
        if s.channel.whole:
            _accept(s, missing, batched=batched)
        else:
            s.whole(lambda: _accept(s, missing, batched=batched))
    if s.observed is not None:
        s.observed.consumed(s.number, deliveries)


def acknowledge(s: SessionState, delivery: Delivery, redeliveries: int) -> None:
    """INDIVIDUAL mode: acknowledge what is held, and was redelivered here so often."""
    if s.channel.whole:
        _acknowledge(s, delivery, redeliveries)
    else:
        s.whole(lambda: _acknowledge(s, delivery, redeliveries))


def _accept(s: SessionState, deliveries: Sequence[Delivery], *, batched: bool) -> None:
    done: list[None] = []
    try:
        s.channel.accept(deliveries, batched=batched, done=done)
        _accepted(s, deliveries)
    except BaseException as problem:
        if not done:
            raise
        # an interrupt or a loss behind it: what is accepted must not be so once more
        s.whole(lambda: _accepted(s, deliveries))
        if not isinstance(problem, ConnectionLostError):
            raise


def _accepted(s: SessionState, deliveries: Sequence[Delivery]) -> None:
    for each in deliveries:
        if each.state is HELD:
            s.ledger.consumed(each)
        each.state = ACCEPTED


def _acknowledge(s: SessionState, delivery: Delivery, redeliveries: int) -> None:
    done: list[None] = []
    try:
        s.channel.accept((delivery,), batched=True, done=done)
        s.ledger.acknowledge(delivery, redeliveries)
    except BaseException:
        if done:
            s.whole(lambda: s.ledger.acknowledge(delivery, redeliveries))
        raise


def acknowledge_one(s: SessionState, message: Message) -> None:
    """INDIVIDUAL mode: this message; a stale object or a second time does nothing."""
    s.take_in()
    delivery: Delivery = message.source  # type: ignore[assignment]  # of a receipt of ours; others are in no ledger
    held = delivery in s.ledger.held
    consumer: ConsumerState | None = None if delivery is None else delivery.link.consumer
    if consumer is not None and consumer.error is not None and held:
        raise give_up_stranded(s, "acknowledge", consumer.error)
    redeliveries = message.local_redeliveries
    if delivery is not None and delivery.state is STALE:
        too_late(s, [delivery])
    elif held and delivery.redeliveries == redeliveries:
        try:
            acknowledge(s, delivery, redeliveries)
        except ConnectionLostError:
            if not s.comes_back:
                raise
            too_late(s, [delivery])  # or just not
            return
        if log.isEnabledFor(logging.DEBUG):
            log.debug("%s: acknowledged", name_of(delivery))
        if s.observed is not None:
            s.observed.acknowledged(s.number, (delivery,))
    elif delivery is None or delivery.state is RETURNED:
        raise IllegalStateError(
            "acknowledge: the message was not received here, or the broker has ended its consumer and has it again"
        )


def too_late(s: SessionState, stale: list[Delivery]) -> None:
    """Acknowledged after the connection that had brought them was lost: nothing can be done; they are redelivered."""
    for delivery in stale:
        log.debug("%s: acknowledged after its connection was lost; it is redelivered", name_of(delivery))
    if stale and s.observed is not None:
        s.observed.too_late(s.number, stale)
    s.stale.clear()


def give_up_stranded(s: SessionState, action: str, error: JMSError) -> JMSError:
    """The error for what cannot be acknowledged, as the broker has ended its consumer; the rest is held still."""
    s.whole(s.ledger.give_up_stranded)
    problem = type(error)(f"{action}: nothing was acknowledged: {STRANDED}: {error}")
    problem.__cause__ = error
    return problem
