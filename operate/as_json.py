"""Explanations, simulations and differences as values that JSON holds; durations are in seconds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any

from redelivery.model.destinations import Destination, Queue, Topic
from redelivery.operate.diff import Difference
from redelivery.operate.simulate import Simulation
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.brokers.rules import Delay, DestinationRules
from redelivery.policies.destinations.address_settings import AddressSettings
from redelivery.policies.destinations.examples import OTHER, examples_by_title, examples_of
from redelivery.policies.destinations.overlaps import is_pattern, overlaps
from redelivery.policies.files.places import Setting


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
        "dead_letter_queues": list(rules.dead_letter_queues),
        "removed_because": rules.removed_because or None,
        "kept": rules.kept,
        "expired": rules.expired,
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
    """All that was read: each destination or pattern that is named, all others, the values, and what was skipped.

    A pattern is explained by an example of it that no more specific one matches; what two patterns share is there too.
    """
    titles = dict.fromkeys(policies.rules.names())
    shared = [each for each in overlaps(titles) if each not in titles]
    explained = {title: _example(title, titles, found) for title, found in examples_by_title(titles).items()}
    explained |= {title: _example(title, titles, []) for title in shared}
    named = {title: explanation(policies.explain(each)) for title, each in explained.items() if each}
    others: dict[str, Destination] = {OTHER: Queue(OTHER), f"topic://{OTHER}": Topic(OTHER)}
    return {
        "path": policies.path,
        "format": policies.format,
        "broker": policies.broker,
        "destinations": {
            **{title: each for title, each in named.items() if not is_pattern(title)},
            **{title: explanation(policies.explain(each)) for title, each in others.items()},
        },
        "patterns": {title: each for title, each in named.items() if is_pattern(title)},
        "rules": _values(policies.rules),
        "unread": [{"name": each.name, "place": str(each.place)} for each in policies.unread],
        "problems": [{"text": each.text, "place": str(each.place)} for each in policies.problems],
    }


def _example(title: str, titles: Iterable[str], found: list[Destination]) -> Destination | None:
    """One that the title alone is about, else any; None where it is none of ours."""
    return next(iter(found or examples_of(title, titles)), None)


def _values(value: Any) -> Any:
    """What a file sets, by the names that it has here, and without its places."""
    if isinstance(value, Destination):
        return str(value)
    if isinstance(value, AddressSettings):
        return {name: getattr(value, name) for name in sorted(value.fields_set)}
    if isinstance(value, tuple):
        return [_values(each) for each in value]
    if not is_dataclass(value):
        return value
    held = {each.name: _values(getattr(value, each.name)) for each in fields(value) if each.init and each.compare}
    return {"type": type(value).__name__, **held}


def _delay(delay: Delay) -> dict[str, float]:
    return {"seconds": delay.seconds, "least": delay.least, "most": delay.most}


def _setting(setting: Setting) -> dict[str, str | None]:
    place = str(setting.place) if setting.place else None
    return {"name": setting.name, "value": setting.value, "source": setting.source, "place": place}
