"""Other rules as a connection URL, and what others leave out of what a URL says."""

from __future__ import annotations

from redelivery.policies.brokers.client_url.rules import ClientRules
from redelivery.policies.brokers.patterns import Losses, decision_for, no_times, patterns
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.dead_letters import Native
from redelivery.policies.destinations.patterns import REST


def to_client_url(policies: BrokerPolicies, losses: Losses) -> ClientRules:
    """Take the policy of all destinations that are not named: a URL has one."""
    default = policies.redelivery_policies.default
    for each in patterns(policies):
        if each.key != REST and each.policy != default:
            losses.add(f"a URL has one policy for all destinations: that of {each.key} is lost")
        if not isinstance(decision_for(each), Native):
            losses.add("a URL says nothing about dead letters")
        no_times(each, losses)
    return ClientRules(default)


def say_unsaid(rules: ClientRules, to: str, losses: Losses) -> None:
    """Say what is about its consumers."""
    if to == "python":
        return
    if rules.prefetch is not None:
        losses.add("the prefetch of consumers is lost")
    if rules.non_blocking is not None:
        losses.add(f"jms.nonBlockingRedelivery = {str(rules.non_blocking).lower()} is lost")
