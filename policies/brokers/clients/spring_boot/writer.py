"""Writes an ``application.yml`` of Spring Boot, to which what else it needs must be added; and makes it of others."""

from __future__ import annotations

from dataclasses import replace

from redelivery.model.errors import ConfigError
from redelivery.policies.brokers.clients.url.conversion import to_client_url
from redelivery.policies.brokers.clients.url.rules import ClientRules
from redelivery.policies.brokers.clients.url.writer import write_client_url
from redelivery.policies.brokers.patterns import Losses, patterns
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.destinations.patterns import REST
from redelivery.policies.files.yaml_text import quoted
from redelivery.policies.kinds import FLAG


def to_spring_boot(policies: BrokerPolicies, losses: Losses) -> ClientRules:
    """Take the policy of all destinations.

    Raises:
        ConfigError: some destinations have another one, which Spring Boot has no property for.
    """
    default = policies.redelivery_policies.default
    others = [each.key for each in patterns(policies) if each.key != REST and each.policy != default]
    if others:
        which = ", ".join(others[:3]) + (", …" if len(others) > 3 else "")
        what = f"Spring Boot has one redelivery policy for all destinations, and that of {which} is another one"
        raise ConfigError(f"{what}: convert it to spring")
    return to_client_url(policies, losses)


def write_spring_boot(rules: ClientRules) -> str:
    """Write the document. Raises ConfigError: some destinations have a policy of their own."""
    if rules.entries:
        raise ConfigError("Spring Boot has one redelivery policy for all destinations: write it as beans of Spring")
    if rules.returning:
        return f"spring:\n  artemis:\n    broker-url: {quoted('tcp://localhost:61616')}\n"
    url = write_client_url(replace(rules, non_blocking=None)).strip()
    lines = ["spring:", "  activemq:", f"    broker-url: {quoted(url)}"]
    if rules.non_blocking is not None:
        lines.append(f"    non-blocking-redelivery: {FLAG.spell(rules.non_blocking)}")
    return "\n".join(lines) + "\n"
