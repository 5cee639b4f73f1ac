"""The bridge between brokers: what counts for each pattern of a configuration, and what another format cannot say.

Between brokers the way leads over what a client would need: its redelivery policy, its dead-letter strategy, and what
becomes of the expired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from redelivery.model.errors import ConfigError
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.brokers.rules import Lifetime, strategy_to
from redelivery.policies.dead_letters import (
    DEFAULT_DEAD_LETTER_QUEUE,
    BrokerDeadLetterStrategy,
    CopyTo,
    DeadLetterStrategy,
    Decision,
    Discard,
    IndividualDeadLetterStrategy,
    Native,
)
from redelivery.policies.destinations.examples import sample_of
from redelivery.policies.destinations.overlaps import as_destination, is_exact
from redelivery.policies.destinations.patterns import ONE, REST
from redelivery.policies.files.report import ReadingReport
from redelivery.policies.files.xml import Element, parse
from redelivery.policies.redelivery import RedeliveryPolicy

R = TypeVar("R")
QUEUE: Final = "queue://"
TOPIC: Final = "topic://"


class Losses:
    """Sentences about what is lost, each once."""

    def __init__(self) -> None:
        self._found: dict[str, None] = {}

    def add(self, text: str) -> None:
        """Add one."""
        self._found[text] = None

    @property
    def found(self) -> tuple[str, ...]:
        """All of them, in order."""
        return tuple(self._found)


@dataclass(frozen=True, slots=True)
class Pattern:
    """``key``: as `DestinationMap` has it; ``>`` for all that no other one matches."""

    key: str
    policy: RedeliveryPolicy
    strategy: DeadLetterStrategy
    lifetime: Lifetime

    @property
    def name(self) -> str:
        """The key without ``queue://`` or ``topic://``."""
        return self.key.partition("://")[2] or self.key

    @property
    def is_one(self) -> bool:
        """True where it stands for one destination."""
        return not set(self.name.split(".")) & {ONE, REST}


def patterns(policies: BrokerPolicies) -> list[Pattern]:
    """List each pattern that a policy or a strategy is for; ``>`` last, for all others."""
    redeliveries, strategies = policies.rules.redelivery_policies(), policies.rules.dead_letter_strategies()
    keys = dict.fromkeys([*(each.key for each in redeliveries.entries), *(each.key for each in strategies.entries)])
    keys.pop(REST, None)
    found = []
    for key in (*keys, REST):
        target = as_destination(key)
        strategy = _named_place(policies, key, strategies.strategy_for(target))
        lifetime = policies.rules.lifetime(key) or Lifetime(strategy.process_expired)
        named = key.removeprefix(QUEUE) if policies.rules.of_queues else key
        found.append(Pattern(named, redeliveries.policy_for(target), strategy, lifetime))
    return found


def _named_place(policies: BrokerPolicies, key: str, strategy: DeadLetterStrategy) -> DeadLetterStrategy:
    """The queue that the file names, where a client leaves it to the broker: another broker has another one."""
    if not isinstance(strategy, BrokerDeadLetterStrategy) or not strategy.configured:
        return strategy
    if strategy.otherwise is not None:
        expired = strategy.for_expired and _named_place(policies, key, strategy.for_expired)
        return replace(strategy.otherwise, for_expired=expired, process_expired=strategy.process_expired)
    rules = policies.rules.rules_for(sample_of(key))
    if rules.dead_letter is not None and len(rules.dead_letter_queues) != 1:
        return strategy
    return strategy_to(None if rules.dead_letter is None else rules.dead_letter_queues[0])


def patterns_of_queues(policies: BrokerPolicies, losses: Losses) -> list[Pattern]:
    """List the patterns of queues, for a broker that has rules for these only."""
    found = []
    for each in patterns(policies):
        if each.key.startswith(TOPIC):
            losses.add(f"{each.key}: there are rules for queues only")
        else:
            found.append(each)
    return found


def no_times(pattern: Pattern, losses: Losses) -> None:
    """Say that times to live are not changed."""
    lifetime = pattern.lifetime
    for what, seconds in (("shortest", lifetime.least), ("longest", lifetime.most)):
        if seconds is not None:
            losses.add(f"{pattern.key}: the {what} time to live ({seconds:g} s) is lost")


def as_activemq(key: str, policy: RedeliveryPolicy, losses: Losses) -> RedeliveryPolicy:
    """Return the policy that ActiveMQ can spell: its collision avoidance leaves the first delay as it is."""
    if not policy.move_first_delay:
        return policy
    losses.add(f"{key}: collision avoidance leaves the first delay as it is, and adds up")
    cap = policy.maximum_redelivery_delay if policy.use_exponential_back_off else None
    return replace(policy, move_first_delay=False, maximum_redelivery_delay=cap)


def no_delays(pattern: Pattern, losses: Losses) -> None:
    """Say that redelivery is at once."""
    if pattern.policy.initial_redelivery_delay or pattern.policy.redelivery_delay:
        losses.add(f"{pattern.key}: the delays are lost, as this broker redelivers at once")


def decision_for(pattern: Pattern) -> Decision:
    """Return what the strategy decides of a message that failed."""
    return pattern.strategy.decide(sample_of(pattern.key), persistent=True, expired=False, native_available=True)


def survives(rules: R, write: Callable[[R], str], read: Callable[[Element, ReadingReport], R]) -> bool:
    """Say whether an XML document that is written of rules is read as the same: not each name can stand there."""
    report = ReadingReport()
    try:
        text = write(rules)
        again = read(parse(text.encode(), "made"), report)
    except ConfigError:
        return False
    return not report.problems and write(again) == text


def keeps(pattern: Pattern) -> bool:
    """Say whether it is the dead-letter queue of its own messages: what fails there has nowhere else to go."""
    decision = decision_for(pattern)
    return isinstance(decision, Discard) and not decision.discarded


def dead_letter_queue(pattern: Pattern, losses: Losses) -> str | None:
    """Return the one queue of a strategy; None where it discards."""
    decision = decision_for(pattern)
    if isinstance(pattern.strategy, IndividualDeadLetterStrategy) and not (
        pattern.is_one and isinstance(decision, CopyTo)
    ):
        losses.add(f"{pattern.key}: dead-letter queues of their own become one, {DEFAULT_DEAD_LETTER_QUEUE}")
        return DEFAULT_DEAD_LETTER_QUEUE
    if isinstance(decision, Native):
        if pattern.strategy != BrokerDeadLetterStrategy():
            losses.add(f"{pattern.key}: dead letters go to {DEFAULT_DEAD_LETTER_QUEUE}, and not where the file says")
        return DEFAULT_DEAD_LETTER_QUEUE
    return decision.destination.name if isinstance(decision, CopyTo) else None


def say_hosts(hosts: Iterable[tuple[str, Iterable[str]]], losses: Losses) -> None:
    """Say that the queues of all virtual hosts become those of one; of two with one name the first one's count."""
    seen: dict[str, str] = {}
    for at, (host, queues) in enumerate(hosts):
        if at:
            losses.add(
                f"virtual host {host!r}: its queues are among the others, and its values for all other queues are lost"
            )
        for queue in queues:
            if not is_exact(queue):
                losses.add(f"queue {queue!r} is lost: elsewhere this is not the name of one queue")
            if seen.setdefault(queue, host) != host:
                losses.add(f"virtual host {host!r}: {queue} has the values of that of {seen[queue]!r}")
