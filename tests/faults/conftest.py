from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from tests.conformance.pairs import PAIRS, Pair
from tests.conformance.stage import Stage

from redelivery.testing.real import RealBroker


@pytest.fixture
def stage(activemq: RealBroker, request: pytest.FixtureRequest) -> Iterator[Stage]:
    """ActiveMQ Classic over STOMP, with a queue of the test's own."""
    with ExitStack() as opened:
        pair = Pair(PAIRS["stomp-activemq"], activemq.stomp_url)
        yield Stage(pair, f"faults.{request.node.originalname[:50]}.{uuid.uuid4().hex[:8]}", opened)


@pytest.fixture
def killable(activemq: RealBroker) -> Iterator[RealBroker]:
    """The broker, to be killed and restarted by the test; it runs again afterwards, whatever the test did."""
    if activemq.provider is None:
        pytest.skip("this broker was not started by the test run, so it is not ours to kill")
    yield activemq
    activemq.kill()
    activemq.restart()
