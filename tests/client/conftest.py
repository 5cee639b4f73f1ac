from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec

import pytest
from tests.client.gated import Site
from tests.client.shell import Background, Bench

from redelivery.broker import EmbeddedBroker
from redelivery.testing import FastForward, fast_forward


@pytest.fixture
def bench() -> Iterator[Bench]:
    with EmbeddedBroker(f"client-{uuid.uuid4().hex}") as broker, ExitStack() as opened:
        yield Bench(broker, opened)


@pytest.fixture
def background() -> Iterator[Background]:
    """Name it before `bench`, so that what it waits for is closed first."""
    others = Background()
    yield others
    others.join()


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    """What a test has opened is closed at its end, in the opposite order."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture(params=["stomp", "amqp"])
def protocol(request: pytest.FixtureRequest) -> str:
    if request.param == "amqp":
        pytest.importorskip("proton")
    found: str = request.param
    return found


@pytest.fixture
def site(protocol: str, opened: ExitStack) -> Site:
    return Site(protocol, opened)


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    amqp = 0 if find_spec("proton") else None
    with EmbeddedBroker(f"client-{uuid.uuid4().hex}", stomp_port=0, amqp_port=amqp) as broker:
        yield broker


@pytest.fixture
def clock(broker: EmbeddedBroker) -> Iterator[FastForward]:
    with fast_forward(broker) as clock:
        yield clock
