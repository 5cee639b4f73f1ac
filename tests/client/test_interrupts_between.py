"""Ctrl-C between Python's last look for signals and the wait of the main thread: it ends the wait all the same.

`_thread.interrupt_main` leaves a signal behind as such a one is left: noted, with no system call ended.
"""

from __future__ import annotations

import _thread
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

import pytest
from tests.client.gated import QUICK, Site
from tests.client.shell import SOON, Bench, eventually, receive

import redelivery
from redelivery import Message
from redelivery.events import ConnectionLost, Event
from redelivery.transports.wire.threads import guard

OFTEN: Final = 0.1  # seconds


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "_LOOK", OFTEN)


def interrupted(call: Callable[[], object]) -> None:
    timer = threading.Timer(0.05, _thread.interrupt_main)
    timer.start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        call()
    timer.join()
    assert time.monotonic() - began < SOON / 2


def test_it_ends_a_receive_within_the_process(bench: Bench) -> None:
    _, consumer = bench.consuming()
    interrupted(consumer.receive)
    bench.send("after")
    assert receive(consumer).body == "after"


@pytest.mark.parametrize("timeout", [None, SOON])
def test_it_ends_a_receive(site: Site, opened: ExitStack, timeout: float | None) -> None:
    connection = opened.enter_context(redelivery.connect(site.url))
    consumer = connection.session().consumer("orders")
    interrupted(lambda: consumer.receive(timeout))
    site.broker.send("orders", "after")
    assert receive(consumer).body == "after"


def test_it_ends_a_wait_for_an_answer(site: Site, opened: ExitStack) -> None:
    connection = opened.enter_context(redelivery.connect(site.url))
    session = connection.session()
    site.broker.faults.silence()
    interrupted(lambda: session.producer("orders").send("x"))
    site.broker.faults.clear()


def test_it_ends_a_wait_for_the_connection(site: Site, opened: ExitStack) -> None:
    lost: list[Event] = []
    connection = opened.enter_context(redelivery.connect(site.url, reconnect=QUICK, observer=lost.append))
    consumer = connection.session().consumer("orders")
    site.gate.shut()
    eventually(lambda: any(isinstance(each, ConnectionLost) for each in lost))
    interrupted(consumer.receive)
    site.gate.open()
    site.broker.send("orders", "after")
    assert receive(consumer).body == "after"


@pytest.mark.parametrize("wait", ["request", "wait", "stop"])
def test_it_ends_the_waits_of_a_connection(bench: Bench, wait: str) -> None:
    """They hold locks, which nothing may tear: what comes afterwards finds them free."""
    entered, leave = threading.Event(), threading.Event()

    def listener(_: Message) -> None:
        entered.set()
        leave.wait(SOON)

    connection = bench.connect()
    connection.session().consumer("busy").listen(listener)
    bench.send("x", queue="busy")
    assert entered.wait(SOON)
    calls: dict[str, Callable[[], object]] = {
        "request": lambda: connection.request("nobody", "x", SOON),
        "wait": lambda: connection.wait(SOON),
        "stop": connection.stop,
    }
    interrupted(calls[wait])
    leave.set()
    connection.start()
    with connection.listener_container("server", lambda _: "reply"):
        assert connection.request("server", "x", SOON).body == "reply"
