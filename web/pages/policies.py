"""The rules of redelivery: of the file that the console was given, or as the broker reports them."""

from __future__ import annotations

from typing import Final

from redelivery.operate.doctor.doctor import examine, own_rules
from redelivery.operate.explain import explain
from redelivery.operate.simulate import simulate
from redelivery.operate.table import table
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.web.asked import Asked, Templated
from redelivery.web.drawing import marks

_LISTED: Final = 500  # rows of a table


def policies(asked: Asked) -> Templated:
    """Show a row for each destination and pattern: how often a message is tried, over how long, and what then is."""
    rules, unchecked = _rules(asked)
    if rules is None:
        return Templated("policies.html", {"rules": None, "unchecked": unchecked})
    found = table(rules)
    rows = [(each, str(each.rules.destination), marks(simulate(rules, each.rules.destination))) for each in found.rows]
    return Templated("policies.html", {"rules": rules, "rows": rows[:_LISTED], "not_read": found.not_read})


def policy(asked: Asked) -> Templated:
    """Show the attempts of one destination's messages, and which settings lead to them."""
    name = asked.text("destination").strip()
    rules, unchecked = _rules(asked)
    if rules is None:
        return Templated("policies.html", {"rules": None, "unchecked": unchecked})
    found = simulate(rules, name)
    values = {"rules": rules, "name": name, "simulated": found, "marks": marks(found), "why": str(explain(rules, name))}
    return Templated("policy.html", values)


def doctor(asked: Asked) -> Templated:
    """Show what loses messages at this broker, or will."""
    settings, site = asked.settings, asked.site
    report = examine(
        site.url, settings.config, queues=settings.queues, watch=0, connect_timeout=5.0, options=site.options
    )
    return Templated("doctor.html", {"report": report})


def _rules(asked: Asked) -> tuple[BrokerPolicies | None, list[str]]:
    """The rules that are known; None: neither a file was given, nor does the broker say any; and why it does not."""
    if asked.settings.config is not None:
        return asked.settings.config, []
    unchecked: list[str] = []
    with asked.site.connect() as connection:
        return own_rules(connection, asked.settings.queues, unchecked), unchecked
