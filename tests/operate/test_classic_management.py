"""ActiveMQ Classic's management by its console's Jolokia: what it answers was recorded from 5.18.3."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

import redelivery
from redelivery import Connection, SecurityError, UnsupportedError
from redelivery.broker import EmbeddedBroker
from redelivery.operate.doctor.inspect import Inspector
from redelivery.operate.management.classic import ClassicManagement
from redelivery.operate.management.opening import management_of

BROKER = "org.apache.activemq:brokerName=localhost,type=Broker"
QUEUES = {
    f"{BROKER},destinationName=orders,destinationType=Queue": {
        "Name": "orders",
        "QueueSize": 7,
        "InFlightCount": 2,
        "ConsumerCount": 1,
    },
    f"{BROKER},destinationName=ActiveMQ.DLQ,destinationType=Queue": {
        "Name": "ActiveMQ.DLQ",
        "QueueSize": 3,
        "InFlightCount": 0,
        "ConsumerCount": 0,
    },
}


class Console(BaseHTTPRequestHandler):
    """Answers as Classic's console does, to one login."""

    login = "Basic YWRtaW46YWRtaW4="  # admin:admin

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, said = 401, b""
        if self.headers["Authorization"] == self.login:
            status, said = 200, json.dumps({"status": 200, "value": self.value(asked)}).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def value(self, asked: dict[str, Any]) -> object:
        assert self.path == "/api/jolokia/"
        if "destinationType=Queue" in asked["mbean"]:
            return QUEUES
        return {BROKER: {"BrokerVersion": "5.18.3"}}

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def console() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Console) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join(10)


@pytest.fixture
def connection(console: int) -> Iterator[Connection]:
    url = f"http://admin:admin@127.0.0.1:{console}"
    with (
        EmbeddedBroker("console", stomp_port=0) as broker,
        redelivery.connect(broker.stomp_url, dialect="activemq", management=url) as connection,
    ):
        yield connection


def test_its_queues_are_listed_with_what_waits_and_who_consumes(connection: Connection) -> None:
    management = management_of(connection)
    assert isinstance(management, ClassicManagement)
    assert management.name == "ActiveMQ Classic 5.18.3"
    found = {
        each.name: (each.ready, each.unacknowledged, each.messages, each.consumers) for each in management.queues()
    }
    assert found == {"orders": (5, 2, 7, 1), "ActiveMQ.DLQ": (3, 0, 3, 0)}
    assert management.queue("nothing") is None
    orders = management.queue("orders")
    assert orders is not None
    assert not management.cost(orders).says
    with pytest.raises(UnsupportedError, match="browser"):
        management.browse("orders")


def test_the_doctor_sees_all_of_them_over_stomp(connection: Connection) -> None:
    inspector = Inspector(connection)
    seen = inspector.states([])
    assert inspector.lists_all
    assert {name: (each.messages, each.consumers) for name, each in seen.queues.items()} == {
        "orders": (7, 1),
        "ActiveMQ.DLQ": (3, 0),
    }


def test_a_wrong_password_is_said(console: int) -> None:
    url = f"http://admin:wrong@127.0.0.1:{console}"
    with (
        EmbeddedBroker("console-login", stomp_port=0) as broker,
        redelivery.connect(broker.stomp_url, dialect="activemq", management=url) as connection,
    ):
        management = management_of(connection)
        assert management is not None
        with pytest.raises(SecurityError):
            list(management.queues())
