"""A container whose database is away while its broker is killed and restarted: no message loses its retries."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any, Final
from uuid import uuid4

import pytest
from tests.conformance.blocking import Shell
from tests.faults.campaign import kill_and_restart
from tests.faults.stored import NAME, started

import redelivery
from redelivery import Message, RedeliveryPolicy, SharedDeadLetterStrategy
from redelivery.testing.brokers.real import RealBroker

pytestmark = [pytest.mark.long_form, pytest.mark.timeout(120)]
BROKERS: Final = [("stomp", NAME), ("amqp", NAME), ("stomp", "activemq"), ("amqp", "artemis")]
MESSAGES: Final = 60
STUBBORN: Final = 7  # multiples of it fail at their first delivery, whatever the database does
PATIENCE: Final = 40.0  # seconds for each step
OPTIONS: Final[dict[str, Any]] = {
    "concurrency": 2,
    "outage_on": ConnectionError,
    "outage_after": 4,
    "probe_interval": 0.2,
}


class Shop:
    """Messages of a broker that can be killed, a handler for them, and the database that it needs."""

    def __init__(self, broker: RealBroker, protocol: str) -> None:
        self.broker = broker
        self.url = f"failover:({getattr(broker, f'{protocol}_url')})?maxReconnectDelay=200"
        self.queue = f"restart.{uuid4().hex[:8]}"
        self.dead = f"{self.queue}.dead"
        self.database = threading.Event()
        self.done: Counter[int] = Counter()
        self.options: dict[str, Any] = {
            "redelivery_policy": RedeliveryPolicy(
                maximum_redeliveries=3, initial_redelivery_delay=0.01, redelivery_delay=0.01
            ),
            "dead_letter_strategy": SharedDeadLetterStrategy(self.dead),
        }

    def send(self) -> None:
        with redelivery.connect(self.url) as connection, connection.session("transacted") as session:
            producer = session.producer(self.queue)
            for number in range(MESSAGES):
                producer.send(str(number))
            session.commit()

    def handle(self, message: Message) -> None:
        number = int(str(message.body))
        if not self.database.is_set():
            raise ConnectionError("the database does not answer")
        if number % STUBBORN == 0 and message.delivery_count == 1:
            raise ValueError("not at once")
        time.sleep(0.01)
        self.done[number] += 1

    def restart(self) -> None:
        kill_and_restart(self.broker, self.url)

    def check(self) -> None:
        """Each message was handled, none is left, none is dead."""
        assert sorted(self.done) == list(range(MESSAGES))
        with redelivery.connect(self.url) as connection, connection.session() as session:
            for queue in (self.queue, self.dead, "ActiveMQ.DLQ", "DLQ"):
                bodies = [each.body for each in session.browser(queue)]
                assert not bodies, f"{queue}: {bodies}"


@pytest.fixture(params=BROKERS, ids="-".join)
def shop(request: pytest.FixtureRequest) -> Iterator[Shop]:
    protocol, name = request.param
    if protocol == "amqp":
        pytest.importorskip("proton")
    with started(name) as broker:
        if broker.provider is None:
            pytest.skip("this broker was not started by the test run, so it is not ours to kill")
        yield Shop(broker, protocol)


def until(holds: Callable[[], bool]) -> None:
    end = monotonic() + PATIENCE
    while not holds():
        assert monotonic() < end, "it did not happen"
        time.sleep(0.01)


def over_restarts(shop: Shop, container: Any) -> None:
    """What happens to the container, which runs elsewhere."""
    until(lambda: container.last_error is not None and not container.healthy)  # the breaker is open
    shop.restart()
    failed = container.counters.failed
    until(lambda: container.counters.failed > failed + 5)  # probes on the broker that is there again
    assert not container.healthy
    assert not shop.done
    shop.database.set()
    until(lambda: len(shop.done) >= MESSAGES // 3)
    shop.restart()  # while it works
    until(lambda: len(shop.done) == MESSAGES)
    until(lambda: container.counters.in_flight == 0 and container.healthy)


def test_nothing_is_lost_and_nothing_dead_lettered(shop: Shop, shell: Shell) -> None:
    shop.send()
    with shell.connect(shop.url, **shop.options) as connection:
        container = connection.listener_container(shop.queue, shop.handle, **OPTIONS)
        with container:
            over_restarts(shop, container)
    shop.check()
