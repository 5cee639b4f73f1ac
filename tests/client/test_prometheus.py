"""Numbers for Prometheus: what is counted, what is looked at, and how many values a label has."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from tests.client.shell import embedded, eventually
from tests.conformance.blocking import Shell

import redelivery
from redelivery import ConfigError, Message, Queue, ReconnectPolicy, RedeliveryPolicy, SharedDeadLetterStrategy
from redelivery.broker import EmbeddedBroker
from redelivery.events import ConnectionLost, Event, Reconnected, Sent

prometheus = pytest.importorskip("prometheus_client")

FAST = RedeliveryPolicy(initial_redelivery_delay=0.01, redelivery_delay=0.01, maximum_redeliveries=1)
OPTIONS: dict[str, Any] = {"redelivery_policy": FAST, "dead_letter_strategy": SharedDeadLetterStrategy("dead")}
ORDERS = {"destination": "queue://orders"}
HANDLER = {**ORDERS, "listener": "handler"}


@pytest.fixture
def registry() -> Any:
    return prometheus.CollectorRegistry()


@pytest.fixture
def metrics(registry: Any) -> Any:
    return redelivery.prometheus.PrometheusObserver(registry=registry)


@pytest.fixture
def served() -> Iterator[tuple[EmbeddedBroker, str]]:
    with embedded("stomp") as broker_and_url:
        yield broker_and_url


def handler(message: Message) -> None:
    if message.body == "broken":
        raise LookupError(message.message_id)


def test_a_container_of_either_shell(
    served: tuple[EmbeddedBroker, str], shell: Shell, metrics: Any, registry: Any
) -> None:
    broker, url = served
    connection = shell.connect(url, observer=metrics, **OPTIONS)
    metrics.watch(connection._inner if shell.tasks else connection)
    for body in ("a", "broken", "b"):
        broker.send("orders", body)
    value = registry.get_sample_value
    assert (value("redelivery_connected"), value("redelivery_healthy")) == (1, 1)
    with connection.listener_container("orders", handler):
        eventually(lambda: broker.queue_depth("dead") == 1 and broker.queue_depth("orders") == 0)
        eventually(lambda: value("redelivery_succeeded_total", HANDLER) == 2)
        failed = {**ORDERS, "cause": "LookupError"}
        assert value("redelivery_redeliveries_total", failed) == value("redelivery_dead_letters_total", failed) == 1
        assert value("redelivery_received_total", ORDERS) == 4
        assert value("redelivery_acknowledged_total", ORDERS) == 2
        assert value("redelivery_failures_total", HANDLER) == 2
        assert value("redelivery_handler_seconds_count", ORDERS) == 4
        assert value("redelivery_listener_healthy", HANDLER) == value("redelivery_workers", HANDLER) == 1
        page = prometheus.generate_latest(registry).decode()
    names = [line.split(" ")[2] for line in page.splitlines() if line.startswith("# TYPE")]
    assert len(names) == len(set(names))


def test_an_app(served: tuple[EmbeddedBroker, str], metrics: Any, registry: Any) -> None:
    broker, url = served
    app = redelivery.App(url, observer=metrics, **OPTIONS)
    metrics.watch(app)
    value = registry.get_sample_value
    assert (value("redelivery_connected"), value("redelivery_healthy")) == (0, 0)
    seen: list[tuple[Any, ...]] = []

    @app.listener("orders")
    def handler(_: Message) -> None:
        seen.append((value("redelivery_connected"), value("redelivery_healthy"), value("redelivery_in_flight", one)))
        raise SystemExit

    one = {**ORDERS, "listener": handler.__qualname__}
    broker.send("orders", "a")
    with pytest.raises(SystemExit):
        app.run()
    assert seen == [(1, 1, 1)]
    assert (value("redelivery_connected"), value("redelivery_healthy")) == (0, 0)


def test_a_lost_connection(metrics: Any, registry: Any) -> None:
    for _ in range(2):
        metrics(ConnectionLost("stomp://x", redelivery.ConnectionLostError("gone"), None))  # type: ignore[arg-type]
    metrics(Reconnected("stomp://x", None, None))  # type: ignore[arg-type]
    assert registry.get_sample_value("redelivery_connections_lost_total") == 2
    assert registry.get_sample_value("redelivery_reconnects_total") == 1


def test_what_is_gone_is_shown_no_more(served: tuple[EmbeddedBroker, str], metrics: Any, registry: Any) -> None:
    with redelivery.connect(served[1], observer=metrics, reconnect=ReconnectPolicy()) as connection:
        container = connection.listener_container("orders", handler)
        metrics.watch(container, connection)
        container.start()
        assert registry.get_sample_value("redelivery_connections_total") == 1  # not two: it is the same one
        assert registry.get_sample_value("redelivery_workers", HANDLER) == 1
        container.drain(5)
    assert registry.get_sample_value("redelivery_connected") == 0
    del container, connection

    def gone() -> bool:
        gc.collect()
        return registry.get_sample_value("redelivery_connected") is None

    eventually(gone)  # a worker's thread may be about to end


def sent(name: str) -> Sent:
    message = Message("x")
    message.stamp(destination=Queue(name) if name else redelivery.TemporaryQueue("t-1"))
    return Sent(1, message, True)


def test_a_label_has_so_many_values(metrics: Any, registry: Any) -> None:
    def send(first: int) -> None:
        for at in range(first, first + 300):
            metrics(sent(f"q{at}"))

    threads = [threading.Thread(target=send, args=(first,)) for first in (0, 300, 600)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    metrics(sent(""))
    (family,) = [each for each in registry.collect() if each.name == "redelivery_sent"]
    values = {each.labels["destination"]: each.value for each in family.samples if each.name.endswith("_total")}
    assert len(values) == 502
    assert (values["other"], values["temporary"], sum(values.values())) == (400, 1, 901)


def test_one_of_a_registry(metrics: Any, registry: Any) -> None:
    with pytest.raises(ConfigError, match="has a PrometheusObserver already"):
        redelivery.prometheus.PrometheusObserver(registry=registry)
    metrics.close()
    events: list[Event] = []
    again = redelivery.prometheus.PrometheusObserver(registry=registry, also=events.append)
    again(sent("orders"))
    assert [type(each) for each in events] == [Sent]
    with pytest.raises(ConfigError, match=r"^watch\(5\): give a Connection"):
        again.watch(5)
    with pytest.raises(ConfigError, match=r"^observer"):
        redelivery.prometheus.PrometheusObserver(registry=prometheus.CollectorRegistry(), also=5)  # type: ignore[arg-type]


def test_without_the_library_the_error_says_what_to_install() -> None:
    program = "import sys; sys.modules['prometheus_client'] = None; import redelivery; redelivery.prometheus"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)  # noqa: S603
    assert "ImportError: redelivery.prometheus needs prometheus-client" in done.stderr
