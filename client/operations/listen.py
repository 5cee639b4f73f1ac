"""Listening: which delivery is next, and what the end of its callback means for it; by the holder of the session."""

from __future__ import annotations

import logging
from collections.abc import MutableMapping, Sequence
from math import inf
from typing import Final, cast

from redelivery.client.ledger import ConsumerState, Received
from redelivery.client.ledger.stages import ENDED, OPEN
from redelivery.client.observing.log_lines import MESSAGES, count_of, facts, short_cause
from redelivery.client.operations.channels import attach_anew
from redelivery.client.operations.orders import fail
from redelivery.client.operations.reattach import await_loss
from redelivery.client.session.state import SessionState
from redelivery.client.session.subscriptions import begins_anew
from redelivery.model.errors import ConfigError, ConnectionLostError, JMSError
from redelivery.model.modes import AckMode
from redelivery.policies.reconnect import ReconnectPolicy
from redelivery.transports.seam import Flow, T

log = logging.getLogger(MESSAGES)
_LONG: Final = 30.0  # seconds: a link that has lived as long is no young one, whatever it had waited for


class Comeback:
    """That of one listener's consumer, which the broker has ended, by the ReconnectPolicy.

    Its delays begin anew only after a link that has lived as long as its own last wait: a broker that ends each at once
    is not asked without a pause.

    Attributes:
        due: when it is attached again (`session_time`); infinity while it is attached.
    """

    def __init__(self, policy: ReconnectPolicy, now: float) -> None:
        self._policy = policy
        self._attempts = 0  # since the delays began
        self._began = now  # the first one since it was attached last
        self._attached = -inf
        self._wait = 0.0
        self.due = inf

    def ended(self, now: float) -> bool:
        """Note that it has ended, or was not attached; False: there is no further attempt."""
        if now - self._attached >= min(_LONG, max(self._wait, self._policy.initial_delay)):
            self._attempts = 0 if self._attached > -inf else self._attempts
            self._began = now if self._attached > -inf else self._began
        self._attached = -inf
        elapsed = now - self._began
        if self._policy.ends(self._attempts, elapsed) if self._attempts else self._policy.exhausted(0):
            return False
        self._attempts += 1
        self._wait = self._policy.delay(self._attempts, None, elapsed)
        self.due = now + self._wait
        return True

    def attached(self, now: float) -> None:
        """Note that it is attached again."""
        self._attached, self.due = now, inf


class Comebacks:
    """The comebacks of the listeners of one session; by its holder, who asks whenever he looks for a delivery."""

    def __init__(self, s: SessionState) -> None:
        self._s = s
        self._of: dict[ConsumerState, Comeback] = {}

    @property
    def due(self) -> float:
        """The time of the next one; infinity for never."""
        return min((each.due for each in self._of.values()), default=inf)

    def poll_once(self, listeners: MutableMapping[ConsumerState, T]) -> ConsumerState | None:
        """A listener's consumer that is to be attached now, by `attach_again`.

        Those that will not be any more are taken out of ``listeners``, and listen no more.
        """
        for consumer in [each for each in self._of if each not in listeners]:
            del self._of[consumer]
        found, now = None, self._s.now()
        for consumer in [each for each in listeners if each.stage is not OPEN]:
            comeback = self._of.get(consumer)
            if comeback is None or comeback.due == inf:
                self._end(consumer, listeners, now)
            elif comeback.due <= now:
                found = consumer
        return None if self._s.epoch.lost is not None else found

    def attach_again(self, consumer: ConsumerState, listeners: MutableMapping[ConsumerState, T]) -> Flow[None]:
        """Attach it; where the broker refuses, it waits for its next attempt, if there is one.

        Raises:
            ConnectionLostError: the connection is gone, and does not come back.
        """
        s, named, comeback = self._s, consumer.link.spec.subscription, self._of[consumer]
        try:
            if named is not None:
                s.subscriptions.take(consumer, s.life)
            consumer.revive()
            s.ledger.attach(consumer)
            yield from attach_anew(s, consumer)
        except ConnectionLostError as error:
            yield from await_loss(s, error)  # the next connection attaches it, with the others
            comeback.attached(s.now())
            return
        except JMSError as error:
            if consumer.stage is OPEN:
                s.ledger.link_ended(consumer, error)
            self._end(consumer, listeners, s.now())
            return
        comeback.attached(s.now())
        log.info("%s: the listener of %s is attached again", s.options.url, consumer.link.destination)

    def _end(self, consumer: ConsumerState, listeners: MutableMapping[ConsumerState, T], now: float) -> None:
        s, destination, error = self._s, consumer.link.destination, consumer.error
        if consumer.stage is ENDED and s.lost is None and begins_anew(consumer, s.options.reconnect):
            comeback = self._of.get(consumer) or Comeback(cast(ReconnectPolicy, s.options.reconnect), now)
            if self._comes_again(comeback, now):
                self._of[consumer] = comeback
                wait = comeback.due - now
                log.log(
                    s.lines.level(logging.WARNING, f"{destination} ended"),
                    "%s: the broker has ended the consumer of %s; its listener is attached again in %.3g s: %s",
                    *(s.options.url, destination, wait, error),
                )
                return
            if error is not None:
                s.report(error, deadly=True)
        self._of.pop(consumer, None)
        listeners.pop(consumer, None)  # a close may have been here
        consumer.listening = False

    def _comes_again(self, comeback: Comeback, now: float) -> bool:
        try:
            return comeback.ended(now)
        except ConfigError as problem:  # a strategy of the policy's fails
            self._s.report(problem)
            return False


def dispatch(
    s: SessionState, consumers: Sequence[ConsumerState], first: int, now: float
) -> tuple[Received | None, int]:
    """The next delivery for any of them, held from now on, and who is asked first the next time: each in its turn."""
    for at in range(len(consumers)):
        number = (first + at) % len(consumers)
        delivery = s.ledger.dispatch(consumers[number], now)
        if delivery is not None:
            return delivery, (number + 1) % len(consumers)
    return None, first


def returned(s: SessionState, delivery: Received, consumer: ConsumerState, error: BaseException | None) -> None:
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
        s.ledger.callback_failed(delivery, error)
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
