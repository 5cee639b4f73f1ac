"""The fixtures. Nothing but pytest is imported until one of them is used.

Those with a real broker start, and fetch, it only where the user has said so: see
`redelivery.testing.brokers.real.wanted`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import count
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from redelivery.broker import EmbeddedBroker
    from redelivery.testing.brokers.real import RealBroker
    from redelivery.testing.durable import DurableBroker

_numbers = count(1)


@pytest.fixture
def redelivery_broker() -> Iterator[EmbeddedBroker]:
    """An embedded broker of its own for each test; it ends with the test.

    A planned fault (``redelivery_broker.faults``) that never struck is warned of at the end, unless it was cleared.
    It is reached by ``vm_url`` and ``stomp_url``, and by ``amqp_url`` where ``redelivery[amqp]`` is installed.
    """
    from redelivery.broker import EmbeddedBroker

    amqp_port = 0 if find_spec("proton") else None
    with EmbeddedBroker(f"redelivery-broker-{next(_numbers)}", stomp_port=0, amqp_port=amqp_port) as broker:
        yield broker
        for fault in broker.faults.never_struck:
            warnings.warn(f"planned fault never struck: {fault}", stacklevel=1)


@pytest.fixture
def redelivery_durable_broker(tmp_path: Path) -> Iterator[DurableBroker]:
    """An embedded broker with a store in ``tmp_path``, for one test; ``kill()`` and ``restart()`` it as you like.

    Its member ``broker`` is as `redelivery_broker`; it is another one after a restart, at the same URLs. Here, too, a
    planned fault that never struck is warned of.
    """
    from redelivery.testing.durable import DurableBroker

    amqp = find_spec("proton") is not None
    durable = DurableBroker(f"redelivery-durable-{next(_numbers)}", tmp_path / "broker.db", amqp=amqp)
    yield durable
    durable.close()
    for fault in durable.never_struck:
        warnings.warn(f"planned fault never struck: {fault}", stacklevel=1)


@pytest.fixture(scope="session")
def redelivery_activemq() -> Iterator[RealBroker]:
    """ActiveMQ Classic 5.18, one for the whole test run.

    Skips the test where REDELIVERY_REAL_BROKERS is not 1 or there is none; fails it where there must be one (see
    `redelivery.testing.brokers.real.required`).
    """
    yield from _real_broker("activemq")


@pytest.fixture(scope="session")
def redelivery_activemq6() -> Iterator[RealBroker]:
    """ActiveMQ Classic 6, likewise."""
    yield from _real_broker("activemq6")


@pytest.fixture(scope="session")
def redelivery_artemis() -> Iterator[RealBroker]:
    """ActiveMQ Artemis, likewise."""
    yield from _real_broker("artemis")


@pytest.fixture(scope="session")
def redelivery_qpid() -> Iterator[RealBroker]:
    """Qpid Broker-J, likewise."""
    yield from _real_broker("qpid")


@pytest.fixture(scope="session")
def redelivery_rabbitmq() -> Iterator[RealBroker]:
    """RabbitMQ 3, likewise."""
    yield from _real_broker("rabbitmq")


@pytest.fixture(scope="session")
def redelivery_rabbitmq4() -> Iterator[RealBroker]:
    """RabbitMQ 4, likewise; its ``http_url`` is that of its management."""
    yield from _real_broker("rabbitmq4")


@pytest.fixture(scope="session")
def redelivery_hornetq() -> Iterator[RealBroker]:
    """HornetQ, likewise."""
    yield from _real_broker("hornetq")


def _real_broker(name: str) -> Iterator[RealBroker]:
    from redelivery.testing.brokers.real import UnavailableError, required, running, wanted

    if not wanted(name):
        pytest.skip(f"set REDELIVERY_REAL_BROKERS=1 to start {name} for the tests, or REDELIVERY_{name.upper()}_URL")
    try:
        with running(name) as broker:
            yield broker
    except UnavailableError as error:
        if required(name):
            pytest.fail(f"{name} is required: {error}", pytrace=False)
        pytest.skip(str(error))
