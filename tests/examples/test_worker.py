"""The workers of examples/ as processes: SIGTERM ends them between two orders, a lost connection does not."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.client.shell import eventually

import redelivery
from redelivery.broker import EmbeddedBroker

EXAMPLES = Path(__file__).parents[2] / "examples"
WORKER = EXAMPLES / "worker.py"
TIMEOUT = 20.0


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(f"worker-{uuid.uuid4().hex}", stomp_port=0) as broker:
        yield broker


@contextmanager
def worker(url: str, *arguments: str, program: Path = WORKER) -> Iterator[subprocess.Popen[str]]:
    """The process, when it says that it is connected."""
    command = [sys.executable, "-W", "error", str(program), url, *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603  # our own example
        watchdog = threading.Timer(TIMEOUT, process.kill)
        watchdog.start()
        try:
            assert process.stderr is not None
            for line in process.stderr:
                if ": connected to " in line:
                    break
            yield process
        finally:
            process.kill()
            process.wait()
            watchdog.cancel()


def send(broker: EmbeddedBroker, *orders: str) -> None:
    with redelivery.connect(broker.vm_url) as connection, connection.session("transacted") as session:
        for order in orders:
            session.producer("orders").send(order)
        session.commit()


def invoices(broker: EmbeddedBroker, number: int) -> list[str]:
    with redelivery.connect(broker.vm_url) as connection, connection.session() as session:
        return [message.body for message in session.consumer("invoices").receive_many(number, timeout=TIMEOUT)]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_0_and_no_order_is_lost(broker: EmbeddedBroker, number: signal.Signals) -> None:
    with worker(broker.stomp_url, "2") as process:
        send(broker, "a chair", "a table")
        assert sorted(invoices(broker, 2)) == ["invoice for a chair", "invoice for a table"]
        process.send_signal(number)
        assert process.wait(TIMEOUT) == 0
    send(broker, "a lamp")
    assert broker.queue_depth("orders") == 1  # for the next worker


def test_an_order_that_fails_is_rolled_back_with_its_cause(broker: EmbeddedBroker) -> None:
    with worker(broker.stomp_url) as process:
        send(broker, "the moon")
        assert process.stderr is not None
        text = ""
        while "LookupError: no such article" not in text:
            line = process.stderr.readline()
            assert line, text
            text += line
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT) == 0
    assert broker.queue_depth("orders") == 1
    assert broker.queue_depth("invoices") == 0


def test_it_goes_on_after_a_lost_connection(broker: EmbeddedBroker) -> None:
    with worker(broker.stomp_url) as process:
        broker.faults.drop("SEND", nth=2)  # the invoice's
        send(broker, "a chair")
        assert invoices(broker, 1) == ["invoice for a chair"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT) == 0
    assert broker.queue_depth("orders") == 0


def test_one_of_an_event_loop_closes_what_it_has_opened(broker: EmbeddedBroker) -> None:
    with worker(broker.stomp_url, "2", program=EXAMPLES / "worker_asyncio.py") as process:
        send(broker, "a chair", "the moon", "a table")
        assert sorted(invoices(broker, 2)) == ["a chair: 12.50", "a table: 80.00"]
        broker.wait_for("orders", depth=0)
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT) == 0
        assert process.stderr is not None
        assert "the prices are closed" in process.stderr.read()
    assert [message.body for message in broker.messages("ActiveMQ.DLQ")] == ["the moon"]


def test_without_arguments_it_explains_itself() -> None:
    done = subprocess.run([sys.executable, str(WORKER)], capture_output=True, text=True, timeout=TIMEOUT)  # noqa: S603  # as above
    assert done.returncode == 1
    assert "worker.py stomp://" in done.stderr


EXPECTED = {
    'redelivery_received_total{destination="queue://orders"} 5.0',
    'redelivery_acknowledged_total{destination="queue://orders"} 2.0',
    'redelivery_sent_total{destination="queue://invoices"} 2.0',
    'redelivery_succeeded_total{destination="queue://orders",listener="handle"} 2.0',
    'redelivery_failures_total{destination="queue://orders",listener="handle"} 3.0',
    'redelivery_redeliveries_total{cause="LookupError",destination="queue://orders"} 2.0',
    'redelivery_dead_letters_total{cause="LookupError",destination="queue://orders"} 1.0',
    'redelivery_workers{destination="queue://orders",listener="handle"} 2.0',
    "redelivery_healthy 1.0",
    "redelivery_connected 1.0",
    'redelivery_handler_seconds_count{destination="queue://orders"} 5.0',
}


def test_prometheus_scrapes_what_the_worker_counts(broker: EmbeddedBroker) -> None:
    pytest.importorskip("prometheus_client")
    with worker(broker.stomp_url, "0", program=EXAMPLES / "worker_prometheus.py") as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert "metrics at http://" in line
        send(broker, "a chair", "the moon", "a table")
        url = line.rpartition(" ")[2].strip()

        def scraped() -> set[str]:
            with urllib.request.urlopen(url, timeout=TIMEOUT) as answer:  # noqa: S310  # our own worker's
                return set(answer.read().decode().splitlines())

        eventually(lambda: EXPECTED - scraped() == set())
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT) == 0
