from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from uuid import uuid4

import pytest
from tests.client.containers.bench import Bench
from tests.conformance.blocking import Shell

from redelivery.broker import EmbeddedBroker


@pytest.fixture(params=["vm", "stomp", "amqp"])
def served(request: pytest.FixtureRequest) -> Iterator[tuple[EmbeddedBroker, str]]:
    """An embedded broker, and its URL by each protocol."""
    if request.param == "amqp":
        pytest.importorskip("proton")
    ports: dict[str, Any] = {} if request.param == "vm" else {f"{request.param}_port": 0}
    with EmbeddedBroker(f"containers-{uuid4().hex}", **ports) as broker:
        yield broker, getattr(broker, f"{request.param}_url")


@pytest.fixture
def bench(served: tuple[EmbeddedBroker, str], shell: Shell) -> Iterator[Bench]:
    with ExitStack() as opened:
        yield Bench(served, shell, opened)


@pytest.fixture
def of_threads(served: tuple[EmbeddedBroker, str]) -> Iterator[Bench]:
    with ExitStack() as opened:
        yield Bench(served, Shell("threads", opened), opened)
