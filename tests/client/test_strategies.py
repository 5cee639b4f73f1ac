"""Messages that are redelivered by tenacity's strategies, on each protocol; nothing is lost where a strategy fails."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tenacity import stop_after_attempt, stop_after_delay, wait_fixed, wait_incrementing
from tests.client.shell import embedded, eventually
from tests.conformance.blocking import Shell

from redelivery import ConfigError, ConnectionLostError, ReconnectPolicy, RedeliveryPolicy, SharedDeadLetterStrategy
from redelivery.broker import EmbeddedBroker


@pytest.fixture(params=["vm", "stomp", "amqp"])
def served(request: pytest.FixtureRequest) -> Iterator[tuple[EmbeddedBroker, str]]:
    with embedded(request.param) as broker_and_url:
        yield broker_and_url


class Fails:
    """A handler that always does."""

    def __init__(self) -> None:
        self.counts: list[int] = []

    def __call__(self, message: Any) -> None:
        self.counts.append(message.delivery_count)
        raise ValueError("bad")


def options(policy: RedeliveryPolicy) -> dict[str, Any]:
    return {"redelivery_policy": policy, "dead_letter_strategy": SharedDeadLetterStrategy("DLQ")}


def test_a_stop_decides_when_a_message_is_poison(served: tuple[EmbeddedBroker, str], shell: Shell) -> None:
    broker, url = served
    handler = Fails()
    policy = RedeliveryPolicy(wait=wait_incrementing(0.01, 0.01), stop=stop_after_attempt(3) | stop_after_delay(600))
    with shell.connect(url, **options(policy)) as connection, connection.listener_container("orders", handler):
        broker.send("orders", "x")
        broker.wait_for("DLQ", depth=1, timeout=10)
    assert handler.counts == [1, 2, 3]
    (letter,) = broker.messages("DLQ")
    assert "stop = stop_after_attempt(max_attempt_number=3)" in str(letter.properties["dlqDeliveryFailureCause"])


def test_a_stop_by_time_ends_it(served: tuple[EmbeddedBroker, str], shell: Shell) -> None:
    broker, url = served
    policy = RedeliveryPolicy(wait=wait_fixed(0.1), stop=stop_after_delay(0.25))
    with shell.connect(url, **options(policy)) as connection:
        session = connection.session("transacted")
        consumer = session.consumer("orders")
        broker.send("orders", "x")
        deliveries = 0
        while consumer.receive(timeout=1) is not None:
            deliveries += 1
            session.rollback(cause=ValueError("bad"))
    assert 2 <= deliveries <= 4, "at 0, 0.1 and 0.2 s, and the one that is too late"
    broker.wait_for("DLQ", depth=1, timeout=10)


@pytest.mark.parametrize("which", ["wait", "stop"])
def test_a_strategy_that_fails_later_loses_nothing_and_is_reported(
    served: tuple[EmbeddedBroker, str], shell: Shell, which: str
) -> None:
    broker, url = served
    broken = [False]

    def strategy(_moment: Any) -> Any:
        if broken[0]:
            raise LookupError("no such table")
        return 0.01 if which == "wait" else False

    given: dict[str, Any] = {"wait": wait_fixed(0.01), which: strategy}
    policy = RedeliveryPolicy(**given)
    broken[0] = True
    heard: list[Any] = []
    tries: list[Any] = []

    def handle(message: Any) -> None:
        tries.append(message.body)
        if len(tries) < 3:
            raise ValueError("bad")

    with shell.connect(url, **options(policy), exception_listener=heard.append) as connection:
        with connection.listener_container("orders", handle) as container:
            broker.send("orders", "x")
            eventually(lambda: container.counters.succeeded == 1, within=10)
        eventually(lambda: len(heard) == 2, within=10)
    assert tries == ["x"] * 3
    assert all(isinstance(each, ConfigError) and "no such table" in str(each) for each in heard)
    assert broker.queue_depth("DLQ") == 0


def test_a_connection_comes_back_by_strategies_and_gives_up_by_them(shell: Shell) -> None:
    with embedded("stomp") as (broker, url):
        waits: list[int] = []

        def wait(moment: Any) -> float:
            waits.append(moment.attempt_number)
            return 0.05

        policy = ReconnectPolicy(wait=wait, stop=stop_after_attempt(3) | stop_after_delay(30))
        waits.clear()
        with shell.connect(url, reconnect=policy) as connection:
            broker.close()
            with pytest.raises(ConnectionLostError):
                connection.wait(10)
            assert waits == [1, 2, 3]
            assert not connection.health().healthy
