"""A console over an embedded broker, and a client of it that keeps cookies, as a browser does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.web.application import console
from redelivery.web.asked import ConsoleSettings
from redelivery.web.sites import sites_of

Opened = Callable[..., TestClient]
ADDRESS = "http://127.0.0.1:8161"
POLICY = (
    "RedeliveryPolicy {collisionAvoidanceFactor = 0.15, "
    "maximumRedeliveries = 6, redeliveryDelay = 1000, initialRedeliveryDelay = 1000}"
)


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker("console", stomp_port=0, amqp_port=0) as found:
        yield found


@pytest.fixture
def opened(broker: EmbeddedBroker, tmp_path: Path) -> Opened:
    """Opens a console with these options, as a browser that has not been there yet."""

    def opened(url: str | None = None, *, at: str = ADDRESS, hosts: Any = None, **options: Any) -> TestClient:
        guarded: dict[str, Any] = {name: options.pop(name) for name in ("token", "calls") if name in options}
        if hosts is not None:
            guarded["hosts"] = hosts
        (site,) = sites_of([(url or broker.vm_url, {})]).values()
        sites = {"console": replace(site, key="console")}
        return TestClient(
            console(ConsoleSettings(sites, tmp_path / "receipts", tmp_path, **options), **guarded), base_url=at
        )

    return opened


def dead(
    broker: EmbeddedBroker, *causes: str, queue: str = "ActiveMQ.DLQ", origin: str = "orders", **sent: Any
) -> None:
    """Send dead letters: of each cause one, whose body has its number."""
    with redelivery.connect(broker.vm_url) as connection, connection.session() as session:
        producer = session.producer(queue)
        for number, cause in enumerate(causes):
            said = f"Delivery[7] exceeds redelivery policy limit:{POLICY}, cause:{cause}"
            properties = {"dlqDeliveryFailureCause": said, "originalDestination": f"queue://{origin}"}
            body = sent.get("body", f'{{"order": {number}}}')
            producer.send(body, properties={**properties, **sent.get("properties", {})})
