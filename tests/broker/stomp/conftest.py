"""One broker for a module, emptied after each test, and a connection to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.broker.raw_stomp import Raw

from redelivery.broker import BrokerConfig, EmbeddedBroker
from redelivery.policies.dead_letters import IndividualDeadLetterStrategy


@pytest.fixture(scope="module")
def running() -> Iterator[EmbeddedBroker]:
    config = BrokerConfig(
        dead_letter_strategies={"individual.>": IndividualDeadLetterStrategy(queue_prefix="DLQ.")},
        memory_limit=64 << 20,
    )
    with EmbeddedBroker("stomp-server", stomp_port=0, config=config) as broker:
        yield broker


@pytest.fixture
def broker(running: EmbeddedBroker) -> Iterator[EmbeddedBroker]:
    """The broker, empty."""
    yield running
    with Raw(running.stomp_url) as client:
        for queue in ("q", "other", "ActiveMQ.DLQ"):
            depth = running.queue_depth(queue)
            client.subscribe(f"/queue/{queue}", "auto", id=queue)
            client.messages(depth)
            client.ok("UNSUBSCRIBE", id=queue)


@pytest.fixture
def client(broker: EmbeddedBroker) -> Iterator[Raw]:
    with Raw(broker.stomp_url) as client:
        yield client
