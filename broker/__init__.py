"""The embedded broker: a pure engine behind ``vm://`` in the process, and STOMP and AMQP 1.0 on sockets (floor 3)."""

from redelivery.broker.embedded import EmbeddedBroker
from redelivery.broker.engine.config import BrokerConfig

__all__ = ["BrokerConfig", "EmbeddedBroker"]
