"""RabbitMQ's management, asked of real ones of all versions."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from tests.run.rabbitmq import SITES, ManagedSite, broker_of, managed_by

import redelivery
from redelivery import ConnectError, JMSError, Message, ProtocolError, Queue, SecurityError, UnsupportedError
from redelivery.model.errors import InvalidDestinationError
from redelivery.testing.brokers.real import RealBroker
from redelivery.transports.management.rabbitmq import OtherwiseError

HEADERS = (
    *("message_id", "destination", "reply_to", "correlation_id", "timestamp", "priority", "persistent"),
    *("group_id", "body", "raw_body", "properties", "dead_letter"),
)


class Site(ManagedSite):
    """With the queues that a test makes."""

    def __init__(self, broker: RealBroker, protocol: str) -> None:
        super().__init__(broker, protocol)
        self._made: list[str] = []

    def make(self, name: str, kind: str = "classic", **arguments: Any) -> str:
        self._made.append(name)
        self.management.api.declare_queue(name, arguments={"x-queue-type": kind, **arguments})
        return name

    def send(self, queue: str, *bodies: Any, **how: Any) -> None:
        with self.connection.session() as session:
            for each in bodies:
                session.producer(Queue(queue)).send(each, **how)

    def close(self) -> None:
        for each in self._made:
            with suppress(InvalidDestinationError):
                self.management.api.delete_queue(each)
        self.connection.close()


def shown(message: Message, name: str) -> Any:
    """A time by its second, as HTTP shows it."""
    found = getattr(message, name)
    return found.replace(microsecond=0) if name == "timestamp" else found


@pytest.fixture(params=SITES)
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    made = Site(*broker_of(request))
    yield made
    made.close()


@pytest.fixture
def queue(site: Site) -> str:
    """RabbitMQ 3 takes no name over AMQP that is not ASCII."""
    return f"shop/or ders.{uuid4().hex[:8]}%" + ("ü" if site.is_4 or site.protocol == "stomp" else "")


def test_queues_are_listed_as_they_are(site: Site, queue: str) -> None:
    site.make(queue, "quorum", **{"x-delivery-limit": 7, "x-max-length": 100})
    found = site.management.queue(queue)
    assert found is not None
    assert (found.name, found.kind, found.durable, found.auto_delete) == (queue, "quorum", True, False)
    assert found.arguments["x-max-length"] == 100
    assert site.management.delivery_limit(found) == 7
    assert queue in [each.name for each in site.management.queues()]
    assert site.management.queue(queue + "?") is None


@pytest.mark.parametrize("site", SITES[::2], indirect=True)
def test_a_policy_is_seen_on_its_queue(site: Site) -> None:
    """The broker shows it some seconds after the queue was made."""
    full, until = site.make("full.of." + uuid4().hex[:8]), time.monotonic() + 15
    while (seen := site.management.queue(full)) is None or None in (seen.policy, seen.ready):
        assert time.monotonic() < until
        time.sleep(0.2)
    assert (seen.policy, seen.settings["overflow"]) == ("full", "reject-publish")
    assert (seen.ready, seen.unacknowledged, seen.messages, seen.consumers) == (0, 0, 0, 0)


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_a_look_shows_what_would_be_received_in_its_order_and_takes_nothing(site: Site, queue: str, kind: str) -> None:
    site.make(queue, kind, **{"x-delivery-limit": 9} if kind == "quorum" else {})
    site.send(queue, "the moon", properties={"tenant": "eu", "size": 5, "new": True}, correlation_id="c/1", priority=7)
    site.send(queue, "zwölf", None, b"\x00\xff", b"ascii", reply_to="queue://back", group_id="g", persistent=False)
    looks = [list(site.management.browse(queue)) for _ in range(2)]
    received = site.messages(queue)
    assert len(received) == 5
    for seen in looks:
        for name in HEADERS:
            assert [shown(each, name) for each in seen] == [shown(each, name) for each in received], name
    assert [each.body for each in site.management.browse(queue)] == []


def test_a_message_without_properties_is_shown(site: Site, queue: str) -> None:
    site.make(queue)
    message = {"properties": {}, "routing_key": queue, "payload": "the moon", "payload_encoding": "string"}
    site.management.api.client.call("POST", "/api/exchanges/%2F/amq.default/publish", message)
    (seen,) = site.management.browse(queue)
    assert seen.raw_body == b"the moon"
    assert seen.properties == {}


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_a_look_at_the_first_ones_keeps_the_order(site: Site, queue: str, kind: str) -> None:
    """A quorum queue puts a part of what was released before behind the rest of that."""
    site.make(queue, kind)
    site.send(queue, *"abcde")
    for limit in (None, 2, 3, None, 1):
        assert [each.body for each in site.management.browse(queue, limit)] == [*"abcde"[:limit]]
    assert [each.body for each in site.messages(queue)] == [*"abcde"]


def test_what_a_look_costs_is_known_before(site: Site, queue: str) -> None:
    classic = site.management.queue(site.make(queue))
    quorum = site.management.queue(site.make(queue + "q", "quorum", **{"x-delivery-limit": 3}))
    stream = site.management.queue(site.make(queue + "s", "stream"))
    assert classic is not None
    assert quorum is not None
    assert stream is not None
    assert "marked as redelivered" in str(site.management.cost(classic))
    cost, free = site.management.cost(quorum), site.management.version >= (4, 3)
    assert cost.counts is not free
    assert ("delivery 4 that is released deletes it" in cost.says) is not free
    unlimited = site.management.queue(site.make(queue + "u", "quorum", **{"x-delivery-limit": -1}))
    assert unlimited is not None
    if site.is_4:  # where so much is no limit
        assert site.management.cost(unlimited).counts is False
    with pytest.raises(UnsupportedError, match="is a stream"):
        site.management.cost(stream)
    with pytest.raises(UnsupportedError, match="is a stream"):
        list(site.management.browse(stream.name))


def test_declaring_says_whether_it_was_there(site: Site, queue: str) -> None:
    api = site.management.api
    site.make(queue)
    assert not api.declare_queue(queue, arguments={"x-queue-type": "classic"})
    with pytest.raises(OtherwiseError, match=r"inequivalent arg|is there with other arguments"):
        api.declare_queue(queue, arguments={"x-queue-type": "classic", "x-max-length": 3})
    api.delete_queue(queue)
    with pytest.raises(InvalidDestinationError):
        api.delete_queue(queue)
    with pytest.raises(InvalidDestinationError, match="there is no such queue"):
        list(site.management.browse(queue))


def test_who_may_not_look_is_refused(site: Site) -> None:
    port = urlsplit(site.http).port
    for login, words in (("guest:wrong", "401"), ("restricted:restricted", "401|403")):
        management = f"http://{login}@127.0.0.1:{port}"
        with (
            redelivery.connect(site.url, management=management) as connection,
            pytest.raises(SecurityError, match=words),
        ):
            list(managed_by(connection).queues())


@pytest.mark.parametrize("site", SITES[::2], indirect=True)
def test_another_port_than_the_managements_is_named(site: Site) -> None:
    amqp, stomp = urlsplit(site.broker.amqp_url).port, urlsplit(site.broker.stomp_url).port
    for port, kind in ((amqp, ProtocolError), (stomp, JMSError), (1, ConnectError)):
        management = f"http://guest:guest@127.0.0.1:{port}"
        with (
            redelivery.connect(site.url, management=management, request_timeout=1) as connection,
            pytest.raises(kind, match=str(port)),
        ):
            list(managed_by(connection).queues())


def test_another_virtual_host_has_queues_of_its_own(site: Site, queue: str) -> None:
    site.make(queue)
    with redelivery.connect(site.url, management=site.http, vhost="second") as connection:
        other = managed_by(connection)
        assert other.queue(queue) is None
        other.api.declare_queue(queue)
        with connection.session() as session:
            session.producer(Queue(queue)).send("there")
        assert [each.body for each in other.browse(queue)] == ["there"]
        assert list(site.management.browse(queue)) == []
        other.api.delete_queue(queue)
