from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from tests.conformance.pairs import PAIRS, Pair
from tests.conformance.stage import Stage

from redelivery import IndividualDeadLetterStrategy
from redelivery.broker import BrokerConfig, EmbeddedBroker


@pytest.fixture(params=list(PAIRS.values()), ids=list(PAIRS))
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """Each pair of transport and broker in turn; the embedded broker is new for every test."""
    kind = request.param
    if kind.real:
        yield Pair(kind, request.getfixturevalue("activemq").stomp_url)
        return
    config = BrokerConfig(dead_letter_strategies={"individual.>": IndividualDeadLetterStrategy(queue_prefix="DLQ.")})
    with EmbeddedBroker(name=f"conformance-{uuid.uuid4().hex}", stomp_port=0, config=config) as broker:
        yield Pair(kind, broker.vm_url if kind.name == "vm" else broker.stomp_url)


@pytest.fixture
def stage(request: pytest.FixtureRequest, pair: Pair) -> Iterator[Stage]:
    """Connections to the pair, a queue of the test's own, and the eyes on what is left there."""
    name = re.sub(r"\W+", "-", request.node.originalname.removeprefix("test_"))[:40]
    with ExitStack() as opened:
        yield Stage(pair, f"conformance.{name}.{uuid.uuid4().hex[:8]}", opened)
