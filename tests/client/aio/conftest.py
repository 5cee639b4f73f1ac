from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from tests.client.shell import embedded
from tests.run.loops import LOOPS, use

from redelivery.broker import EmbeddedBroker


@pytest.fixture(autouse=True, params=LOOPS)
def _loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test of the folder runs on each kind of event loop."""
    use(request.param, monkeypatch)


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(f"aio-{uuid.uuid4().hex}", stomp_port=0) as broker:
        yield broker


@pytest.fixture(params=["vm", "stomp", "amqp"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Of a broker of the test's own."""
    with embedded(request.param) as (_, url):
        yield url
