"""The embedded broker: a pure engine behind ``vm://`` in the process, and STOMP and AMQP 1.0 on sockets (floor 3).

`embedded` is the broker that an application starts, `registry` finds it by name. `engine` has the rules; `core` makes
them safe for threads, with an `alarm` for what becomes due. `servers` and `vm` are the ways in; `faults` decides for
all of them which step is hit by a planned fault. `views` shows stored messages as the model's, `subscriptions` those
that have a name.
"""

from redelivery.broker.embedded import EmbeddedBroker
from redelivery.broker.engine.config import BrokerConfig
from redelivery.broker.subscriptions import NamedSubscription

__all__ = ["BrokerConfig", "EmbeddedBroker", "NamedSubscription"]
