"""Two questions, answered without changing anything: may a delivery be shown, and what becomes of a failed batch?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from redelivery.client.ledger.orders import Poison
from redelivery.client.ledger.state import ConsumerState, Received
from redelivery.model.content.bodies import readable_of
from redelivery.policies.activemq.causes import (
    delivery_cause,
    describe_cause,
    dispatch_cause,
    expired_cause,
    given_up_cause,
)
from redelivery.policies.redelivery import RedeliveryPolicy


def verdict(delivery: Received, consumer: ConsumerState, wall_ms: Callable[[], int]) -> Poison | None:
    """Why the application must not see it: it has expired, or a count alone is over the limit.

    Our own count, of what this connection has delivered before, decides in any case: see `History`. The broker's is
    ActiveMQ's pre-dispatch check. Its RedeliveryPlugin counts on purpose, and says so by the property.
    """
    expires = delivery.expires_at()
    if expires and expires <= wall_ms():
        return Poison(delivery, expired_cause(expires), expired=True)
    if delivery.earlier and (policy := consumer.policy(delivery)).exceeded(delivery.earlier):
        text = dispatch_cause(delivery.earlier, consumer.name, policy, listener=consumer.listening)
        return Poison(delivery, f"{text}, cause:{describe_cause(delivery.cause)}")
    if consumer.check_limit and delivery.redeliveries == 0:
        policy, count = consumer.policy(delivery), delivery.charged()
        if policy.exceeded(count) and "redeliveryDelay" not in readable_of(delivery)[0]:
            return Poison(delivery, dispatch_cause(count, consumer.name, policy, listener=consumer.listening))
    return None


def limit(delivery: Received, consumer: ConsumerState) -> tuple[RedeliveryPolicy, int]:
    """The policy of a delivery, and how often it was redelivered to an application as far as that is known."""
    return consumer.policy(delivery), delivery.proven() + delivery.redeliveries


@dataclass(frozen=True, slots=True)
class Ruling:
    """The application's own decision for what failed, where the policy would decide.

    ``after``: seconds before it is redelivered; the policy limits how often all the same. ``give_up``: why it is
    dead-lettered at once.
    """

    after: float | None = None
    give_up: str | None = None


BY_POLICY = Ruling()


@dataclass(frozen=True, slots=True)
class Redelivery:
    """The next redelivery of a batch that failed, or its end."""

    again: tuple[Received, ...]
    poisoned: tuple[Poison, ...]
    delay: float = 0.0  # seconds, before `again` is redelivered: that of its newest message


def redeliver(
    batch: Sequence[Received],
    limit_of: Callable[[Received, ConsumerState], tuple[RedeliveryPolicy, int]],
    rng: Random | None,
    ruling: Ruling = BY_POLICY,
) -> Redelivery:
    """ActiveMQ's rollback, per message; the failure is counted in ``redeliveries`` already."""
    again: list[Received] = []
    poisoned: list[Poison] = []
    policy, count = None, 0
    for delivery in batch:
        found, redelivered = limit_of(delivery, delivery.link.consumer)
        if ruling.give_up is not None:
            poisoned.append(Poison(delivery, given_up_cause(redelivered, ruling.give_up, delivery.cause)))
        elif found.exceeded(redelivered):
            poisoned.append(Poison(delivery, delivery_cause(redelivered, found, delivery.cause)))
        else:
            again.append(delivery)
            policy, count = found, redelivered
    if ruling.after is not None:
        return Redelivery(tuple(again), tuple(poisoned), ruling.after)
    return Redelivery(tuple(again), tuple(poisoned), 0.0 if policy is None else policy.delay(count, rng))
