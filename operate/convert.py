"""A configuration in another format: what it means is kept, and what the other one cannot say is said.

Between brokers the way leads over what a client would need: its redelivery policies and dead-letter strategies.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from redelivery.model.errors import ConfigError
from redelivery.operate.as_json import everything
from redelivery.operate.to_python import program
from redelivery.policies.brokers.formats import FORMATS, URL, read_content, read_url
from redelivery.policies.brokers.patterns import Losses
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.brokers.rules import no_queue

_OURS: Final = ("python", "json")
TARGETS: Final = (*_OURS, *FORMATS)
"""The formats that a configuration can be converted to."""


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
