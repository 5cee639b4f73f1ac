"""The fixtures with real brokers. Nothing but pytest is imported until one of them is used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from redelivery.testing.real import RealBroker


@pytest.fixture(scope="session")
def activemq() -> Iterator[RealBroker]:
    """ActiveMQ Classic, one for the whole test run.

    Skips the test where there is none; fails it where there must be one (see `redelivery.testing.real.required`).
    """
    yield from _real_broker("activemq")


@pytest.fixture(scope="session")
def artemis() -> Iterator[RealBroker]:
    """ActiveMQ Artemis, likewise."""
    yield from _real_broker("artemis")


@pytest.fixture(scope="session")
def qpid() -> Iterator[RealBroker]:
    """Qpid Broker-J, likewise."""
    yield from _real_broker("qpid")


@pytest.fixture(scope="session")
def rabbitmq() -> Iterator[RealBroker]:
    """RabbitMQ, likewise."""
    yield from _real_broker("rabbitmq")


@pytest.fixture(scope="session")
def hornetq() -> Iterator[RealBroker]:
    """HornetQ, likewise."""
    yield from _real_broker("hornetq")


def _real_broker(name: str) -> Iterator[RealBroker]:
    from redelivery.testing.real import UnavailableError, required, running

    try:
        with running(name) as broker:
            yield broker
    except UnavailableError as error:
        if required(name):
            pytest.fail(f"{name} is required: {error}", pytrace=False)
        pytest.skip(str(error))
