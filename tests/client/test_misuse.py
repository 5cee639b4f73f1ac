"""Calls that used to do nothing, or the wrong thing, without a word: each is refused, with what to write instead."""

from __future__ import annotations

import select
from typing import Any

import pytest
from tests.client.shell import Bench

import redelivery
from redelivery import ConfigError, IllegalStateError, InvalidDestinationError, UnsupportedError
from redelivery.client.sync.closing import Closing


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


def test_a_system_that_is_not_supported_is_named(monkeypatch: pytest.MonkeyPatch, bench: Bench) -> None:
    monkeypatch.delattr(select, "poll")  # as on Windows
    for url in ("stomp://127.0.0.1:1", "stomp+ssl://127.0.0.1:1"):
        with pytest.raises(UnsupportedError, match=r"runs on Linux and macOS.*vm:// needs none"):
            redelivery.connect(url)
    with bench.connect().session() as session:
        session.producer("orders").send("x")
    assert bench.left == ["x"]
