"""A virtual host of a real RabbitMQ for a test: definitions are imported into it, and it is deleted afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, urlsplit
from uuid import uuid4

from redelivery.testing.brokers.real import RealBroker
from redelivery.transports.management.address import ManagementAddress
from redelivery.transports.management.http import JsonClient


class Site:
    """The HTTP API of a broker, for one virtual host."""

    def __init__(self, broker: RealBroker, vhost: str) -> None:
        url = urlsplit(broker.http_url)
        self.client = JsonClient(
            ManagementAddress("http", url.hostname or "", url.port, "", broker.http_url, "guest", "guest")
        )
        self.vhost, self.broker = vhost, broker

    def call(self, method: str, kind: str, *names: str, body: Any = None) -> Any:
        return self.client.call(method, self._path(kind, *names), body)

    def try_call(self, method: str, kind: str, *names: str, body: Any = None) -> int:
        """The status, also of a refusal."""
        return self.client.ask(method, self._path(kind, *names), body).status

    def version(self) -> str:
        return str(self.client.call("GET", "/api/overview")["rabbitmq_version"])

    def import_(self, definitions: dict[str, Any]) -> None:
        self.call("POST", "definitions", body=definitions)

    def publish(self, exchange: str, key: str, body: str) -> int:
        message = {"routing_key": key, "payload": body, "payload_encoding": "string"}
        message["properties"] = {"delivery_mode": 2}  # type: ignore[assignment]  # an object among texts
        return self.try_call("POST", "exchanges", exchange or "amq.default", "publish", body=message)

    def get(self, queue: str, mode: str, number: int = 1) -> list[str]:
        """The bodies that come; ``mode``: what is answered: ``reject_requeue_true``, ``ack_requeue_false``, …"""
        wanted = {"count": number, "ackmode": mode, "encoding": "auto"}
        return [each["payload"] for each in self.call("POST", "queues", queue, "get", body=wanted)]

    def _path(self, kind: str, *names: str) -> str:
        return "/api/" + "/".join(quote(each, safe="") for each in (kind, self.vhost, *names))


@contextmanager
def site(broker: RealBroker, vhost: str, default: str = "quorum") -> Iterator[Site]:
    found = Site(broker, f"{vhost}-{uuid4().hex[:8]}")
    found.call("PUT", "vhosts", body={"default_queue_type": default})
    try:
        found.call("PUT", "permissions", "guest", body={"configure": ".*", "write": ".*", "read": ".*"})
        yield found
    finally:
        found.call("DELETE", "vhosts")


def until(true: Callable[[], object], seconds: float = 15.0) -> None:
    """Wait until it is so; an assertion fails where it is not in time."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "not within the time"
        time.sleep(0.05)
