"""One broker for a module, emptied before each test, and a connection to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from redelivery.broker import BrokerConfig, EmbeddedBroker
from redelivery.policies.dead_letters import IndividualDeadLetterStrategy

if TYPE_CHECKING:
    from tests.broker.amqp.amqp_client import Peer

pytest.importorskip("proton")

QUEUES = ("q", "other", "ActiveMQ.DLQ")


@pytest.fixture(scope="module")
def running() -> Iterator[EmbeddedBroker]:
    config = BrokerConfig(
        dead_letter_strategies={"individual.>": IndividualDeadLetterStrategy(queue_prefix="DLQ.")},
        memory_limit=256 << 20,
    )
    with EmbeddedBroker("amqp-server", amqp_port=0, stomp_port=0, config=config) as broker:
        yield broker


@pytest.fixture
def broker(running: EmbeddedBroker) -> Iterator[EmbeddedBroker]:
    """The broker, empty."""
    import redelivery

    yield running
    with redelivery.connect(running.vm_url) as connection, connection.session() as session:
        for queue in QUEUES:
            with session.consumer(queue) as consumer:
                for _ in range(100_000):  # other clients' last words may not have been heard yet
                    if not running.queue_depth(queue):
                        break
                    consumer.receive(0.1)


@pytest.fixture
def client(broker: EmbeddedBroker) -> Iterator[Peer]:
    from tests.broker.amqp.amqp_client import Peer

    with Peer(broker.amqp_url) as client:
        yield client
