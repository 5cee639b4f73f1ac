"""Writes a connection URL of ActiveMQ's Java client."""

from __future__ import annotations

from urllib.parse import quote

from redelivery.policies.activemq.redelivery_names import BEAN as REDELIVERY_BEAN
from redelivery.policies.brokers.clients.url.rules import ClientRules
from redelivery.policies.connection_url import NON_BLOCKING, PREFETCH, REDELIVERY
from redelivery.policies.kinds import FLAG, changed
from redelivery.policies.prefetch import BEAN
from redelivery.policies.redelivery import RedeliveryPolicy


def write_client_url(rules: ClientRules) -> str:
    """Write the URL, of a broker on this host."""
    policy = changed(REDELIVERY_BEAN, rules.policy, RedeliveryPolicy())
    options = {REDELIVERY + name: value for name, value in policy.items()}
    numbers = {name: getattr(rules.prefetch, field, None) for name, field in BEAN.items()}
    options |= {PREFETCH + name: str(number) for name, number in numbers.items() if number is not None}
    if rules.non_blocking is not None:
        options[NON_BLOCKING] = FLAG.spell(rules.non_blocking)
    query = "&".join(f"{name}={quote(value)}" for name, value in options.items())
    return f"tcp://localhost:61616?{query}\n" if query else "tcp://localhost:61616\n"
