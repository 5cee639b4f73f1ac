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
from redelivery.policies.brokers.formats import FORMATS
from redelivery.policies.brokers.patterns import Losses
from redelivery.policies.brokers.policies import BrokerPolicies

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

    Raises:
        ConfigError: there is no such format, or it cannot hold a value.
    """
    if to not in _OURS and to not in FORMATS:
        raise ConfigError(f"to={to!r}: use one of {', '.join(TARGETS)}")
    losses = Losses()
    own = FORMATS[policies.format]
    if to == "json":
        text = json.dumps(everything(policies), indent=2, ensure_ascii=False) + "\n"
    elif to == policies.format:
        text = own.write(policies.rules)
    else:
        made = FORMATS.get(to)
        text = program(policies, losses) if made is None else made.write(made.convert_to(policies, losses))
        own.unsaid(policies.rules, to, losses)
    if to != "json":
        for each in policies.not_read:
            losses.add(each.line)
    return Conversion(text, losses.found)
