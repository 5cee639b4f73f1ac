"""RabbitMQ 3 and 4 by each protocol, with their management beside it: for tests of what is asked of that."""

from __future__ import annotations

from typing import Final

import pytest

import redelivery
from redelivery import Message, Queue
from redelivery.operate.management.opening import management_of
from redelivery.operate.management.rabbitmq import RabbitManagement
from redelivery.testing.brokers.real import RealBroker

SITES: Final = [f"{protocol} {broker}" for broker in ("rabbitmq", "rabbitmq4") for protocol in ("stomp", "amqp")]
# Of a fixture `site` that has them as parameters: RabbitMQ 3 has no transactions over AMQP, and little to say there.
OVER_STOMP: Final = pytest.mark.parametrize("site", ["stomp rabbitmq", "stomp rabbitmq4"], indirect=True)
SAYS_MORE: Final = pytest.mark.parametrize("site", [each for each in SITES if each != "amqp rabbitmq"], indirect=True)


def broker_of(request: pytest.FixtureRequest) -> tuple[RealBroker, str]:
    """The broker and the protocol that a fixture's parameter, one of `SITES`, names."""
    protocol, broker = request.param.split()
    if protocol == "amqp":
        pytest.importorskip("proton", reason="AMQP is missing")
    return request.getfixturevalue(broker), protocol


def url_of(broker: RealBroker, protocol: str) -> str:
    return broker.stomp_url if protocol == "stomp" else broker.amqp_url


def managed_by(connection: redelivery.Connection) -> RabbitManagement:
    found = management_of(connection)
    assert isinstance(found, RabbitManagement)
    return found


class ManagedSite:
    """A broker by one protocol, a connection to it, and its management."""

    def __init__(self, broker: RealBroker, protocol: str) -> None:
        self.broker, self.protocol, self.is_4 = broker, protocol, broker.name == "rabbitmq4"
        self.url = url_of(broker, protocol)
        self.http = broker.http_url
        self.connection = redelivery.connect(self.url, management=self.http)
        self.management = managed_by(self.connection)

    def messages(self, queue: str) -> list[Message]:
        """What the queue holds, received and acknowledged."""
        found: list[Message] = []
        with self.connection.session("client") as session:
            consumer = session.consumer(Queue(queue))
            while (message := consumer.receive(timeout=0.3 if found else 1)) is not None:
                found.append(message)
            session.acknowledge()
        return found
