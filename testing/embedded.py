"""The fixture with an embedded broker. Nothing but pytest is imported until it is used."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from redelivery.broker import EmbeddedBroker

_numbers = count(1)


@pytest.fixture
def redelivery_broker() -> Iterator[EmbeddedBroker]:
    """An embedded broker of its own for each test, reached by ``vm_url`` and ``stomp_url``; it ends with the test."""
    from redelivery.broker import EmbeddedBroker

    with EmbeddedBroker(f"redelivery-broker-{next(_numbers)}", stomp_port=0) as broker:
        yield broker
