"""Explanations, simulations and differences as values that JSON holds; durations are in seconds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any

from redelivery.model.destinations import Destination, Queue, Topic
from redelivery.operate.diff import Difference
from redelivery.operate.explain import Explained
from redelivery.operate.simulate import Simulation
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.brokers.rules import DestinationRules
from redelivery.policies.destinations.address_settings import AddressSettings
from redelivery.policies.destinations.examples import OTHER, examples_by_title, examples_of
from redelivery.policies.destinations.overlaps import is_pattern, overlaps
from redelivery.policies.files.places import Place, Unread


def explanation(rules: DestinationRules) -> dict[str, Any]:
    """Say what happens to a message of one destination, and why."""
    held = _held(
        rules,
        *("destination", "broker", "summary", "counts", "maximum", "delays", "dead_letter", "dead_letter_queues"),
        *("removed_because", "kept", "expired", "matched", "settings", "notes"),
    )
    return {**held, "removed_because": rules.removed_because or None, "not_read": _not_read(rules.not_read)}


def explained(found: Explained) -> dict[str, Any]:
    """Show what a broker's file says of a destination; with a client, what that says, and both together."""
    if found.client is None or found.together is None:
        return explanation(found.broker)
    together = _held(found.together, "total", "most_attempts", "ends", "wins", "warnings")
    return {**explanation(found.broker), "client": explanation(found.client), "together": together}


def simulation(simulated: Simulation) -> dict[str, Any]:
    """Show the timeline of a message that fails."""
    shown = ("total", "most_attempts", "ends", "wins", "warnings", "attempts")
    held = {**_held(simulated.rules, "destination", "broker"), **_held(simulated, *shown)}
    return {**held, "not_read": _not_read(simulated.rules.not_read)}


def differences(found: tuple[Difference, ...]) -> list[dict[str, Any]]:
    """List what two configurations treat differently."""
    return [
        {
            "destination": each.title,
            "example": _plain(each.example),
            "before": each.before.summary if each.before else None,
            "after": each.after.summary if each.after else None,
            "changes": _plain(each.changes),
        }
        for each in found
    ]


def everything(policies: BrokerPolicies) -> dict[str, Any]:
    """Return all that was read: each destination or pattern that is named, all others, the values, what was skipped.

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
        "not_read": _not_read(policies.not_read),
        "problems": _plain(policies.problems),
    }


def _not_read(unread: Iterable[Unread]) -> list[dict[str, str]]:
    return [each.as_dict() for each in unread]


def _example(title: str, titles: Iterable[str], found: list[Destination]) -> Destination | None:
    """Return one that the title alone is about, else any; None where it is none of ours."""
    return next(iter(found or examples_of(title, titles)), None)


def _values(value: Any) -> Any:
    """Return what a file sets, by the names that it has here, and without its places."""
    if isinstance(value, AddressSettings):
        return {name: getattr(value, name) for name in sorted(value.fields_set)}
    if isinstance(value, tuple):
        return [_values(each) for each in value]
    if isinstance(value, Destination) or not is_dataclass(value):
        return _plain(value)
    held = {each.name: _values(getattr(value, each.name)) for each in fields(value) if each.init and each.compare}
    return {"type": type(value).__name__, **held}


def _plain(value: Any) -> Any:
    if isinstance(value, Destination | Place):
        return str(value) or None
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return _held(value, *(each.name for each in fields(value))) if is_dataclass(value) else value


def _held(value: object, *names: str) -> dict[str, Any]:
    return {name: _plain(getattr(value, name)) for name in names}
