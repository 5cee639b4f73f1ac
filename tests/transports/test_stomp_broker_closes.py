"""An ERROR of Artemis ends the connection: the client leaves it to the broker to close it, for half a second.

Artemis' STOMP acceptor locks up for ever where a client closes before the broker's thread that writes the ERROR has
(docs/brokers/artemis.md).
"""

from __future__ import annotations

import select
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from time import monotonic
from typing import Any

import pytest
from tests.conformance import blocking
from tests.transports.scripted import TIMEOUT, BrokerEnd, Client, ScriptedBroker, text

import redelivery
from redelivery.model.errors import ConnectionLostError

ARTEMIS = "ActiveMQ-Artemis/2.44.0"
SAYS = "consumer with ID 1 disconnected by server"
WHILE = 0.1  # seconds, less than the half second for which the client waits
LATEST = 0.5 + 2  # and what a busy machine may add


@pytest.fixture(params=["threads", "asyncio"])
def connect(request: pytest.FixtureRequest) -> Iterator[Callable[[int], Any]]:
    """A connection of this form to that port, started."""
    with ExitStack() as opened:

        def connect(port: int) -> Any:
            url = f"stomp://127.0.0.1:{port}"
            if request.param == "threads":
                return opened.enter_context(redelivery.connect(url))
            loop = blocking.Loop()
            opened.callback(loop.end)
            return opened.enter_context(blocking.connect(loop, url))

        yield connect


def says_error(end: BrokerEnd) -> None:
    end.log_in(server=ARTEMIS)
    end.subscribed()
    end.send("ERROR", SAYS.encode(), content_type="text/plain")


def silent(end: BrokerEnd, seconds: float) -> bool:
    """Whether the client neither writes nor closes for so long."""
    return not select.select([end.sock], [], [], seconds)[0]


def test_the_client_waits_for_the_broker_to_close(connect: Callable[[int], Any]) -> None:
    waited = threading.Event()

    def script(end: BrokerEnd) -> None:
        says_error(end)
        if silent(end, WHILE):
            waited.set()

    with ScriptedBroker(script) as broker:
        consumer = connect(broker.port).session().consumer("orders")
        with pytest.raises(ConnectionLostError, match=f"the broker says: {SAYS}$"):
            consumer.receive(timeout=TIMEOUT)
        assert waited.is_set()


def test_but_not_for_ever(connect: Callable[[int], Any]) -> None:
    closed: list[float] = []

    def script(end: BrokerEnd) -> None:
        says_error(end)
        began = monotonic()
        assert end.sock.recv(1) == b""
        closed.append(monotonic() - began)

    with ScriptedBroker(script) as broker:
        consumer = connect(broker.port).session().consumer("orders")
        with pytest.raises(ConnectionLostError, match=f"the broker says: {SAYS}$"):
            consumer.receive(timeout=TIMEOUT)
    assert WHILE < closed[0] < LATEST


def test_where_nobody_reads_the_end_is_noticed_all_the_same() -> None:
    """The call that was refused has its answer; the thread of the housekeeping reads on."""

    def script(end: BrokerEnd) -> None:
        end.log_in(server=ARTEMIS)
        end.refuse(end.take("SEND"), "no")
        if not silent(end, WHILE):
            end.sock.recv(1)

    with ScriptedBroker(script) as broker, ExitStack() as opened:
        client = Client(broker.port)
        opened.callback(client.abort)
        began = monotonic()
        assert "no" in str(client.session().send(text()))
        assert client.lost == []
        assert client.lost_event.wait(TIMEOUT)
        assert "the broker says: no" in str(client.lost[0])
        assert monotonic() - began < LATEST


def test_nothing_is_written_behind_the_error_and_what_would_be_says_why() -> None:
    refused, written = threading.Event(), threading.Event()

    def script(end: BrokerEnd) -> None:
        end.log_in(server=ARTEMIS)
        end.refuse(end.take("SEND"), "no")
        refused.wait(TIMEOUT)
        with suppress(OSError):
            if end.sock.recv(1):
                written.set()

    with ScriptedBroker(script) as broker, ExitStack() as opened:
        client = Client(broker.port)
        opened.callback(client.abort)
        session = client.session()
        assert "no" in str(session.send(text()))
        with pytest.raises(ConnectionLostError, match="the broker says: no"):
            session.send(text())
        wire = client.transport._opened()
        wire.protocol.outbox._waiting.append(b"ACK\nid:1\n\n\0")  # that was to leave together with others
        assert not wire.protocol.flush()
        refused.set()
    assert not written.is_set()


def test_a_close_meanwhile_ends_at_once() -> None:
    def script(end: BrokerEnd) -> None:
        end.log_in(server=ARTEMIS)
        end.refuse(end.take("SEND"), "no")
        assert end.sock.recv(1) == b""

    with ScriptedBroker(script) as broker:
        client = Client(broker.port, close_timeout=2 * LATEST)
        assert "no" in str(client.session().send(text()))
        began = monotonic()
        client.close()
        assert monotonic() - began < LATEST
