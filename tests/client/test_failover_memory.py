"""A lost connection gives its memory back at once: the garbage collector comes hundreds of losses later."""

from __future__ import annotations

import gc
import tracemalloc
import weakref
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from tests.client.gated import QUICK, Site
from tests.client.shell import eventually

import redelivery
from redelivery import JMSError
from redelivery.events import Event, ReconnectFailed
from redelivery.transports.seam import Transport

LOSSES = 8
EACH = 200 << 10  # bytes: half of it is objects that refer to each other, on both sides; with their buffers 290 KB


@pytest.fixture
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    tracemalloc.start()
    yield
    tracemalloc.stop()
    gc.enable()


@pytest.mark.parametrize("protocol", ["stomp", "amqp"])
@pytest.mark.usefixtures("uncollected")
def test_a_lost_connection_leaves_no_memory_to_the_garbage_collector(protocol: str) -> None:
    if protocol == "amqp":
        pytest.importorskip("proton")
    with ExitStack() as opened:
        site = Site(protocol, opened)
        connection = opened.enter_context(redelivery.connect(site.url, reconnect=QUICK))
        session = connection.session()
        session.consumer("orders")

        def lose(number: int) -> None:
            site.gate.shut(0.0)
            eventually(lambda: connection.epoch >= number and connection.connected)

        lose(2)
        before = tracemalloc.get_traced_memory()[0]
        for number in range(3, LOSSES + 3):
            lose(number)
        eventually(lambda: tracemalloc.get_traced_memory()[0] - before < LOSSES * EACH)  # the broker may be late


@pytest.mark.parametrize("protocol", ["stomp", "amqp"])
def test_a_lost_connection_is_not_kept_until_its_timer_is_due(protocol: str) -> None:
    if protocol == "amqp":
        pytest.importorskip("proton")
    with ExitStack() as opened:
        site = Site(protocol, opened)
        opened.enter_context(redelivery.connect(getattr(site.broker, f"{protocol}_url"), heartbeat=10))  # due before it
        connection = opened.enter_context(redelivery.connect(site.url, heartbeat=60, reconnect=QUICK))
        transport: Any = connection._core.transport
        lost = weakref.ref(transport._first if protocol == "stomp" else transport._connection)
        del transport
        site.gate.shut(0.0)
        eventually(lambda: connection.epoch == 2 and connection.connected)
        eventually(lambda: collected() and lost() is None)


@pytest.mark.parametrize("protocol", ["stomp", "amqp"])
def test_errors_that_the_application_keeps_keep_no_connection(protocol: str) -> None:
    if protocol == "amqp":
        pytest.importorskip("proton")
    with ExitStack() as opened:
        site = Site(protocol, opened)
        events: list[Event] = []
        errors: list[JMSError] = []
        options: dict[str, Any] = {"observer": events.append, "exception_listener": errors.append}
        connection = opened.enter_context(redelivery.connect(site.url, reconnect=QUICK, **options))
        connection.session().consumer("orders")
        for number in range(1, 4):
            site.gate.shut()
            eventually(lambda: isinstance(events[-1], ReconnectFailed))
            site.gate.open()
            eventually(lambda: connection.epoch > number and connection.connected)  # noqa: B023  # called at once
        eventually(lambda: collected() and transports(site) <= 1)
        assert errors


def collected() -> bool:
    """Again, where it is asked again: a thread may have had something for a moment."""
    gc.collect()
    return True


def transports(site: Site) -> int:
    """Those to the gate; by type, since others' proxies raise where they are asked for their class."""
    found = [each for each in gc.get_objects() if issubclass(type(each), Transport)]
    return sum(each.options.port == site.gate.port for each in found)
