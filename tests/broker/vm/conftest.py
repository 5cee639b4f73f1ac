"""A broker of its own for each test, and one connection to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.broker.vm.vm_client import Client

from redelivery.broker import BrokerConfig, EmbeddedBroker


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker("vmtest", config=BrokerConfig(memory_limit=100_000)) as running:
        yield running


@pytest.fixture
def client(broker: EmbeddedBroker) -> Iterator[Client]:
    client = Client(broker.name)
    yield client
    client.close()
