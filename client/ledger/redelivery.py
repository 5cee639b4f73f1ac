"""Two questions, answered without changing anything: may a delivery be shown, and what happens to a failed batch?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from redelivery.client.ledger.orders import Poison
from redelivery.client.ledger.state import ConsumerState, Received
from redelivery.model.content.bodies import readable_of
from redelivery.model.errors import ConfigError
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
    if delivery.earlier and is_exceeded(policy := consumer.policy(delivery), delivery.earlier, delivery):
        text = dispatch_cause(delivery.earlier, consumer.name, policy, listener=consumer.listening)
        return Poison(delivery, f"{text}, cause:{describe_cause(delivery.cause)}")
    if consumer.check_limit and delivery.redeliveries == 0:
        policy, count = consumer.policy(delivery), delivery.charged()
        if is_exceeded(policy, count, delivery) and "redeliveryDelay" not in readable_of(delivery)[0]:
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
    problems: tuple[ConfigError, ...] = ()  # of strategies that fail


def redeliver(
    batch: Sequence[Received],
    limit_of: Callable[[Received, ConsumerState], tuple[RedeliveryPolicy, int]],
    rng: Random | None,
    ruling: Ruling = BY_POLICY,
) -> Redelivery:
    """ActiveMQ's rollback, per message; the failure is counted in ``redeliveries`` already."""
    again: list[Received] = []
    poisoned: list[Poison] = []
    problems: list[ConfigError] = []
    policy, count, newest = None, 0, None
    for delivery in batch:
        found, redelivered = limit_of(delivery, delivery.link.consumer)
        if ruling.give_up is not None:
            poisoned.append(Poison(delivery, given_up_cause(redelivered, ruling.give_up, delivery.cause)))
        elif is_exceeded(found, redelivered, delivery, problems):
            poisoned.append(Poison(delivery, delivery_cause(redelivered, found, delivery.cause)))
        else:
            again.append(delivery)
            policy, count, newest = found, redelivered, delivery
    if ruling.after is not None or policy is None or newest is None:
        return Redelivery(tuple(again), tuple(poisoned), ruling.after or 0.0, tuple(problems))
    wait = wait_of(policy, count, newest, rng, problems)
    return Redelivery(tuple(again), tuple(poisoned), wait, tuple(problems))


def is_exceeded(
    policy: RedeliveryPolicy, count: int, delivery: Received, problems: list[ConfigError] | None = None
) -> bool:
    """Check whether it is beyond the policy's limit: by a strategy, with the time since its first failure.

    A strategy that fails is a problem, and limits nothing: the message stays.
    """
    if policy.given_stop is None:
        return policy.exceeded(count)
    try:
        return policy.exceeded(count, _elapsed(delivery))
    except ConfigError as error:
        if problems is not None:
            problems.append(error)
        return False


def wait_of(
    policy: RedeliveryPolicy, count: int, delivery: Received, rng: Random | None, problems: list[ConfigError]
) -> float:
    """Seconds before the redelivery; where a strategy fails, the policy's ``redelivery_delay``."""
    if policy.given_wait is None:
        return policy.delay(count, rng)
    try:
        return policy.delay(count, rng, _elapsed(delivery))
    except ConfigError as error:
        problems.append(error)
        return policy.redelivery_delay


def _elapsed(delivery: Received) -> float:
    """Seconds between its first failure and its last one, as far as this connection knows."""
    attempts = delivery.attempted()
    return max(0, attempts[-1][1] - attempts[0][1]) / 1000 if attempts else 0.0
