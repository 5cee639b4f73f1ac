"""Other rules as a connection URL, and what others leave out of what a URL says."""

from __future__ import annotations

from redelivery.model.errors import ConfigError
from redelivery.policies.brokers.clients.url.rules import ClientRules
from redelivery.policies.brokers.patterns import Losses, Pattern, as_activemq, decision_for, no_times, patterns
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.dead_letters import Native
from redelivery.policies.destinations.patterns import REST

_OF_CLIENTS = ("uri", "spring", "spring_boot")


def to_client_url(policies: BrokerPolicies, losses: Losses) -> ClientRules:
    """Take the policy of all destinations that are not named: a URL has one."""
    default, rules = policies.redelivery_policies.default, policies.rules
    for each in patterns(policies):
        if each.key != REST and each.policy != default:
            losses.add(f"a URL has one policy for all destinations: that of {each.key} is lost")
        say_of_brokers(each, losses, "a URL")
    default = as_activemq(REST, default, losses)
    if isinstance(rules, ClientRules):
        return ClientRules(default, rules.prefetch, rules.non_blocking)
    return ClientRules(default)


def say_of_brokers(pattern: Pattern, losses: Losses, client: str) -> None:
    """Say what a broker decides, and no client."""
    if not isinstance(decision_for(pattern), Native):
        losses.add(f"{client} says nothing about dead letters")
    no_times(pattern, losses)


def say_unsaid(rules: ClientRules, to: str, losses: Losses) -> None:
    """Say what is about its consumers. Raises ConfigError: it is a client that redelivers nothing by itself."""
    if rules.returning:
        raise ConfigError("this client has no redelivery of its own that could be converted: convert its broker's file")
    if to in ("python", *_OF_CLIENTS):
        return
    if rules.prefetch is not None:
        losses.add("the prefetch of consumers is lost")
    if rules.non_blocking is not None:
        losses.add(f"jms.nonBlockingRedelivery = {str(rules.non_blocking).lower()} is lost")
