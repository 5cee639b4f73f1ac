"""The fixture with an embedded broker. Nothing but pytest is imported until it is used."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from itertools import count
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from redelivery.broker import EmbeddedBroker

_numbers = count(1)


@pytest.fixture
def redelivery_broker() -> Iterator[EmbeddedBroker]:
    """An embedded broker of its own for each test; it ends with the test.

    It is reached by ``vm_url`` and ``stomp_url``, and by ``amqp_url`` where ``redelivery[amqp]`` is installed.
    """
    from redelivery.broker import EmbeddedBroker

    amqp_port = 0 if find_spec("proton") else None
    with EmbeddedBroker(f"redelivery-broker-{next(_numbers)}", stomp_port=0, amqp_port=amqp_port) as broker:
        yield broker
