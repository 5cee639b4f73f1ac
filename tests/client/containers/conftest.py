from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from tests.client.containers.bench import Bench
from tests.client.shell import embedded
from tests.conformance.blocking import Shell

from redelivery.broker import EmbeddedBroker


@pytest.fixture(params=["vm", "stomp", "amqp"])
def served(request: pytest.FixtureRequest) -> Iterator[tuple[EmbeddedBroker, str]]:
    """An embedded broker, and its URL by each protocol."""
    with embedded(request.param) as broker_and_url:
        yield broker_and_url


@pytest.fixture
def bench(served: tuple[EmbeddedBroker, str], shell: Shell) -> Iterator[Bench]:
    with ExitStack() as opened:
        yield Bench(served, shell, opened)


@pytest.fixture
def of_threads(served: tuple[EmbeddedBroker, str]) -> Iterator[Bench]:
    with ExitStack() as opened:
        yield Bench(served, Shell("threads", opened), opened)
