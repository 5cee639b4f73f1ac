"""`Connection.health`: what a connection says of itself and of all that consumes on it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from tests.client.shell import embedded, eventually
from tests.client.stingy import Stingy
from tests.conformance.blocking import Shell

import redelivery
from redelivery import Health, ReconnectPolicy, RedeliveryPolicy, SharedDeadLetterStrategy
from redelivery.broker import EmbeddedBroker

SOON = ReconnectPolicy(initial_delay=0.01, maximum_delay=0.1)


@pytest.fixture(params=["stomp", "amqp"])
def served(request: pytest.FixtureRequest) -> Iterator[tuple[EmbeddedBroker, str]]:
    with embedded(request.param) as broker_and_url:
        yield broker_and_url


def handle(message: Any) -> None: ...


def test_it_is_healthy_with_nothing_to_consume_and_not_when_it_is_closed(
    served: tuple[EmbeddedBroker, str], shell: Shell
) -> None:
    with shell.connect(served[1], client_id="c") as connection:
        found = connection.health()
        assert found == Health(True, None, (), (), 0, ())
        assert found.healthy
    found = connection.health()
    assert (found.healthy, found.connected, found.last_loss) == (False, False, None)
    assert found.reasons[0].startswith("the connection is closed (closed by close() at ")


@pytest.mark.parametrize("listed", [False, True], ids=["reconnect", "failover"])
def test_a_loss_is_said_and_a_return_heals(served: tuple[EmbeddedBroker, str], shell: Shell, listed: bool) -> None:
    broker, url = served
    given: dict[str, Any] = {} if listed else {"reconnect": SOON}
    options = "initialReconnectDelay=10&maxReconnectDelay=100"
    with shell.connect(f"failover:({url})?{options}" if listed else url, **given) as connection:
        connection.session().consumer("orders").listen(handle)
        connection.listener_container("parcels", handle).start()
        assert connection.health().healthy
        broker.close()
        eventually(lambda: not connection.health().connected, within=10)
        found = connection.health()
        assert not found.healthy
        assert found.last_loss is not None
        assert len(found.reasons) == 1, "one reason, not one for each listener"
        assert f"{found.last_loss.at:%H:%M:%S}" in found.reasons[0]
        assert [(str(each.destination), each.healthy) for each in found.listeners] == [
            ("queue://parcels", False),
            ("queue://orders", False),
        ]
        port = int(url.rpartition(":")[2].partition("/")[0])
        ports: dict[str, Any] = {"stomp_port" if "stomp" in url else "amqp_port": port}
        with EmbeddedBroker(f"{broker.name}-again", **ports):
            eventually(lambda: connection.health().healthy, within=20)
            assert connection.health().last_loss == found.last_loss
            connection.close()


def test_without_reconnecting_a_loss_is_for_good(served: tuple[EmbeddedBroker, str], shell: Shell) -> None:
    broker, url = served
    with shell.connect(url) as connection:
        broker.close()
        eventually(lambda: not connection.health().connected, within=10)
        found = connection.health()
        assert found.reasons[0].startswith("the connection is lost (the connection was lost, noticed at ")
        assert found.last_loss is not None
        assert str(found.last_loss.error) in found.reasons[0]


@pytest.mark.parametrize("again", [False, True], ids=["for good", "comes back"])
def test_a_listener_that_the_broker_has_ended_is_named(shell: Shell, again: bool) -> None:
    pytest.importorskip("proton")
    slowly = ReconnectPolicy(initial_delay=20, jitter=0)
    with Stingy() as peer, shell.connect(peer.url, reconnect=slowly if again else None) as connection:
        connection.exception_listener = lambda _error: None
        consumer = connection.session().consumer("orders")
        consumer.listen(handle)
        eventually(lambda: len(peer.receivers) == 1)
        peer.end_links(peer.receivers)
        eventually(lambda: connection.health().listeners[0].reasons, within=10)
        assert not connection.health().healthy
        (listener,) = connection.health().listeners
        assert (listener.name == "handle") is (not shell.tasks)  # those of tasks are wrapped here
        assert "the broker has ended its consumer" in listener.reasons[0]
        eventually(lambda: ("attached again" in connection.health().listeners[0].reasons[0]) is again)
        assert any("a listener is called no more" in each for each in connection.health().reasons) is not again
        consumer.close()


def test_a_stopped_connection_gives_its_listeners_nothing(served: tuple[EmbeddedBroker, str], shell: Shell) -> None:
    with shell.connect(served[1]) as connection:
        connection.stop()
        assert connection.health().healthy, "nobody waits"
        consumer = connection.session().consumer("orders")
        consumer.listen(handle)
        assert connection.health().listeners[0].reasons == ("the connection is stopped",)
        connection.start()
        assert connection.health().healthy
        consumer.listen(None)
        assert connection.health().listeners == ()


def test_containers_are_there_while_they_run(served: tuple[EmbeddedBroker, str], shell: Shell) -> None:
    broker, url = served
    inside, leave = threading.Event(), threading.Event()

    def slow(_message: Any) -> None:
        inside.set()
        leave.wait(20)

    with shell.connect(url) as connection:
        container = connection.listener_container("orders", slow)
        assert connection.health().listeners == ()
        container.start()
        (listener,) = connection.health().listeners
        assert listener.healthy
        broker.send("orders", "x")
        assert inside.wait(10)
        assert not container.drain(0)
        (listener,) = connection.health().listeners
        assert listener.reasons == ("it is draining",)
        assert container.reasons == listener.reasons
        leave.set()
        assert container.drain(10)
        assert connection.health() == Health(True, None, (), (), 0, ())


def test_an_outage_and_dead_letters_that_are_stuck_are_reasons(
    served: tuple[EmbeddedBroker, str], shell: Shell
) -> None:
    broker, url = served

    def fails(_message: Any) -> None:
        raise TimeoutError("bank")

    with shell.connect(url, redelivery_policy=RedeliveryPolicy(initial_redelivery_delay=0)) as connection:
        options: dict[str, Any] = {"outage_on": TimeoutError, "outage_after": 1, "probe_interval": 60}
        with connection.listener_container("orders", fails, **options):
            broker.send("orders", "x")
            eventually(lambda: not connection.health().healthy, within=10)
            assert "queue://orders" in connection.health().reasons[0]
            assert "in an outage since" in connection.health().reasons[0]


def test_subscriptions_are_listed(served: tuple[EmbeddedBroker, str], shell: Shell) -> None:
    with shell.connect(served[1], client_id="shop") as connection:
        consumer = connection.session().durable_consumer("topic://news", "billing")
        (found,) = connection.health().subscriptions
        shown = (found.name, str(found.topic), found.durable, found.shared, found.consumers, found.healthy)
        assert shown == ("billing", "topic://news", True, False, 1, True)
        consumer.close()
        assert connection.health().subscriptions == ()


def test_sends_without_credit_are_blocked() -> None:
    pytest.importorskip("proton")
    with Stingy() as peer, redelivery.connect(peer.url, request_timeout=1, close_timeout=1) as connection:
        pending = connection.session().producer("orders").send_async("x")
        found = connection.health()
        assert (found.blocked_sends, found.healthy) == (1, True)
        with pytest.raises(redelivery.ResourceAllocationError):
            pending.result(10)


def test_of_a_vm_broker() -> None:
    with ExitStack() as opened:
        connection = opened.enter_context(
            redelivery.connect("vm://healthy", dead_letter_strategy=SharedDeadLetterStrategy("D"))
        )
        opened.enter_context(connection.listener_container("orders", handle))
        assert connection.health().healthy
