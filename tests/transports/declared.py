"""RabbitMQ by one protocol, whose queues the tests declare, and what its own API says of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from tests.run.gate import Gate
from tests.run.rabbitmq import broker_of, url_of

import redelivery
from redelivery import Queue
from redelivery.testing.brokers.real import RealBroker
from redelivery.transports.management.address import management_address
from redelivery.transports.management.rabbitmq import RabbitApi
from redelivery.transports.seam import TransportOptions

SOON = 5.0


class Site:
    """RabbitMQ by one protocol, and what its own API says."""

    def __init__(self, broker: RealBroker, protocol: str) -> None:
        self.url = url_of(broker, protocol)
        self.protocol, self.is_4 = protocol, broker.name == "rabbitmq4"
        self.needs_http = not (self.is_4 and protocol == "amqp")
        self.http = broker.http_url
        address = management_address(self.http, TransportOptions("stomp", "127.0.0.1"))
        assert address is not None
        self.api = RabbitApi(address)
        self.name = f"declared.{uuid4().hex[:8]}"
        self.queue, self.dead = Queue(self.name), Queue(f"{self.name}.dead")

    @property
    def options(self) -> dict[str, Any]:
        return {"management": self.http} if self.needs_http else {}

    def connect(self, **options: Any) -> redelivery.Connection:
        return redelivery.connect(self.url, **{**self.options, **options})

    def made(self, queue: Queue) -> dict[str, Any] | None:
        """As its own API says; None: it is not there."""
        return self.api.queue(queue.name)

    def through(self, gate: Gate) -> str:
        return behind(gate, self.url)

    def clear(self) -> None:
        for each in (self.queue, self.dead):
            if self.made(each) is not None:
                self.api.delete_queue(each.name)


def behind(gate: Gate, url: str) -> str:
    login, at, _ = urlsplit(url).netloc.rpartition("@")
    return urlsplit(url)._replace(netloc=f"{login}{at}127.0.0.1:{gate.port}").geturl()


def gate_of(url: str) -> Gate:
    return Gate(str(urlsplit(url).hostname), int(urlsplit(url).port or 0))


def site_of(request: pytest.FixtureRequest) -> Iterator[Site]:
    made = Site(*broker_of(request))
    yield made
    made.clear()
