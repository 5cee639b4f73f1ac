"""`Session.browser`: it looks at a queue, in every mode, and takes nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.client.shell import Background, Bench, Gate, eventually, receive

import redelivery
from redelivery import (
    AckMode,
    ConfigError,
    IllegalStateError,
    InvalidDestinationError,
    Message,
    PrefetchPolicy,
    Queue,
    QueueBrowser,
    Topic,
    UnsupportedError,
)
from redelivery.broker import EmbeddedBroker

MODES = list(AckMode)


def memory(broker: EmbeddedBroker) -> int:
    return broker.core.call(lambda engine, _now: engine.memory_used)


def shown(browser: QueueBrowser) -> list[Any]:
    return [message.body for message in browser]


def test_it_knows_its_queue_and_selector_and_whether_it_is_closed(bench: Bench) -> None:
    with bench.connect().session().browser(Queue("orders")) as browser:
        assert (browser.queue, browser.selector, browser.closed) == (Queue("orders"), None, False)
        assert repr(browser) == "<QueueBrowser queue://orders>"
    assert browser.closed
    assert repr(browser) == "<QueueBrowser queue://orders closed>"


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_acknowledging_what_was_looked_at_has_no_effect(bench: Bench, mode: AckMode) -> None:
    bench.send("held", "a", "b")
    session, consumer = bench.consuming(mode, prefetch=1)
    held = receive(consumer)
    for message in session.browser("orders"):
        message.acknowledge()
        if mode == AckMode.INDIVIDUAL:
            session.acknowledge(message)
    session.close()
    assert bench.left == (["a", "b"] if mode in (AckMode.AUTO, AckMode.DUPS_OK) else ["held", "a", "b"])
    assert held.body == "held"


@pytest.mark.parametrize("window", [0, 1, 2, 7, 5000])
def test_the_window_is_the_prefetch_policys(bench: Bench, window: int) -> None:
    bench.send(*(str(number) for number in range(20)))
    session = bench.connect(prefetch=PrefetchPolicy(browser=window)).session()
    browser = session.browser("orders")
    looking = iter(browser)
    assert next(looking).body == "0"
    assert len(browser._state.events.inbox) == min(max(1, window), 20) - 1
    assert [message.body for message in looking] == [str(number) for number in range(1, 20)]


def test_a_connection_that_is_not_started_can_look(bench: Bench) -> None:
    bench.send("a")
    assert shown(bench.connect(start=False).session().browser("orders")) == ["a"]


def test_two_browsers_and_a_consumer_of_one_session_look_side_by_side(bench: Bench) -> None:
    bench.send("a", "b", "c")
    bench.send("x", "y", queue="others")
    session, consumer = bench.consuming(AckMode.CLIENT)
    pairs = zip(session.browser("orders"), session.browser("others"), strict=False)
    assert [(one.body, other.body, receive(consumer).body) for one, other in pairs] == [
        ("a", "x", "a"),
        ("b", "y", "b"),
    ]


def test_the_next_iteration_ends_the_one_before(bench: Bench) -> None:
    bench.send("a", "b")
    browser = bench.connect().session().browser("orders")
    first = iter(browser)
    assert next(first).body == "a"
    assert shown(browser) == ["a", "b"]
    with pytest.raises(IllegalStateError, match="another iteration over queue://orders"):
        next(first)


def test_what_cannot_be_browsed_is_refused(bench: Bench) -> None:
    session = bench.connect().session()
    for target in (Topic("news"), "topic://news", session.temporary_topic()):
        with pytest.raises(InvalidDestinationError, match="a topic holds no messages"):
            session.browser(target)
    with pytest.raises(UnsupportedError, match=r"queue://orders\.> is a pattern"):
        session.browser("orders.>")
    with pytest.raises(ConfigError, match="selector must be a str, not a int"):
        session.browser("orders", selector=5)  # type: ignore[arg-type]  # that is the test
    assert session.browser("orders", selector="").selector is None


def test_a_broker_without_selectors_is_not_asked(bench: Bench) -> None:
    connection = bench.connect()
    peer = connection._core.transport.peer
    connection._core.transport.peer = replace(peer, capabilities=replace(peer.capabilities, selectors=False))
    with pytest.raises(UnsupportedError, match="has no selectors"):
        connection.session().browser("orders", selector="a = 1")


def test_a_broker_that_cannot_browse_is_not_asked(bench: Bench) -> None:
    connection = bench.connect()
    peer = connection._core.transport.peer
    connection._core.transport.peer = replace(peer, capabilities=replace(peer.capabilities, browse=False))
    with pytest.raises(UnsupportedError, match=r"redelivery over vm has no browsing.*consumed"):
        connection.session().browser("orders")


def test_after_its_close_it_shows_nothing_and_says_why(bench: Bench) -> None:
    bench.send("a", "b")
    browser = bench.connect().session().browser("orders")
    looking = iter(browser)
    next(looking)
    browser.close()
    browser.close()
    for iteration in (looking, iter(browser)):
        with pytest.raises(IllegalStateError, match=r"browser of queue://orders was closed by close\(\)"):
            next(iteration)


@pytest.mark.parametrize("protocol", ["vm", "stomp"])
def test_nothing_of_it_is_left_at_the_broker(protocol: str) -> None:
    with EmbeddedBroker("browsed", stomp_port=0) as broker:
        with redelivery.connect(getattr(broker, f"{protocol}_url")) as connection:
            session = connection.session()
            session.producer("orders").send("a")
            before = memory(broker)
            browsers = [session.browser("orders") for _ in range(3)]
            for browser in browsers:
                next(iter(browser))
            with browsers[0]:
                pass
            assert len(session._core.browsing) == 2
            session.close()
            with pytest.raises(IllegalStateError, match="closed"):
                list(browsers[1])
            browsers[1].close()
            if protocol == "vm":
                assert connection._core.transport._channels == []  # type: ignore[attr-defined]  # nothing shows it outside
        assert memory(broker) == before
        assert broker.queue_depth("orders") == 1


def test_a_closed_session_has_no_browsers(bench: Bench) -> None:
    session = bench.connect().session()
    session.close()
    with pytest.raises(IllegalStateError, match="the session is closed"):
        session.browser("orders")


def test_another_thread_inside_the_session_keeps_it_out(background: Background, bench: Bench) -> None:
    bench.send("a", queue="others")
    session, consumer = bench.consuming(AckMode.AUTO)
    looking = iter(session.browser("others"))
    result = background.start(lambda: consumer.receive(timeout=5))
    eventually(lambda: bench.waits(session))
    with pytest.raises(IllegalStateError, match="another thread is using this session"):
        next(looking)
    bench.send("b")
    assert result().body == "b"


def test_while_a_listener_is_set_only_its_callbacks_look(bench: Bench) -> None:
    bench.send("a", "b", queue="others")
    session, consumer = bench.consuming(AckMode.AUTO)
    browser = session.browser("others")
    seen: list[Any] = []
    gate = Gate()

    def browse_once(message: Message) -> None:
        seen.extend(shown(browser))
        gate(message)

    consumer.listen(browse_once)
    bench.send("go")
    assert gate.entered.wait(10)
    with pytest.raises(IllegalStateError, match="listener"):
        shown(browser)
    gate.leave.set()
    consumer.listen(None)
    assert seen == ["a", "b"]
