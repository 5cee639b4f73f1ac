"""A connection that the application drops without closing it says so, and releases what it took of the system."""

from __future__ import annotations

import gc
import logging
import os
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.client.shell import SOON, embedded, eventually

import redelivery
from redelivery import ConnectionLostError, JMSError, Producer
from redelivery.broker import EmbeddedBroker
from redelivery.client.connection.weak import WeakConnectionEvents


@pytest.fixture(params=["vm", "stomp", "amqp"])
def place(request: pytest.FixtureRequest) -> Iterator[tuple[EmbeddedBroker, str]]:
    with embedded(request.param) as broker_and_url:
        yield broker_and_url


@pytest.fixture(autouse=True)
def _nothing_before() -> None:
    """What others dropped is collected before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def collected(what: Callable[..., object], *arguments: Any, **options: Any) -> None:
    """It is done, and what it dropped is collected."""
    what(*arguments, **options)
    gc.collect()


def use(url: str, **options: Any) -> None:
    """All that a program may hold, dropped at the end: a message unacknowledged, a browser, a future."""
    connection = redelivery.connect(url, username="ann", password="s3cret", **options)  # noqa: S106
    session, other = connection.session("transacted"), connection.session("client")
    other.producer("orders").send("x")
    other.producer("orders").send_async("y").result(SOON)
    consumer = session.consumer("orders", prefetch=1)
    message = consumer.receive(SOON)
    assert message is not None
    pattern = other.consumer("others.>")
    assert pattern.receive_nowait() is None
    assert list(other.browser("empty")) == []


@pytest.mark.parametrize("heartbeat", [0, 10])
def test_it_warns_and_its_sockets_and_threads_end(place: tuple[EmbeddedBroker, str], heartbeat: float) -> None:
    broker, url = place
    use_before, threads = descriptors(), threading.active_count()
    with pytest.warns(ResourceWarning, match=r"<Connection \S+ started> was dropped without close\(\)") as caught:
        collected(use, url, heartbeat=heartbeat)
    assert "s3cret" not in str(caught[0].message)
    assert url.partition("?")[0].rpartition("/")[2] in str(caught[0].message)
    eventually(lambda: descriptors() <= use_before and threading.active_count() <= threads)
    eventually(lambda: broker.queue_depth("orders") == 2)


def test_one_whose_exception_listener_was_called_is_collected_too(place: tuple[EmbeddedBroker, str]) -> None:
    _, url = place
    reported = threading.Event()

    def drop_one() -> None:
        connection = redelivery.connect(url, exception_listener=lambda _: reported.set())
        connection.session()
        connection._core.on_error(JMSError("trouble"))
        assert reported.wait(SOON)

    threads = threading.active_count()
    with pytest.warns(ResourceWarning, match="without close"):
        collected(drop_one)
    eventually(lambda: threading.active_count() <= threads)


def test_what_is_closed_or_lost_is_dropped_in_silence(
    place: tuple[EmbeddedBroker, str], request: pytest.FixtureRequest
) -> None:
    broker, url = place

    def closed_and_lost() -> None:
        with redelivery.connect(url) as connection:
            connection.session().consumer("orders")
        consumer = redelivery.connect(url, exception_listener=lambda _: None).session().consumer("orders")
        broker.close()
        with pytest.raises(ConnectionLostError):
            consumer.receive(SOON)

    logging.disable(logging.CRITICAL)  # pytest keeps what the log says of the loss
    request.addfinalizer(lambda: logging.disable(logging.NOTSET))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        collected(closed_and_lost)
    eventually(all_notified)


def all_notified() -> bool:
    """Whether nobody has an exception to hear of; the thread that has noticed a loss holds its connection meanwhile."""
    gc.collect()
    return "redelivery-exceptions" not in {each.name for each in threading.enumerate()}


def test_one_that_is_lost_and_was_not_notified_of_it_is_dropped_in_silence(
    place: tuple[EmbeddedBroker, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    broker, url = place
    monkeypatch.setattr(WeakConnectionEvents, "on_lost", lambda *_: None)  # the thread that is to say so is late

    def lost() -> None:
        connection = redelivery.connect(url)
        connection.session()
        broker.close()
        eventually(lambda: connection._core.transport.lost)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        collected(lost)


def test_one_that_could_not_be_opened_is_dropped_in_silence() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(redelivery.ConnectError):
            redelivery.connect("stomp://127.0.0.1:1", connect_timeout=0.5)
        gc.collect()


def test_whoever_holds_a_part_of_it_holds_it(place: tuple[EmbeddedBroker, str]) -> None:
    broker, url = place

    def part() -> Producer:
        return redelivery.connect(url).session().producer("orders")

    held = [part()]
    gc.collect()
    held[0].send("x")
    assert broker.queue_depth("orders") == 1
    with pytest.warns(ResourceWarning, match="without close"):
        collected(held.clear)


def test_a_listener_keeps_it_alive(place: tuple[EmbeddedBroker, str]) -> None:
    _, url = place
    came = threading.Event()

    def listen() -> None:
        session = redelivery.connect(url).session()

        def callback(_: object) -> None:
            session.close()
            came.set()

        session.consumer("orders").listen(callback)

    listen()
    gc.collect()
    with redelivery.connect(url) as connection, connection.session() as session:
        session.producer("orders").send("x")
    assert came.wait(SOON)
    with pytest.warns(ResourceWarning, match="without close"):
        collected(eventually, lambda: "redelivery-listener" not in {each.name for each in threading.enumerate()})
