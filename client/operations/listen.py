"""Listening: which delivery is next, and what the end of its callback means for it; by the holder of the session."""

from __future__ import annotations

import logging
from collections.abc import MutableMapping, Sequence

from redelivery.client.ledger import ConsumerState
from redelivery.client.ledger.outcomes import failed_with
from redelivery.client.ledger.stages import OPEN
from redelivery.client.observing.log_lines import MESSAGES, count_of, facts, short_cause
from redelivery.client.operations.failures import fail
from redelivery.client.state import SessionState
from redelivery.model.modes import AckMode
from redelivery.transports.seam import Delivery, T

log = logging.getLogger(MESSAGES)


def drop_ended(listeners: MutableMapping[ConsumerState, T]) -> None:
    """Those whose consumer the broker has ended listen no more."""
    for consumer in [each for each in listeners if each.stage is not OPEN]:
        del listeners[consumer]
        consumer.listening = False


def dispatch(
    s: SessionState, consumers: Sequence[ConsumerState], first: int, now: float
) -> tuple[Delivery | None, int]:
    """The next delivery for any of them, held from now on, and who is asked first the next time: each in its turn."""
    for at in range(len(consumers)):
        number = (first + at) % len(consumers)
        delivery = s.ledger.dispatch(consumers[number], now)
        if delivery is not None:
            return delivery, (number + 1) % len(consumers)
    return None, first


def returned(s: SessionState, delivery: Delivery, consumer: ConsumerState, error: BaseException | None) -> None:
    """The callback has returned, or raised ``error``: JMS 3.1, `MessageListener`."""
    if s.lost is not None:
        return
    if error is None:
        if s.mode in (AckMode.AUTO, AckMode.DUPS_OK) and s.ledger.consumed(delivery):
            s.settled((delivery,))
            s.epoch.channel.accept((delivery,), batched=s.mode == AckMode.DUPS_OK)
            if s.observed is not None:
                s.observed.acknowledged(s.number, (delivery,))
        return
    destination = consumer.link.destination
    if s.mode in (AckMode.TRANSACTED, AckMode.CLIENT):
        failed_with(delivery, error)
        log.log(
            s.lines.level(logging.WARNING, f"the listener of {destination} raised"),
            "the listener of %s raised; the message stays unacknowledged and the next one is delivered: "
            "a %s session must roll back or recover itself",
            destination,
            s.mode.name,
            exc_info=error,
            extra=facts(delivery, count_of(delivery), short_cause(error)),
        )
        return
    fail(s, lambda now: s.ledger.listener_failed(consumer, now, error))
