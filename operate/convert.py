"""A configuration in another format: what it means is kept, and what the other one cannot say is said.

Between brokers the way leads over what a client would need: its redelivery policies and dead-letter strategies.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass, fields
from typing import Any, Final

from redelivery.model.destinations import Destination
from redelivery.model.errors import ConfigError
from redelivery.operate.as_json import everything
from redelivery.policies.activemq.redelivery_names import BEAN
from redelivery.policies.brokers.formats import FORMATS, URL, read_content, read_url
from redelivery.policies.brokers.patterns import Losses, no_times, patterns
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.brokers.rules import no_queue
from redelivery.policies.dead_letters import DeadLetterStrategy
from redelivery.policies.destinations.redelivery_map import RedeliveryPolicyMap
from redelivery.policies.destinations.strategy_map import DeadLetterStrategyMap
from redelivery.policies.kinds import changed
from redelivery.policies.prefetch import PrefetchPolicy
from redelivery.policies.redelivery import RedeliveryPolicy

_OURS: Final = ("python", "json")
TARGETS: Final = (*_OURS, *FORMATS)
"""The formats that a configuration can be converted to."""
_HIDDEN = ("destination", "pre_dispatch_check_set")


@dataclass(frozen=True, slots=True)
class Conversion:
    """``text``: in the other format. ``lost``: what it does not say, a sentence each."""

    text: str
    lost: tuple[str, ...]


def convert(policies: BrokerPolicies, to: str) -> Conversion:
    """Write the same rules in another format.

    ``policies``: what `redelivery.policies.read` has read. ``to``: a format of `redelivery.policies.read`, ``python``
    for a program, or ``json``.
    Each queue that gets dead letters, or what expires, is made by what is written, or a sentence of ``lost`` names it.

    Raises:
        ConfigError: there is no such format, or it cannot hold a value.
    """
    if to not in _OURS and to not in FORMATS:
        raise ConfigError(f"to={to!r}: use one of {', '.join(TARGETS)}")
    losses = Losses()
    if to == "json":
        text = json.dumps(everything(policies), indent=2, ensure_ascii=False) + "\n"
    else:
        text = program(policies, losses) if to == "python" else _document(policies, to, losses)
        if to != policies.format:
            FORMATS[policies.format].unsaid(policies.rules, to, losses)
        for each in policies.not_read:
            losses.add(each.line)
    return Conversion(text, losses.found)


def _document(policies: BrokerPolicies, to: str, losses: Losses) -> str:
    """Write a broker's document, and read it again."""
    made = FORMATS[to]
    rules = policies.rules if to == policies.format else made.convert_to(policies, losses)
    text = made.write(rules)
    again = (
        read_url(text.strip()) if to == URL else read_content(text.encode(), f"{to}, as it would be written", format=to)
    )
    if made.write(again.rules) != text:
        raise ConfigError(f"{to} cannot hold these rules: what would be written means something else there")
    for target in rules.unmade() if to != policies.format else ():
        losses.add(no_queue(target))
    return text


def program(policies: BrokerPolicies, losses: Losses) -> str:
    """Write assignments of ``redelivery_policies`` and ``dead_letter_strategies``, for `redelivery.connect`.

    Of a client's URL also ``prefetch`` and ``non_blocking_redelivery``, where it has them.
    """
    for each in patterns(policies):
        no_times(each, losses)
    redeliveries, strategies = policies.redelivery_policies, policies.dead_letter_strategies
    lines = [f"# {policies.path} ({policies.broker})", "import redelivery", ""]
    lines += ["redelivery_policies = redelivery.RedeliveryPolicyMap(", *_map(redeliveries)]
    lines += ["dead_letter_strategies = redelivery.DeadLetterStrategyMap(", *_map(strategies)]
    if policies.rules.prefetch is not None:
        lines.append(f"prefetch = {_call(policies.rules.prefetch)}")
    if policies.rules.non_blocking is not None:
        lines.append(f"non_blocking_redelivery = {policies.rules.non_blocking}")
    return "\n".join(lines) + "\n"


def _map(values: RedeliveryPolicyMap | DeadLetterStrategyMap) -> list[str]:
    entries: dict[str, Any] = {entry.key: entry.value for entry in values.entries}  # a key may join several patterns
    lines = ["    {", *(f"        {key!r}: {_call(each)}," for key, each in entries.items()), "    },"]
    if isinstance(values, DeadLetterStrategyMap) or values.has_default:
        lines.append(f"    default={_call(values.default)},")
    return [*lines, ")"]


def _call(value: RedeliveryPolicy | DeadLetterStrategy | PrefetchPolicy | None) -> str:
    """Write the call that makes a value: what differs from the defaults."""
    if value is None:
        return "None"
    usual = type(value)()
    given = {
        field.name: getattr(value, field.name)
        for field in fields(value)
        if field.init and field.name not in _HIDDEN and getattr(value, field.name) != getattr(usual, field.name)
    }
    if isinstance(value, RedeliveryPolicy):
        if not given.keys().isdisjoint(("back_off_multiplier", "maximum_redelivery_delay")):
            given["use_exponential_back_off"] = value.use_exponential_back_off
        if not given.keys().isdisjoint(("collision_avoidance_percent", "move_first_delay")):
            given["use_collision_avoidance"] = value.use_collision_avoidance
        if not _is_accepted(given):
            return f"redelivery.RedeliveryPolicy.from_activemq({changed(BEAN, value, usual)})"
    arguments = ", ".join(f"{name}={_shown(each)}" for name, each in given.items())
    return f"redelivery.{type(value).__name__}({arguments})"


def _is_accepted(given: dict[str, Any]) -> bool:
    """Say whether Python's names take what ActiveMQ's do, such as a multiplier below 1."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            RedeliveryPolicy(**given)
        except ConfigError:
            return False
    return True


def _shown(value: Any) -> str:
    if isinstance(value, Destination):
        return f"redelivery.{value!r}"
    return _call(value) if isinstance(value, DeadLetterStrategy) else repr(value)
