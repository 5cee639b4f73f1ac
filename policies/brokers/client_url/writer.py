"""Writes a connection URL of ActiveMQ's Java client."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from redelivery.policies.brokers.classic.writer import policy_options
from redelivery.policies.brokers.client_url.rules import ClientRules
from redelivery.policies.prefetch import BEAN

_HOST: Final = "tcp://localhost:61616"


def write_client_url(rules: ClientRules) -> str:
    """Write the URL, of a broker on this host."""
    options = {f"jms.redeliveryPolicy.{name}": value for name, value in policy_options(rules.policy).items()}
    if rules.prefetch is not None:
        for name, field in BEAN.items():
            number = getattr(rules.prefetch, field, None)
            if number is not None:
                options[f"jms.prefetchPolicy.{name}"] = str(number)
    if rules.non_blocking is not None:
        options["jms.nonBlockingRedelivery"] = str(rules.non_blocking).lower()
    query = "&".join(f"{name}={quote(value)}" for name, value in options.items())
    return f"{_HOST}?{query}\n" if query else f"{_HOST}\n"
