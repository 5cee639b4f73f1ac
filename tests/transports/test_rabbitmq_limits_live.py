"""Quorum queues of RabbitMQ 4 give up what comes back too often: what that costs, and what is said before."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

import pika
import pytest
from tests.traces.relay import Relay
from tests.transports.test_rabbitmq_queues_live import SOON, Site

import redelivery
from redelivery import AckMode, Queue
from redelivery.events import Event, NearReturnLimit
from redelivery.testing.brokers.real import RealBroker
from redelivery.transports.management.address import management_address
from redelivery.transports.management.rabbitmq import RabbitApi
from redelivery.transports.seam import TransportOptions

QUORUM = {"x-queue-type": "quorum"}
USUAL = 20
pytestmark = pytest.mark.in_turns("site", "closed", "aio")


class Quorum(Site):
    """A quorum queue of the test's own, filled by the broker's own protocol, without ids."""

    def fill(self, queue: str, *bodies: str, **arguments: object) -> None:
        self.make(queue, durable=True, arguments={**QUORUM, **arguments})
        channel = self._own.channel()
        channel.confirm_delivery()
        for each in bodies:
            channel.basic_publish("", queue, each.encode(), pika.BasicProperties(delivery_mode=2))

    def taken(self, queue: str, number: int = 0) -> list[tuple[str, int]]:
        """What is on it, once there are so many: bodies, with how often they came back and that was counted."""
        found, channel = [], self._own.channel()
        deadline = time.monotonic() + SOON
        while self.depth(queue) != number and time.monotonic() < deadline:
            time.sleep(0.01)
        while (got := channel.basic_get(queue, auto_ack=True))[0] is not None:
            _, properties, body = got
            found.append((body.decode(), int((properties.headers or {}).get("x-delivery-count", 0))))
        return found

    def relay(self) -> tuple[Relay, str]:
        """A way to it that can be cut, and the URL by that way."""
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        assert parts.port is not None
        relay = Relay(parts.hostname, parts.port)
        return relay, urlunsplit(parts._replace(netloc=f"guest:guest@127.0.0.1:{relay.port}"))


@pytest.fixture(params=["stomp", "amqp"])
def site(request: pytest.FixtureRequest, redelivery_rabbitmq4: RealBroker) -> Iterator[Quorum]:
    pytest.importorskip("proton", reason="AMQP is missing")
    made = Quorum(redelivery_rabbitmq4, request.param)
    yield made
    made.close()


@pytest.fixture
def queue(request: pytest.FixtureRequest) -> str:
    return f"limits.{abs(hash(request.node.name)) % 10**8}"


def counts_what_is_closed(site: Quorum, version: str) -> bool:
    """Over STOMP, RabbitMQ 4.3 does not count what a closing session releases."""
    return site.protocol == "amqp" or not version.startswith("4.3")


def lose(site: Quorum, queue: str, seen: list[Event], *, closed: bool) -> str:
    """Connect, receive, and be gone without an acknowledgement."""
    relay, url = (None, site.url) if closed else site.relay()
    connection = redelivery.connect(url, observer=seen.append)
    version = connection.metadata.provider_version
    assert connection.session("client").consumer(Queue(queue)).receive(timeout=SOON) is not None
    if relay is not None:
        relay.cut()
    connection.close()
    return version


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [each for each in caplog.records if each.name == "redelivery.messages"]
    assert {each.levelno for each in found} <= {logging.WARNING}
    return [each.getMessage() for each in found]


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "lost"])
@pytest.mark.parametrize("dead", [True, False], ids=["dead letters", "none"])
def test_twenty_one_lost_connections_are_said_before_the_message_goes(
    site: Quorum, queue: str, caplog: pytest.LogCaptureFixture, closed: bool, dead: bool
) -> None:
    letters = f"{queue}.dead"
    more = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": letters} if dead else {}
    site.make(letters, durable=True)
    site.fill(queue, "the moon", **more)
    seen: list[Event] = []
    for lost in range(USUAL + 1):
        version = lose(site, queue, seen, closed=closed)
        warned = said(caplog)
        assert len(warned) == (lost >= USUAL - 3 and (not closed or counts_what_is_closed(site, version)))
    if not warned:
        assert site.taken(queue, 1) == [("the moon", 0)]
        return
    assert site.taken(queue) == []
    assert [body for body, _ in site.taken(letters, int(dead))] == ["the moon"] * dead
    (line,) = warned
    assert f"{queue}: it went back to its queue 17 times" in line or f"{queue} " in line
    assert ("the broker deletes it" in line) == (not dead)
    assert not dead or (letters if site.protocol == "amqp" else "a queue for dead letters") in line
    assert "the limit is the usual one" in line
    (event,) = [each for each in seen if isinstance(each, NearReturnLimit)]
    assert (event.destination, event.delivery_count, event.limit) == (Queue(queue), 18, USUAL)
    assert event.then in line


def test_a_queue_s_own_limit_and_exchange_are_named(site: Quorum, queue: str, caplog: pytest.LogCaptureFixture) -> None:
    """Over STOMP nothing shows a queue's limit: the usual one is supposed."""
    more = {"x-delivery-limit": 5, "x-dead-letter-exchange": "amq.fanout", "x-dead-letter-routing-key": "poison"}
    site.fill(queue, "the moon", "the sun", **more)
    for lost in range(5):  # noqa: B007 - looked at below
        lose(site, queue, [], closed=False)
        if said(caplog):
            break
    assert lost == (2 if site.protocol == "amqp" else 4)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_queue_that_gives_up_at_once_is_said_and_one_that_never_does_is_not(
    redelivery_rabbitmq4: RealBroker, queue: str, caplog: pytest.LogCaptureFixture, limit: int
) -> None:
    pytest.importorskip("proton", reason="AMQP is missing")
    site = Quorum(redelivery_rabbitmq4, "amqp")
    site.fill(queue, "the moon", **{"x-delivery-limit": limit})
    try:
        for _ in range(1 if limit == 0 else USUAL + 5):
            lose(site, queue, [], closed=False)
        assert len(said(caplog)) == (limit == 0)
        assert len(site.taken(queue, int(limit == -1))) == (limit == -1)
    finally:
        site.close()


MODES = [AckMode.AUTO, AckMode.CLIENT, AckMode.INDIVIDUAL, AckMode.TRANSACTED]
NO_TRANSACTIONS = "amqp", AckMode.TRANSACTED


@pytest.mark.parametrize("aio", [False, True], ids=["threads", "asyncio"])
@pytest.mark.parametrize(
    ("site", "mode"),
    [(protocol, mode) for mode in MODES for protocol in ("stomp", "amqp") if (protocol, mode) != NO_TRANSACTIONS],
    indirect=["site"],
)
def test_what_a_session_that_closes_costs(site: Quorum, queue: str, mode: AckMode, aio: bool) -> None:
    names = [f"m{number:02}" for number in range(30)]
    site.fill(queue, *names)
    version = asyncio.run(_receive_aio(site, queue, mode)) if aio else _receive(site, queue, mode)
    acknowledged = 2 if mode == AckMode.AUTO else 0
    left = site.taken(queue, len(names) - acknowledged)
    # what is on its way to the consumer when it ends may come first
    assert [body for body, _ in (sorted(left) if acknowledged else left)] == names[acknowledged:]
    charged = sum(count for _, count in left)
    if version.startswith("4.3"):  # what the application has had, and not what was prefetched only
        assert charged == (2 - acknowledged if site.protocol == "amqp" else 0)
    else:  # whatever comes back: so little is prefetched
        assert charged <= 10 + 2


def _receive(site: Quorum, queue: str, mode: AckMode) -> str:
    with redelivery.connect(site.url) as connection, connection.session(mode) as session:
        consumer = session.consumer(Queue(queue))
        assert [getattr(consumer.receive(timeout=SOON), "redelivered", None) for _ in "ab"] == [False, False]
        return connection.metadata.provider_version


async def _receive_aio(site: Quorum, queue: str, mode: AckMode) -> str:
    async with redelivery.aio.connect(site.url) as connection, connection.session(mode) as session:
        consumer = await session.consumer(Queue(queue))
        assert [getattr(await consumer.receive(timeout=SOON), "redelivered", None) for _ in "ab"] == [False, False]
        return connection.metadata.provider_version


def test_a_prefetch_that_is_asked_for_is_what_it_costs(site: Quorum, queue: str) -> None:
    site.fill(queue, *map(str, range(30)))
    with redelivery.connect(site.url, prefetch=3) as connection, connection.session("client") as session:
        assert session.consumer(Queue(queue)).receive(timeout=SOON) is not None
    assert sum(count for _, count in site.taken(queue, 30)) <= 4


def test_where_little_is_charged_the_usual_window_is_prefetched(site: Quorum, queue: str) -> None:
    """RabbitMQ 4.3 charges nothing that was prefetched only; 4.0 charges all of it, so that ten are."""
    site.fill(queue, *map(str, range(120)))
    with redelivery.connect(site.url) as connection, connection.session("client") as session:
        session.consumer(Queue(queue))
        window = 100 if connection.metadata.provider_version.startswith("4.3") else 10
        deadline = time.monotonic() + SOON
        while (depth := site.depth(queue)) != 120 - window and time.monotonic() < deadline:
            time.sleep(0.01)
        assert depth == 120 - window


@pytest.mark.long_form
def test_with_management_policies_are_known(
    site: Quorum, redelivery_rabbitmq4: RealBroker, queue: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The lower limit of queue and policy, and the exchange of the policy, over both protocols; threads and asyncio."""
    management = redelivery_rabbitmq4.urls["http"]
    api = RabbitApi(management_address(management, TransportOptions("amqp", "localhost")))  # type: ignore[arg-type]
    definition = {"delivery-limit": 4, "dead-letter-exchange": "amq.fanout"}
    path = f"/api/policies/%2F/{queue}"
    api.client.call("PUT", path, {"pattern": f"^{queue}$", "definition": definition, "apply-to": "queues"})
    site.fill(queue, "the moon", **{"x-delivery-limit": 9})
    try:
        lose(site, queue, [], closed=False)
        deadline = time.monotonic() + 4 * SOON  # the API is seconds late
        while not (api.queue(queue) or {}).get("effective_policy_definition") and time.monotonic() < deadline:
            time.sleep(0.2)
        with redelivery.connect(site.url, management=management) as connection, connection.session("client") as session:
            message = session.consumer(queue).receive(timeout=SOON)
            assert message is not None
        (line,) = said(caplog)
        assert "when it has 5 times (delivery-limit 4) it goes to the exchange 'amq.fanout'" in line
        assert "may say otherwise" not in line

        async def consume() -> None:
            async with (
                redelivery.aio.connect(site.url, management=management) as connection,
                connection.session("client") as session,
            ):
                assert await (await session.consumer(queue)).receive(timeout=SOON) is not None

        asyncio.run(consume())
        assert said(caplog) == [line], "once"
    finally:
        api.client.call("DELETE", path)


def test_where_management_does_not_answer_the_limit_is_supposed(site: Quorum, queue: str) -> None:
    site.fill(queue, "the moon")
    with redelivery.connect(site.url, management="http://guest:guest@127.0.0.1:1") as connection:
        session = connection.session("client")
        assert session.consumer(queue).receive(timeout=SOON) is not None
