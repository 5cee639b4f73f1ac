"""Calls that used to do nothing, or the wrong thing, without a word: each is refused, with what to write instead."""

from __future__ import annotations

import functools
import sys
from types import ModuleType
from typing import Any

import pytest
from tests.client.shell import Bench

import redelivery
from redelivery import ConfigError, IllegalStateError, InvalidDestinationError, UnsupportedError
from redelivery.client.sync.made import Closing


def test_what_is_closed_cannot_be_entered_again(bench: Bench) -> None:
    connection = bench.connect()
    session = connection.session()
    things: list[Closing] = [
        session.consumer("orders"),
        session.producer(),
        session.browser("orders"),
        session,
        connection,
    ]
    for thing in things:
        with thing as entered:
            assert entered is thing
        with pytest.raises(IllegalStateError, match=r"^with: the \w+ .*closed"), thing:
            pytest.fail("it was entered")
        thing.close()  # twice is harmless


def test_a_closed_session_says_that_it_is_closed_whatever_its_mode(bench: Bench) -> None:
    transacted, automatic = bench.connect().session("transacted"), bench.connect().session()
    for session in (transacted, automatic):
        session.close()
    for call in (transacted.recover, transacted.rollback, automatic.commit, automatic.recover):
        with pytest.raises(IllegalStateError, match=r"the session is closed \(closed by close\(\)"):
            call()
    with pytest.raises(IllegalStateError, match=r"^transaction: .*closed"), transacted.transaction():
        pytest.fail("it was entered")


@pytest.mark.parametrize("shell", [redelivery, redelivery.aio])
def test_start_is_a_bool(bench: Bench, shell: Any) -> None:
    factory = shell.ConnectionFactory(bench.broker.vm_url)
    for connect in (factory.create_connection, lambda start: shell.connect(bench.broker.vm_url, start=start)):
        with pytest.raises(ConfigError, match=r"start='no' is neither True nor False"):
            connect(start="no")


def test_an_exception_listener_can_be_called(bench: Bench) -> None:
    connection = bench.connect()
    with pytest.raises(ConfigError, match=r"exception_listener=5 must be callable"):
        connection.exception_listener = 5  # type: ignore[assignment]  # which is the point
    assert connection.exception_listener is None
    connection.exception_listener = print
    connection.exception_listener = None


@pytest.mark.parametrize(
    ("cause", "right"),
    [
        ("because", r"rollback\(cause=ValueError\('because'\)\)"),
        (ValueError, r"rollback\(cause=error\)"),
        (5, r"rollback\(cause=error\)"),
    ],
)
def test_a_cause_is_an_exception(bench: Bench, cause: Any, right: str) -> None:
    session, consumer = bench.consuming(redelivery.AckMode.TRANSACTED)
    bench.send("a")
    assert consumer.receive(timeout=5) is not None
    with pytest.raises(ConfigError, match=right):
        session.rollback(cause)
    session.commit()  # nothing was rolled back
    assert bench.left == []
    with pytest.raises(ConfigError, match="recover"):
        bench.connect().session("client").recover(cause)


def test_no_local_is_for_topics(bench: Bench) -> None:
    session = bench.connect().session()
    with pytest.raises(ConfigError, match=r"no_local=True has no effect on queue://orders: it is for topics"):
        session.consumer("orders", no_local=True)
    session.consumer("topic://news", no_local=True).close()


def test_how_other_clients_write_a_destination_is_refused_wherever_one_is_named(bench: Bench) -> None:
    session = bench.connect().session()
    for call in (
        session.consumer,
        session.producer,
        session.browser,
        session.queue,
        session.topic,
        lambda name: session.producer().send("x", name),
        bench.broker.queue_depth,
    ):
        with pytest.raises(InvalidDestinationError, match="write 'orders' or 'queue://orders'"):
            call("/queue/orders")
    assert session.queue("queue://orders") == redelivery.Queue("orders")
    assert session.topic("topic://news") == redelivery.Topic("news")
    with pytest.raises(InvalidDestinationError, match=r"'topic://news' is a topic: write session.topic\('news'\)"):
        session.queue("topic://news")


def test_eventlet_is_named_where_it_has_taken_poll_away(monkeypatch: pytest.MonkeyPatch) -> None:
    patcher = ModuleType("eventlet.patcher")
    monkeypatch.setattr(patcher, "is_monkey_patched", lambda name: name == "select", raising=False)
    monkeypatch.setitem(sys.modules, "eventlet.patcher", patcher)
    for url in ("stomp://127.0.0.1:1", "amqp://127.0.0.1:1", "failover:(stomp://127.0.0.1:1)"):
        with pytest.raises(UnsupportedError, match=r"eventlet.monkey_patch\(\) has taken away; use gevent"):
            redelivery.connect(url)


@pytest.mark.parametrize("callback", [lambda: None, lambda _message, _session: None, lambda *, message: message])
def test_a_callback_that_cannot_take_what_it_is_given_is_refused(bench: Bench, callback: Any) -> None:
    with pytest.raises(ConfigError, match=r"^listen: .*<lambda>\(.*\) is called with one argument, the message$"):
        bench.connect().session().consumer("orders").listen(callback)
    with pytest.raises(
        ConfigError, match=r"^exception_listener: .*<lambda>\(.*\) is called with one argument, a JMSError"
    ):
        redelivery.connect("vm://misuse", exception_listener=callback)
    with pytest.raises(
        ConfigError, match=r"^observer: .*<lambda>\(.*\) is called with one argument, an event; is it to be"
    ):
        redelivery.connect("vm://misuse", observer=callback)


def _wrapped(handler: Any) -> Any:
    @functools.wraps(handler)
    def call(message: Any) -> None:
        handler(message, "from elsewhere")

    return call


@_wrapped
def with_more(message: Any, more: str) -> None: ...


@pytest.mark.parametrize(
    "callback", [print, with_more, functools.partial(with_more, more="x"), [].append, lambda *_: None]
)
def test_a_callback_that_can_take_it_is_not(bench: Bench, callback: Any) -> None:
    bench.connect().session().consumer("orders").listen(callback)


def test_the_decorator_of_an_app_needs_its_destination() -> None:
    app = redelivery.App("vm://misuse")
    with pytest.raises(ConfigError, match=r"write @app.listener\('orders'\)"):
        app.listener(print)  # type: ignore[arg-type]  # that is the test
