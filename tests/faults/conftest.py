from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from tests.conformance.pairs import PAIRS, Pair
from tests.conformance.stage import Stage

from redelivery.testing.real import RealBroker, running


@pytest.fixture
def stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    """ActiveMQ Classic over STOMP, the one to be killed where there is one; with a queue of the test's own."""
    broker = request.getfixturevalue("killable" if "killable" in request.fixturenames else "activemq")
    with ExitStack() as opened:
        pair = Pair(PAIRS["stomp-activemq"], broker.stomp_url)
        yield Stage(pair, f"faults.{request.node.originalname[:50]}.{uuid.uuid4().hex[:8]}", opened)


@pytest.fixture(scope="module")
def second_activemq(activemq: RealBroker) -> Iterator[RealBroker]:
    """One more broker for the tests that kill it: nobody else's messages are in its store."""
    if activemq.provider is None:
        pytest.skip("this broker was not started by the test run, so it is not ours to kill")
    with running(activemq.name) as broker:
        yield broker


@pytest.fixture
def killable(second_activemq: RealBroker) -> Iterator[RealBroker]:
    """A broker to be killed and restarted by the test; it runs again afterwards, whatever the test did."""
    yield second_activemq
    second_activemq.kill()
    second_activemq.restart()
