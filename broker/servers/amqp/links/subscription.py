"""Links without a source: they find a durable subscription by its name, and a client that closes one removes it."""

from __future__ import annotations

from typing import Any, Final

import proton

from redelivery.broker.core import Core
from redelivery.broker.servers.amqp.codec.terminus import DIALECT, subscription_of
from redelivery.broker.servers.amqp.links.link import BrokerLink
from redelivery.model.errors import InvalidDestinationError, JMSError
from redelivery.transports.amqp.codec.names import to_address

_GLOBAL: Final = "|global"  # how JMS clients end the name of a link to one that is of no client id


class SubscriptionLink(BrokerLink):
    """As JMS clients unsubscribe: no messages come by it."""

    def attach(self) -> None:
        """See `BrokerLink.attach`."""
        name, owner = self._sought
        topic = self.session.core.call(lambda engine, _now: engine.topic_of(name, owner))
        source = self.handle.source
        source.type = proton.Terminus.SOURCE
        source.address = to_address(topic, DIALECT)
        source.durability, source.expiry_policy = proton.Terminus.DELIVERIES, proton.Terminus.EXPIRE_NEVER
        self.handle.target.copy(self.handle.remote_target)
        self.handle.open()

    def on_closed(self) -> JMSError | None:
        """See `BrokerLink.on_closed`."""
        return remove_subscription(self.session.core, *self._sought)

    def on_delivery(self, handle: Any) -> None:
        """See `BrokerLink.on_delivery`: none is sent."""

    def release(self) -> None:
        """See `BrokerLink.release`: it holds nothing."""

    @property
    def _sought(self) -> tuple[str, str | None]:
        link = str(self.handle.name)
        return subscription_of(link), None if link.endswith(_GLOBAL) else self.session.client_id


def remove_subscription(core: Core, name: str, owner: str | None) -> JMSError | None:
    """Remove a durable subscription; why it was not."""
    try:
        core.call(lambda engine, _now: engine.remove_subscription(name, owner))
    except InvalidDestinationError:
        return None  # it is gone already
    except JMSError as error:
        return error
    return None
