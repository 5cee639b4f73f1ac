"""ActiveMQ Classic's management by its console's Jolokia: what it answers was recorded from 5.18.3."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from tests.run.console import Answer, serving

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


LOGIN = "Basic YWRtaW46YWRtaW4="  # admin:admin


def answer(headers: Mapping[str, str], body: Any) -> Answer:
    """As Classic's console does, to one login."""
    if headers["Authorization"] != LOGIN:
        return 401, b""
    value = QUEUES if "destinationType=Queue" in body["mbean"] else {BROKER: {"BrokerVersion": "5.18.3"}}
    return 200, json.dumps({"status": 200, "value": value}).encode()


@pytest.fixture
def console() -> Iterator[int]:
    with serving(answer) as (port, asked):
        yield port
    assert {path for path, _, _ in asked} == {"/api/jolokia/"}


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
