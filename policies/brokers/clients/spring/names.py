"""The classes of ActiveMQ's client that a file of beans can name, and the elements that stand for them."""

from __future__ import annotations

import re
from typing import Final, Literal, TypeAlias

Kind: TypeAlias = Literal["factory", "returning", "policy", "map", "prefetch", "queue", "topic", "other"]
"""``returning``: a factory of a client that redelivers nothing itself, such as Artemis' own."""

_CLASSES: Final[dict[str, Kind]] = {
    "ActiveMQConnectionFactory": "factory",
    "ActiveMQXAConnectionFactory": "factory",
    "ActiveMQSslConnectionFactory": "factory",
    "ActiveMQXASslConnectionFactory": "factory",
    "PooledConnectionFactory": "factory",  # which make one of their brokerURL, if they have one
    "XaPooledConnectionFactory": "factory",
    "JcaPooledConnectionFactory": "factory",
    "ActiveMQComponent": "factory",  # Camel's
    "ActiveMQConfiguration": "factory",
    "RedeliveryPolicy": "policy",
    "RedeliveryPolicyMap": "map",
    "ActiveMQPrefetchPolicy": "prefetch",
    "ActiveMQQueue": "queue",
    "ActiveMQTopic": "topic",
}
_ELEMENTS: Final[dict[str, Kind]] = {
    "connectionFactory": "factory",
    "xaConnectionFactory": "factory",
    "pooledConnectionFactory": "factory",
    "redeliveryPolicy": "policy",
    "redeliveryPolicyMap": "map",
    "prefetchPolicy": "prefetch",
    "queue": "queue",
    "topic": "topic",
}
_OURS: Final = re.compile(r"org\.apache\.(activemq|camel\.component\.activemq)\.")
_RETURNING: Final = re.compile(r"org\.(apache\.activemq\.artemis|hornetq)\..*ConnectionFactory")

MADE_OF_URL: Final = ("PooledConnectionFactory", "ActiveMQComponent", "ActiveMQConfiguration")
"""The ends of the names of what is a factory only if it has a URL."""

CONCERNS: Final = re.compile(r"redel|dlq|dead_?l", re.IGNORECASE)
"""A property of this kind that is unknown must not be skipped in silence."""


def kind_of_class(name: str) -> Kind:
    """Return what a class is."""
    if _RETURNING.fullmatch(name):
        return "returning"
    return _CLASSES.get(name.rpartition(".")[2], "other") if _OURS.match(name) else "other"


def kind_of_element(name: str) -> Kind:
    """Return what an element of ActiveMQ's own namespace is."""
    return _ELEMENTS.get(name, "other")
