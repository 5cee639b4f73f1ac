"""The pages of an application: live, ready and metrics; and what `redelivery top --app` makes of them."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.request import Request, urlopen
from uuid import uuid4

import pytest
from tests.client.shell import asked, eventually
from tests.client.stingy import Stingy

import redelivery
from redelivery import (
    ConfigError,
    ConnectError,
    ListenerContainer,
    ProtocolError,
    RedeliveryPolicy,
    RequestTimeoutError,
    ResourceAllocationError,
    SharedDeadLetterStrategy,
)
from redelivery.broker import EmbeddedBroker
from redelivery.client.entry.metrics import RunningApp, page
from redelivery.client.entry.probes import probes
from redelivery.operate.watching.app import AppWatch, metrics

HERE = "127.0.0.1"


class Worker:
    """An application whose handler fails for "bad", once for "again", and waits for "slow"."""

    def __init__(self, url: str) -> None:
        self.go_on = threading.Event()
        self.connection = redelivery.connect(
            url,
            redelivery_policy=RedeliveryPolicy(
                maximum_redeliveries=1, initial_redelivery_delay=0.2, redelivery_delay=0.2
            ),
            dead_letter_strategy=SharedDeadLetterStrategy("DLQ"),
        )
        self.container: ListenerContainer = self.connection.listener_container("orders", self.handle)
        self.app = RunningApp(self.connection, [self.container])

    def handle(self, message: redelivery.Message) -> None:
        if message.body == "slow":
            self.go_on.wait(20)
        elif message.body == "bad" or (message.body == "again" and message.delivery_count == 1):
            raise ValueError(message.body)

    def value(self, name: str) -> float:
        found = [value for each, labels, value in metrics(page(self.app)[0].decode()) if each == f"redelivery_{name}"]
        assert len(found) == 1, (name, found)
        return found[0]


@contextmanager
def worker() -> Iterator[tuple[EmbeddedBroker, Worker]]:
    with EmbeddedBroker(f"probed-{uuid4().hex}", stomp_port=0) as broker:
        made = Worker(broker.stomp_url)
        try:
            yield broker, made
        finally:
            made.go_on.set()
            made.connection.close()


@pytest.fixture(params=["prometheus-client", "none"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether prometheus-client is installed."""
    if request.param == "none":
        monkeypatch.delitem(sys.modules, "redelivery.client.entry.library", raising=False)
        monkeypatch.setitem(sys.modules, "prometheus_client", None)
    else:
        pytest.importorskip("prometheus_client")
    return str(request.param)


def test_an_application_is_live_and_is_ready_while_it_consumes() -> None:
    with worker() as (_, at), probes(at.app, 0, HERE) as port:
        assert asked(port, "/live") == (200, "live\n")
        assert asked(port, "/ready?verbose") == (503, "not ready: Worker.handle\n")
        with at.container:
            assert asked(port, "/ready") == (200, "ready\n")
            assert asked(port, "/ready", "HEAD") == (200, "")
            assert asked(port, "/") == (404, "there are /live, /ready and /metrics\n")
            assert asked(port, "/live", "POST")[0] == 501
        assert asked(port, "/ready")[0] == 503
        at.app.connection, at.app.containers = None, ()
        assert asked(port, "/ready") == (503, "not ready: it does not listen yet, or has ended\n")
        assert asked(port, "/live") == (200, "live\n")
        assert ("redelivery_connected", {}, 0.0) in list(metrics(asked(port, "/metrics")[1]))
    with pytest.raises(OSError, match="refused"):
        socket.create_connection((HERE, port), 5)


def test_metrics_count_what_the_listener_does() -> None:
    with worker() as (broker, at), at.container:
        for body in ("good", "bad", "again"):
            broker.send("orders", body)
        eventually(lambda: at.value("redeliveries_pending") >= 1, within=10)
        eventually(lambda: (at.value("succeeded_total"), at.value("dead_letters_total")) == (2, 1), within=10)
        assert at.value("deliveries_total") == 5
        assert at.value("failures_total") == 3
        assert at.value("redeliveries_total") == 2
        assert at.value("redeliveries_pending") == 0
        broker.send("orders", "slow")
        eventually(lambda: at.value("in_flight") == 1, within=10)
        at.go_on.set()
        for name, value in (("connected", 1), ("healthy", 1), ("listener_healthy", 1), ("workers", 1)):
            assert at.value(name) == value
        assert (at.value("blocked_sends"), at.value("dead_letters_stuck"), at.value("connections_total")) == (0, 0, 1)


def test_the_page_has_the_same_samples_with_and_without_the_library(library: str) -> None:
    with worker() as (broker, at), at.container, probes(at.app, 0, HERE) as port:
        broker.send("orders", "bad")
        eventually(lambda: at.value("dead_letters_total") == 1, within=10)
        own, kind = page(at.app)
        with urlopen(f"http://{HERE}:{port}/metrics", timeout=10) as answer:
            text, headers = answer.read().decode(), answer.headers
        assert headers["Content-Type"] == kind == "text/plain; version=0.0.4; charset=utf-8"
        assert int(headers["Content-Length"]) == len(text)
        assert list(metrics(text)) == list(metrics(own.decode()))
        assert ("redelivery_connected 1.0" in text) == (library == "prometheus-client")  # which writes floats


@pytest.mark.parametrize("library", ["prometheus-client"], indirect=True)
def test_prometheus_gets_the_format_that_it_asks_for(library: str) -> None:
    accept = {"Accept": "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"}
    with worker() as (_, at), probes(at.app, 0, HERE) as port:
        asks = Request(f"http://{HERE}:{port}/metrics", headers=accept)  # ours
        with urlopen(asks, timeout=10) as answer:  # noqa: S310  # ours
            text = answer.read().decode()
            assert answer.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0;"), library
        assert text.endswith("# EOF\n")
        assert [each for each in metrics(text) if each[0] == "redelivery_connections_total"]


@pytest.mark.usefixtures("library")
def test_top_shows_them_of_the_application() -> None:
    with worker() as (broker, at), at.container, probes(at.app, 0, HERE) as port:
        broker.send("orders", "bad")
        eventually(lambda: at.value("dead_letters_total") == 1, within=10)
        for url in (f"http://{HERE}:{port}", f"http://{HERE}:{port}/metrics", f"http://{HERE}:{port}/"):
            found = AppWatch(url).poll_once()
        assert found.facts == {"connected": True, "healthy": True, "blocked_sends": 0, "dead_letters": 1}
        (orders,) = found.samples.values()
        assert orders.name == "queue://orders"
        assert orders.now == {"consumers": 1, "in_flight": 0, "retries": 0, "dead_letters": 1}
        assert orders.counted == {"in": 2, "out": 0, "failed": 2}
        broker.close()
        eventually(lambda: not AppWatch(f"http://{HERE}:{port}").poll_once().facts["connected"], within=10)


def test_sends_without_credit_are_blocked_sends() -> None:
    pytest.importorskip("proton")
    with Stingy() as peer, redelivery.connect(peer.url, request_timeout=1, close_timeout=1) as connection:
        app = RunningApp(connection, [])
        assert app.blocked_sends == 0
        session = connection.session()
        pending = session.producer("orders").send_async("x")
        assert app.blocked_sends == 1
        with pytest.raises(ResourceAllocationError, match="no credit"):
            pending.result(10)
        assert app.blocked_sends == 0


def test_names_are_escaped_as_the_format_says() -> None:
    name = 'a "quoted" \\ name\nredelivery_connected 7'
    with EmbeddedBroker(f"named-{uuid4().hex}") as broker, redelivery.connect(broker.vm_url) as connection:

        def handle(_message: redelivery.Message) -> None: ...

        handle.__qualname__ = name
        container = connection.listener_container(redelivery.Queue("q\\x"), handle)
        found = list(metrics(page(RunningApp(connection, [container]))[0].decode()))
    labels = {"destination": "queue://q\\x", "listener": name}
    assert ("redelivery_workers", labels, 0.0) in found
    assert [value for each, _, value in found if each == "redelivery_connected"] == [1.0]


def test_it_is_prometheus_text() -> None:
    parser = pytest.importorskip("prometheus_client.parser")
    with worker() as (broker, at), at.container:
        broker.send("orders", "good")
        eventually(lambda: at.value("succeeded_total") == 1, within=10)
        families = {each.name: each for each in parser.text_string_to_metric_families(page(at.app)[0].decode())}
    deliveries = families["redelivery_deliveries"]
    assert deliveries.type == "counter"
    (sample,) = deliveries.samples
    assert (sample.labels, sample.value) == ({"destination": "queue://orders", "listener": "Worker.handle"}, 1)


def test_what_is_no_application_is_said() -> None:
    for url in ("stomp://h:1", "http://", "http://u:p@h:1", "http://h:1?x", "http://h:x", "h:1"):
        with pytest.raises(ConfigError, match="http://host:port"):
            AppWatch(url)
    with socket.create_server((HERE, 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(RequestTimeoutError, match=r"within 0\.2 s"):
            AppWatch(f"http://{HERE}:{port}", timeout=0.2).poll_once()
    with pytest.raises(ConnectError, match="no application"):
        AppWatch(f"http://{HERE}:{port}").poll_once()
    strange = EmbeddedBroker(f"strange-{uuid4().hex}", stomp_port=0)
    with strange, pytest.raises(ProtocolError, match="does not speak HTTP"):
        AppWatch(strange.stomp_url.replace("stomp", "http"), timeout=5).poll_once()
    with probes(RunningApp(), 0, HERE) as port:
        with pytest.raises(ProtocolError, match="404"):
            AppWatch(f"http://{HERE}:{port}/other").poll_once()
        with pytest.raises(ProtocolError, match="serves no metrics"):
            AppWatch(f"http://{HERE}:{port}/live").poll_once()
        taken = pytest.raises(ConfigError, match=f"--health-port {port}: 127.0.0.1 cannot be listened on")
        with taken, probes(RunningApp(), port, HERE):
            pass
