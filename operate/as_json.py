"""Explanations, simulations and differences as values that JSON holds; durations are in seconds."""

from __future__ import annotations

from typing import Any

from redelivery.operate.diff import Difference
from redelivery.operate.examples import example_of, is_pattern
from redelivery.operate.simulate import Simulation
from redelivery.policies.brokers.places import Setting
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.brokers.rules import Delay, DestinationRules


def explanation(rules: DestinationRules) -> dict[str, Any]:
    """What becomes of a message of one destination, and why."""
    return {
        "destination": str(rules.destination),
        "broker": rules.broker,
        "summary": rules.summary,
        "counts": rules.counts,
        "maximum": rules.maximum,
        "delays": [_delay(each) for each in rules.delays],
        "dead_letter": rules.dead_letter,
        "removed_because": rules.removed_because or None,
        "matched": [{"title": each.title, "place": str(each.place or "") or None} for each in rules.matched],
        "settings": [_setting(each) for each in rules.settings],
        "notes": list(rules.notes),
    }


def simulation(simulated: Simulation) -> dict[str, Any]:
    """The timeline of a message that fails."""
    return {
        "destination": str(simulated.rules.destination),
        "broker": simulated.rules.broker,
        "total": simulated.total,
        "most_attempts": simulated.most_attempts,
        "ends": simulated.ends,
        "wins": simulated.wins,
        "warnings": list(simulated.warnings),
        "attempts": [
            {"number": each.number, "at": each.at, "least": each.least, "most": each.most, "by": each.by}
            for each in simulated.attempts
        ],
    }


def differences(found: tuple[Difference, ...]) -> list[dict[str, Any]]:
    """What two configurations treat differently."""
    return [
        {
            "destination": each.title,
            "example": str(each.example) if each.example else None,
            "before": each.before.summary if each.before else None,
            "after": each.after.summary if each.after else None,
            "changes": [{"name": one.name, "before": one.before, "after": one.after} for one in each.changes],
        }
        for each in found
    ]


def everything(policies: BrokerPolicies) -> dict[str, Any]:
    """All that was read: each destination or pattern that is named, all others, and what was skipped."""
    names = [*policies.rules.names(), "any.other.destination"]
    named = {name: example_of(name) for name in names if not is_pattern(name)}
    return {
        "path": policies.path,
        "format": policies.format,
        "broker": policies.broker,
        "destinations": {name: explanation(policies.explain(each)) for name, each in named.items() if each},
        "patterns": [name for name in names if is_pattern(name)],
        "unread": [{"name": each.name, "place": str(each.place)} for each in policies.unread],
        "problems": [{"text": each.text, "place": str(each.place)} for each in policies.problems],
    }


def _delay(delay: Delay) -> dict[str, float]:
    return {"seconds": delay.seconds, "least": delay.least, "most": delay.most}


def _setting(setting: Setting) -> dict[str, str | None]:
    place = str(setting.place) if setting.place else None
    return {"name": setting.name, "value": setting.value, "source": setting.source, "place": place}
