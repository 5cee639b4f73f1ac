"""A configuration in another format: what it means is kept, and what the other one cannot say is said.

Between brokers the way leads over what a client would need: its redelivery policies and dead-letter strategies.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from redelivery.model.errors import ConfigError
from redelivery.operate.as_json import everything
from redelivery.operate.conversion import address_settings, to_brokers, to_python
from redelivery.operate.conversion.losses import Losses
from redelivery.operate.conversion.unsaid import say_unsaid
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.brokers.rules import Rules
from redelivery.policies.writers.formats import write_rules

_RULES: Final[Mapping[str, Callable[[BrokerPolicies, Losses], Rules]]] = MappingProxyType(
    {
        "activemq": to_brokers.to_activemq,
        "artemis": address_settings.to_artemis,
        "hornetq": address_settings.to_hornetq,
        "qpid": to_brokers.to_qpid,
        "broker_j": to_brokers.to_broker_j,
        "rabbitmq": to_brokers.to_rabbitmq,
        "uri": to_brokers.to_client_url,
    }
)
TARGETS: Final = ("python", "json", *_RULES)
"""What a configuration can be converted to."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """``text``: in the other format. ``lost``: what it does not say, a sentence each."""

    text: str
    lost: tuple[str, ...]


def convert(policies: BrokerPolicies, to: str) -> Conversion:
    """The same rules in another format.

    Raises:
        ConfigError: there is no such format, or it cannot hold a value.
    """
    if to not in TARGETS:
        raise ConfigError(f"to={to!r}: use one of {', '.join(TARGETS)}")
    losses = Losses()
    if to == "json":
        text = json.dumps(everything(policies), indent=2, ensure_ascii=False) + "\n"
    elif to == policies.format:
        text = write_rules(policies.rules)
    else:
        text = to_python.program(policies, losses) if to == "python" else write_rules(_RULES[to](policies, losses))
        say_unsaid(policies.rules, to, losses)
    return Conversion(text, losses.found)
