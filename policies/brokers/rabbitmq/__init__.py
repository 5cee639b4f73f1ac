"""RabbitMQ's rules: policies by regular expression and priority, arguments of queues, and where its exchanges lead.

`values` is what a file of definitions holds. `effective` says which of a queue's arguments, its policy and the
operator's one count, and `routes` to which queues an exchange leads. `after` follows a dead letter that does not stay
where it went. `rules` puts all together for one queue.
"""

from redelivery.policies.brokers.rabbitmq.rules import RabbitRules
from redelivery.policies.brokers.rabbitmq.values import (
    CLASSIC,
    DEFAULT_DELIVERY_LIMIT,
    KINDS,
    QUORUM,
    RESTRICTING,
    STREAM,
    RabbitBinding,
    RabbitExchange,
    RabbitHost,
    RabbitLevel,
    RabbitPolicy,
    RabbitQueue,
)

__all__ = [
    "CLASSIC",
    "DEFAULT_DELIVERY_LIMIT",
    "KINDS",
    "QUORUM",
    "RESTRICTING",
    "STREAM",
    "RabbitBinding",
    "RabbitExchange",
    "RabbitHost",
    "RabbitLevel",
    "RabbitPolicy",
    "RabbitQueue",
    "RabbitRules",
]
