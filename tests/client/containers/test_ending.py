"""How the listener containers of threads and of tasks end: drained, with their connection, or by an exit."""

from __future__ import annotations

import logging
import sys
import threading
from contextlib import ExitStack
from typing import Any

import pytest
from tests.client.containers.bench import Bench
from tests.client.gated import QUICK, Site
from tests.client.shell import SOON, eventually
from tests.conformance.blocking import Shell

from redelivery import ConnectionLostError, IllegalStateError, Message, ReconnectPolicy
from redelivery.broker import EmbeddedBroker
from redelivery.client.containers import base


@pytest.mark.parametrize("workers", [1, 3])
def test_drain_finishes_what_is_in_hand_and_takes_nothing_new(bench: Bench, workers: int) -> None:
    together, go_on = threading.Barrier(workers, timeout=SOON), threading.Event()

    def handler(_: Message) -> None:
        together.wait()
        assert go_on.wait(SOON)

    bench.send(*"abcde")
    container = bench.start(handler, concurrency=workers, prefetch=1)
    eventually(lambda: container.counters.in_flight == workers)
    assert not container.drain(timeout=0)
    assert container.counters.in_flight == workers
    go_on.set()
    assert container.drain(timeout=SOON)
    assert container.counters.succeeded == workers
    assert len(bench.left()) == 5 - workers
    assert [each for each in threading.enumerate() if each.name.startswith("redelivery-container")] == []
    with pytest.raises(IllegalStateError, match="was stopped"):
        container.start()


def test_it_lives_through_a_lost_connection(served: tuple[EmbeddedBroker, str], shell: Shell) -> None:
    scheme = served[1].partition(":")[0]
    if scheme == "vm":
        pytest.skip("within one process there is none to lose")
    got: list[Any] = []
    with ExitStack() as opened:
        site = Site(scheme, opened)
        connection = opened.enter_context(shell.connect(site.url, reconnect=QUICK))
        container = opened.enter_context(
            connection.listener_container("orders", lambda message: got.append(message.body), concurrency=2)
        )
        for number in range(30):
            site.broker.send("orders", str(number))
            if number % 10 == 5:
                site.gate.shut(0.05)
        eventually(lambda: set(got) == set(map(str, range(30))) and site.broker.queue_depth("orders") == 0)
        eventually(lambda: container.healthy)


def test_it_ends_with_a_connection_that_does_not_come_back(served: tuple[EmbeddedBroker, str], shell: Shell) -> None:
    broker, url = served
    connection = shell.connect(url)
    container = connection.listener_container("orders", print)
    container.start()
    broker.close()
    eventually(lambda: container.counters.workers == 0)
    with pytest.raises(ConnectionLostError):
        container._check_ended()
    connection.close()


def test_a_connection_that_the_application_closes_is_no_trouble(
    served: tuple[EmbeddedBroker, str], shell: Shell, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "PAUSE", 0.01)  # after which a worker sees that its connection is closed
    caplog.set_level("DEBUG")
    for _ in range(5):
        connection = shell.connect(served[1], reconnect=None if served[1].startswith("vm:") else ReconnectPolicy())
        container = connection.listener_container("orders", print, concurrency=3)
        container.start()
        connection.close()
        eventually(lambda container=container: container.counters.workers == 0)  # type: ignore[misc]  # bound
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []


def test_sys_exit_in_a_handler_ends_it_and_the_message_stays(bench: Bench) -> None:
    bench.send("a")
    container = bench.start(lambda _: sys.exit(3))
    eventually(lambda: container.counters.workers == 0)
    with pytest.raises(SystemExit):
        container._check_ended()
    eventually(lambda: bench.left() == ["a"])


def test_an_exit_while_a_worker_is_about_to_start_is_no_error(
    of_threads: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    container = of_threads.connection.listener_container("orders", lambda _: sys.exit(3), concurrency=2)
    start, errors = threading.Thread.start, list[Exception]()
    ended: list[threading.Thread] = []

    def stop() -> None:
        try:
            container.drain(SOON)
        except RuntimeError as error:
            errors.append(error)

    def slowly(thread: threading.Thread) -> None:
        if thread.name.startswith("redelivery-container") and not ended:
            ended.append(threading.Thread(target=stop))
            start(ended[0])
            ended[0].join(0.2)  # what it waits for is the start of this one
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", slowly)
    container.start()
    ended[0].join(SOON)
    assert not errors


def test_run_is_for_the_main_thread(bench: Bench) -> None:
    container = bench.connection.listener_container("orders", print)
    errors: list[BaseException] = []

    def run() -> None:
        try:
            container.run()
        except IllegalStateError as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert len(errors) == 1
