"""The embedded broker: a pure engine behind two doors, ``vm://`` within the process and STOMP on a socket (floor 3)."""

from redelivery.broker.embedded import EmbeddedBroker
from redelivery.broker.engine.config import BrokerConfig

__all__ = ["BrokerConfig", "EmbeddedBroker"]
