"""Chooses the broker's rules: those of the configuration file that was given, else ActiveMQ Classic's."""

from __future__ import annotations

from redelivery.broker.engine.config import BrokerConfig
from redelivery.broker.engine.rules.artemis import ArtemisBroker
from redelivery.broker.engine.rules.classic import ClassicBroker
from redelivery.broker.engine.rules.limits import CHARGES, CountingBroker
from redelivery.broker.engine.rules.rules import EngineRules
from redelivery.policies.brokers.artemis.rules import ArtemisRules


def rules_of(config: BrokerConfig) -> EngineRules:
    """Return the rules."""
    found = config.rules
    if isinstance(found, ArtemisRules):
        return ArtemisBroker(found)
    if found is not None and found.broker in CHARGES:
        return CountingBroker(found)
    return ClassicBroker(config)
