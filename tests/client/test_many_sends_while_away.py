"""Asynchronous sends without end while the connection is away: from a thousand on, their sender waits."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import pytest
from tests.client.gated import QUICK, Site
from tests.client.shell import SOON, Background, eventually

import redelivery
from redelivery import Connection, ConnectionLostError, IllegalStateError, Message, Producer, ReconnectPolicy
from redelivery.client.operations import reattach, send
from redelivery.client.operations.reattach import await_return
from redelivery.testing import fast_forward
from redelivery.transports.dialects import detect

MOST = send._MOST_WAITING
MINUTE = 60.0
Futures = list[Future[Message]]


@pytest.fixture(params=["stomp", "amqp"])
def site(request: pytest.FixtureRequest, opened: ExitStack) -> Site:
    if request.param == "amqp":
        pytest.importorskip("proton")
    return Site(request.param, opened)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when a sender begins to wait for the connection."""
    waits = threading.Event()

    def noted(*args: Any) -> Any:
        waits.set()
        return (yield from await_return(*args))

    monkeypatch.setattr(reattach, "await_return", noted)
    return waits


class Away:
    """A connection that is away, with a session that sends to ``orders``."""

    def __init__(self, site: Site, opened: ExitStack, **options: Any) -> None:
        self.site = site
        self.connection: Connection = opened.enter_context(redelivery.connect(site.url, **options))
        self.session = self.connection.session()
        self.producer: Producer = self.session.producer("orders")
        site.gate.shut()
        eventually(lambda: not self.connection.connected)

    def fill(self) -> Futures:
        """As many as do not wait."""
        return [self.producer.send_async(str(number)) for number in range(MOST)]

    @property
    def arrived(self) -> list[Any]:
        return [each.body for each in self.site.broker.messages("orders")]


@pytest.fixture
def away(site: Site, opened: ExitStack) -> Away:
    return Away(site, opened, reconnect=QUICK)


@pytest.fixture
def background() -> Iterator[Background]:
    background = Background()
    yield background
    background.join()


def test_the_next_one_waits_for_the_connection_and_leaves_after_those_before_it(
    away: Away, background: Background, waits: threading.Event
) -> None:
    futures = away.fill()
    assert not waits.is_set()
    sending = background.start(lambda: [away.producer.send_async(str(MOST + number)) for number in range(3)])
    assert waits.wait(SOON)
    assert not any(future.done() for future in futures)
    away.site.gate.open()
    futures += sending()
    bodies = [str(number) for number in range(MOST + 3)]
    assert [future.result(SOON).body for future in futures] == bodies
    assert away.arrived == bodies


def test_it_waits_no_longer_than_the_time_out_and_its_future_says_so(
    site: Site, opened: ExitStack, background: Background, waits: threading.Event
) -> None:
    clock = opened.enter_context(fast_forward(site.broker))
    away = Away(site, opened, reconnect=ReconnectPolicy(maximum_delay=0.05, timeout=MINUTE))
    futures = away.fill()
    sending = background.start(lambda: away.producer.send_async("one too many"))
    assert waits.wait(SOON)
    clock.advance(MINUTE / 2)
    assert not any(future.done() for future in futures)
    clock.advance(MINUTE / 2)
    for future in (*futures, sending()):
        with pytest.raises(ConnectionLostError, match="not sent, as the connection was not there again within 60 s"):
            future.result(SOON)
    waits.clear()
    futures = [away.producer.send_async("more"), away.producer.send_async("later")]
    assert not waits.is_set()  # there is room again
    site.gate.open()
    assert [future.result(SOON).body for future in futures] == ["more", "later"]
    assert away.arrived == ["more", "later"]


@pytest.mark.parametrize("close", ["session", "connection"])
def test_to_close_it_ends_the_wait(away: Away, background: Background, waits: threading.Event, close: str) -> None:
    futures = away.fill()
    sending = background.start(lambda: away.producer.send_async("too late"))
    assert waits.wait(SOON)
    getattr(away, close).close()
    with pytest.raises(IllegalStateError):
        sending()
    for future in futures:
        with pytest.raises(ConnectionLostError):
            future.result(0)
    away.site.gate.open()
    assert away.arrived == []


def test_ctrl_c_ends_the_wait(away: Away, background: Background, waits: threading.Event) -> None:
    futures, main = away.fill(), threading.get_ident()

    def interrupt() -> None:
        assert waits.wait(SOON)
        signal.pthread_kill(main, signal.SIGINT)

    interrupted = background.start(interrupt)
    with pytest.raises(KeyboardInterrupt):
        away.producer.send_async("interrupted")
    interrupted()
    away.site.gate.open()
    assert away.producer.send("last").body == "last"
    bodies = [str(number) for number in range(MOST)]
    assert [future.result(SOON).body for future in futures] == bodies
    assert away.arrived == [*bodies, "last"]


def test_a_listener_that_sends_more_than_may_wait_goes_on_with_the_connection(
    site: Site, opened: ExitStack, waits: threading.Event
) -> None:
    """Its callback has the session, so it is the one who attaches it to the next connection."""
    entered, left = threading.Event(), threading.Event()
    connection = opened.enter_context(redelivery.connect(site.url, reconnect=QUICK))
    session = connection.session()
    producer = session.producer("orders")
    futures: Futures = []

    def listener(message: Message) -> None:
        if message.redelivered:
            return  # its first delivery went with the connection
        site.gate.shut()
        eventually(lambda: not connection.connected)
        entered.set()
        futures.extend(producer.send_async(str(number)) for number in range(MOST + 2))
        left.set()

    session.consumer("in").listen(listener)
    site.broker.send("in", "begin")
    assert entered.wait(SOON)
    assert waits.wait(SOON)
    site.gate.open()
    assert left.wait(SOON)
    assert [future.result(SOON).body for future in futures] == [str(number) for number in range(MOST + 2)]


def test_where_sends_survive_those_that_were_sent_and_not_answered_count_too(
    site: Site, opened: ExitStack, background: Background, waits: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    _drops_duplicates(site, monkeypatch)
    away = Away(site, opened, reconnect=QUICK, deduplicate_sends=True)
    futures = away.fill()
    sending = background.start(lambda: away.producer.send_async(str(MOST)))
    assert waits.wait(SOON)
    away.site.gate.open()
    futures.append(sending())
    bodies = [str(number) for number in range(MOST + 1)]
    assert [future.result(SOON).body for future in futures] == bodies
    assert away.arrived == bodies


def _drops_duplicates(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says so."""
    protocol = site.url.partition(":")[0]
    dialects: Any = detect._DIALECTS
    plain = getattr(dialects["embedded"], protocol)
    able = replace(plain, capabilities=replace(plain.capabilities, duplicate_id_property="_AMQ_DUPL_ID"))
    monkeypatch.setitem(dialects, "embedded", replace(dialects["embedded"], **{protocol: able}))
