"""Which writer a broker's rules need."""

from __future__ import annotations

from redelivery.policies.brokers.artemis import ArtemisRules
from redelivery.policies.brokers.broker_j import BrokerJRules
from redelivery.policies.brokers.classic import ClassicRules
from redelivery.policies.brokers.client_url import ClientRules
from redelivery.policies.brokers.qpid import QpidRules
from redelivery.policies.brokers.rabbitmq import RabbitRules
from redelivery.policies.brokers.rules import Rules
from redelivery.policies.writers.activemq import write_activemq
from redelivery.policies.writers.artemis import write_artemis
from redelivery.policies.writers.broker_j import write_broker_j
from redelivery.policies.writers.client_url import write_client_url
from redelivery.policies.writers.qpid import write_qpid
from redelivery.policies.writers.rabbitmq import write_rabbitmq


def write_rules(rules: Rules) -> str:
    """The rules in their broker's own format; what else that broker needs must be added.

    Raises:
        ConfigError: the format cannot hold a value.
    """
    match rules:
        case ArtemisRules():
            return write_artemis(rules)
        case ClassicRules():
            return write_activemq(rules)
        case QpidRules():
            return write_qpid(rules)
        case BrokerJRules():
            return write_broker_j(rules)
        case RabbitRules():
            return write_rabbitmq(rules)
        case ClientRules():
            return write_client_url(rules)
    raise TypeError(f"{type(rules).__name__} are not rules of a broker known here")
