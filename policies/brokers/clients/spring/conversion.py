"""Other rules as a client's: the redelivery policies by destination."""

from __future__ import annotations

from redelivery.policies.brokers.clients.url.conversion import say_of_brokers
from redelivery.policies.brokers.clients.url.rules import ClientEntry, ClientRules
from redelivery.policies.brokers.patterns import Losses, as_activemq, patterns
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.destinations.patterns import REST

_SCHEMES = ("queue", "topic")


def to_spring(policies: BrokerPolicies, losses: Losses) -> ClientRules:
    """Take the policy of each pattern; one for queues and topics alike is written for each of the two."""
    rules = policies.rules
    if isinstance(rules, ClientRules):
        return rules
    entries: dict[str, ClientEntry] = {}
    for each in patterns(policies):
        say_of_brokers(each, losses, "a client's file")
        if each.key == REST:
            continue
        keys = [each.key] if "://" in each.key else [f"{scheme}://{each.key}" for scheme in _SCHEMES]
        for key in keys:
            entries.setdefault(key, ClientEntry(key, as_activemq(each.key, each.policy, losses)))
    default = as_activemq(REST, policies.redelivery_policies.default, losses)
    return ClientRules(default, entries=tuple(entries.values()))
