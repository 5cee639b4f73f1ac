"""Calls that are made while the connection is away, or that wait for it: how they end."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import ExitStack
from time import monotonic
from typing import Any

import pytest
from tests.client.gated import QUICK, Site
from tests.client.shell import SOON, eventually
from tests.conformance.blocking import Shell

from redelivery import (
    AckMode,
    Connection,
    ConnectionLostError,
    IllegalStateError,
    InDoubtError,
    JMSError,
    ReconnectPolicy,
)


class Away:
    """A connection that is away until `back`."""

    def __init__(self, site: Site, opened: ExitStack, shell: Shell | None = None, **options: Any) -> None:
        self.site = site
        options.setdefault("reconnect", QUICK)
        self.connection: Connection = (shell or Shell("threads", opened)).connect(site.url, **options)

    def begin(self) -> None:
        self.site.gate.shut()
        eventually(lambda: not self.connection.connected)

    def back(self) -> None:
        self.site.gate.open()


@pytest.fixture(params=["stomp", "amqp"])
def away(request: pytest.FixtureRequest, opened: ExitStack) -> Away:
    if request.param == "amqp":
        pytest.importorskip("proton")
    return Away(Site(request.param, opened), opened)


def begun(call: Callable[[], object]) -> tuple[threading.Thread, list[object]]:
    """It runs in a thread, whose result is there when that has ended."""
    results: list[object] = []
    thread = threading.Thread(target=lambda: results.append(call()), daemon=True)
    thread.start()
    return thread, results


def waits(session: Any) -> bool:
    """A call waits in the session; with threads it could have taken the session only."""
    return session._core.in_use and getattr(session._core.waiter, "_parks", True)


def error_of(call: Callable[[], object]) -> JMSError | None:
    try:
        call()
    except JMSError as error:
        return error
    return None


@pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.TRANSACTED])
def test_a_receive_that_waits_ends_with_its_consumer(
    site: Site, opened: ExitStack, shell: Shell, mode: AckMode
) -> None:
    away = Away(site, opened, shell)
    session = away.connection.session(mode)
    consumer, other = session.consumer("orders"), session.consumer("invoices")
    away.begin()
    thread, results = begun(consumer.receive)
    eventually(lambda: waits(session))
    consumer.close()
    thread.join(SOON)
    assert results == [None]
    away.back()
    away.site.broker.send("orders", "for nobody")
    away.site.broker.send("invoices", "for the other")
    message = other.receive(SOON)
    assert message is not None
    assert message.body == "for the other"
    assert away.site.broker.queue_depth("orders") == 1


@pytest.mark.parametrize("pause", [0.01, 5.0])  # it connects again and again, or waits for the first attempt
@pytest.mark.parametrize("protocol", ["stomp", "amqp"])
def test_to_close_it_is_no_loss(
    protocol: str, pause: float, shell: Shell, opened: ExitStack, caplog: pytest.LogCaptureFixture
) -> None:
    if protocol == "amqp":
        pytest.importorskip("proton")
    errors: list[JMSError] = []
    policy = ReconnectPolicy(initial_delay=pause, maximum_delay=5.0)
    away = Away(Site(protocol, opened), opened, shell, reconnect=policy, exception_listener=errors.append)
    consumer = away.connection.session().consumer("orders")
    producer = away.connection.session().producer("orders")
    away.begin()
    eventually(lambda: len(errors) == 1)
    caplog.clear()
    receiving, received = begun(consumer.receive)
    sending, sent = begun(lambda: error_of(lambda: producer.send("too late")))
    eventually(lambda: waits(consumer) and waits(producer))
    away.connection.close()
    for thread in (receiving, sending):
        thread.join(SOON)
    assert (received, [type(each) for each in sent]) == ([None], [IllegalStateError])
    eventually(lambda: not any(each.name == "redelivery-reconnect" for each in threading.enumerate()))
    eventually(lambda: not shell.running)  # nobody dials
    assert len(errors) == 1
    assert not [each.message for each in caplog.records if "was lost" in each.message]


class TestAnAsynchronousSend:
    def test_does_not_wait_for_the_connection_and_keeps_its_place(self, away: Away) -> None:
        producer = away.connection.session().producer("orders")
        producer.send("0")
        away.begin()
        done: list[object] = []
        futures = [producer.send_async(str(number)) for number in range(1, 4)]
        for future in futures:
            future.add_done_callback(lambda future: done.append(future.result().body))
        assert not any(future.done() for future in futures)
        away.back()
        producer.send("4")
        assert [future.result(SOON).body for future in futures] == ["1", "2", "3"]
        assert [each.body for each in away.site.broker.messages("orders")] == ["0", "1", "2", "3", "4"]
        eventually(lambda: done == ["1", "2", "3"])

    def test_leaves_with_the_next_connection_though_its_session_does_nothing(self, away: Away) -> None:
        producer = away.connection.session().producer("orders")
        away.begin()
        future = producer.send_async("alone")
        away.back()
        away.site.broker.wait_for("orders", depth=1, timeout=SOON)
        assert future.result(SOON).body == "alone"

    def test_leaves_with_the_connection_after_the_next_where_that_is_lost_before_it_has(
        self, away: Away, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        session = away.connection.session()
        producer = session.producer("orders")
        away.begin()
        futures = [producer.send_async(each) for each in ("one", "two")]
        kind = type(session._core.epoch.channel)
        send, lost = kind.send, threading.Event()

        def lost_meanwhile(channel: Any, *args: Any, **options: Any) -> None:
            if not lost.is_set():
                away.begin()
                lost.set()
                raise ConnectionLostError("it was lost when the half of it had left")
            send(channel, *args, **options)

        monkeypatch.setattr(kind, "send", lost_meanwhile)
        away.back()
        assert lost.wait(SOON)
        assert not any(future.done() for future in futures)
        away.back()
        assert [future.result(SOON).body for future in futures] == ["one", "two"]
        assert [each.body for each in away.site.broker.messages("orders")] == ["one", "two"]

    def test_fails_when_its_time_is_over(self, opened: ExitStack) -> None:
        policy = ReconnectPolicy(maximum_delay=0.05, timeout=0.1)
        away = Away(Site("stomp", opened), opened, reconnect=policy)
        producer = away.connection.session().producer("orders")
        away.begin()
        futures = [producer.send_async(each) for each in ("one", "two")]
        called: list[object] = []
        futures[1].add_done_callback(lambda future: called.append(type(future.exception())))
        for future in futures:
            with pytest.raises(
                ConnectionLostError, match=r"not sent, as the connection was not there again within 0\.1"
            ):
                future.result(SOON)
        eventually(lambda: called == [ConnectionLostError])
        eventually(lambda: not any(each.name == "redelivery-send-timeout" for each in threading.enumerate()))
        away.back()
        assert producer.send_async("three").result(SOON).body == "three"
        assert [each.body for each in away.site.broker.messages("orders")] == ["three"]

    def test_is_not_sent_where_its_session_or_its_connection_ends(self, opened: ExitStack) -> None:
        policy = ReconnectPolicy(maximum_delay=0.05, maximum_attempts=20)
        away = Away(Site("stomp", opened), opened, reconnect=policy)
        session, other = away.connection.session(), away.connection.session()
        away.begin()
        futures = [each.producer("orders").send_async("never") for each in (session, other)]
        session.close()
        for future in futures:  # the second one after the last attempt
            with pytest.raises(ConnectionLostError):
                future.result(SOON)
        away.back()
        assert not away.site.broker.messages("orders")

    def test_is_in_doubt_where_the_next_connection_is_lost_before_the_answer(self, away: Away) -> None:
        producer = away.connection.session().producer("orders")
        away.begin()
        future = producer.send_async("doubtful")
        away.site.broker.faults.drop_after("SEND")
        away.back()
        with pytest.raises(InDoubtError):
            future.result(SOON)
        assert producer.send_async("next").result(SOON).body == "next"
        assert [each.body for each in away.site.broker.messages("orders")] == ["doubtful", "next"]


@pytest.mark.parametrize("policy", [None, QUICK], ids=["lost for good", "comes back"])
@pytest.mark.parametrize("protocol", ["stomp", "amqp"])
def test_in_a_child_after_fork_a_close_waits_for_no_thread_of_the_parents(
    protocol: str, policy: ReconnectPolicy | None, opened: ExitStack
) -> None:
    """A receive is inside its session at the fork."""
    if protocol == "amqp":
        pytest.importorskip("proton")
    away = Away(Site(protocol, opened), opened, reconnect=policy, close_timeout=SOON)
    got: list[object] = []
    listening, waiting = away.connection.session(), away.connection.session()
    listening.consumer("orders").listen(lambda message: got.append(message.body))
    receiving, received = begun(waiting.consumer("invoices").receive)
    eventually(lambda: waiting._core.in_use)
    child = os.fork()
    if not child:  # no test's code may go on here
        raised, began = error_of(away.connection.session), monotonic()
        away.connection.close()
        os._exit(7 if isinstance(raised, ConnectionLostError) and monotonic() - began < SOON / 2 else 8)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    away.site.broker.send("orders", "of the parent")
    eventually(lambda: got == ["of the parent"])
    waiting.close()
    receiving.join(SOON)
    assert received == [None]
