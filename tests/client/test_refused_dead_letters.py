"""A dead-letter queue that refuses: what the log says of each try, and that it says nothing that did not happen."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from typing import Any

import pytest
from tests.client.gated import QUICK, Site
from tests.client.shell import receive
from tests.conformance.blocking import Shell

import redelivery
from redelivery import DiscardingDeadLetterStrategy, JMSError, RedeliveryPolicy, SharedDeadLetterStrategy
from redelivery.broker import EmbeddedBroker
from redelivery.client.observing.log_lines import FIRST
from redelivery.events import DeadLettered
from redelivery.testing import FastForward

FAILED = "after 1 delivery (limit 0): ValueError: bad order"
OPTIONS: dict[str, Any] = {
    "redelivery_policy": RedeliveryPolicy(maximum_redeliveries=0),
    "dead_letter_strategy": SharedDeadLetterStrategy("denied.dlq"),
}


@pytest.fixture(params=["vm", "stomp", "amqp"])
def protocol(request: pytest.FixtureRequest) -> str:
    if request.param == "amqp":
        pytest.importorskip("proton")
    return str(request.param)


class Heard:
    """What the log and an observer have heard of dead letters."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self._caplog = caplog
        self.events: list[DeadLettered] = []

    def observe(self, event: object) -> None:
        if isinstance(event, DeadLettered):
            self.events.append(event)

    @property
    def lines(self) -> list[tuple[int, str]]:
        """Level and text, without the message's id."""
        shown = [each for each in self._caplog.records if each.levelno >= logging.INFO]
        return [(each.levelno, each.getMessage()) for each in shown if "dead-lettered" in each.getMessage()]


@pytest.fixture
def heard(caplog: pytest.LogCaptureFixture) -> Heard:
    return Heard(caplog)


def refused_and_done(heard: Heard, identifier: str | None, *, tries: int) -> None:
    *failed, done = heard.lines
    assert len(failed) == tries
    for level, text in failed:
        assert level == logging.ERROR
        assert text.startswith(f"orders {identifier}: not dead-lettered {FAILED} (to denied.dlq): ")
        assert "not authorized" in text
        assert text.endswith("; it stays unacknowledged, and is tried again in 1 s")
    assert done == (logging.ERROR, f"orders {identifier}: dead-lettered {FAILED} (to denied.dlq)")
    assert len(heard.events) == 1


@pytest.mark.parametrize("listening", [False, True], ids=["no exception listener", "one"])
def test_each_failed_try_is_one_line_that_says_when_the_next_one_is(
    protocol: str, listening: bool, broker: EmbeddedBroker, clock: FastForward, heard: Heard, shell: Shell
) -> None:
    reported: list[JMSError] = []
    options = {**OPTIONS, "observer": heard.observe, **({"exception_listener": reported.append} if listening else {})}
    broker.send("orders", "bad")
    with shell.connect(getattr(broker, f"{protocol}_url"), **options) as connection:
        session = connection.session("transacted")
        consumer = session.consumer("orders")
        fault = broker.faults.error(_copies(protocol), "not authorized", times=2)
        identifier = receive(consumer).message_id
        session.rollback(cause=ValueError("bad order"))
        assert len(heard.lines) == 1
        for _ in range(2):
            assert consumer.receive(timeout=0) is None  # its time is not over
            clock.advance(1)
            assert consumer.receive(timeout=0) is None  # it is tried again
        assert fault.hits == 2
        refused_and_done(heard, identifier, tries=2)
    assert len(broker.messages("denied.dlq")) == 1
    assert all("is tried again in 1 s: " in str(each) for each in reported)


def _copies(protocol: str) -> str:
    return "NACK" if protocol == "vm" else "SEND"


def test_refusals_without_end_do_not_fill_the_log(
    broker: EmbeddedBroker, clock: FastForward, heard: Heard, caplog: pytest.LogCaptureFixture
) -> None:
    broker.send("orders", "bad")
    with redelivery.connect(broker.stomp_url, **OPTIONS) as connection:
        session = connection.session("transacted")
        consumer = session.consumer("orders")
        fault = broker.faults.error("SEND", "not authorized", times=None)
        receive(consumer)
        session.rollback(cause=ValueError("bad order"))
        for _ in range(FIRST + 5):
            clock.advance(1)
            assert consumer.receive(timeout=0) is None
        assert fault.hits == FIRST + 6
    assert [level for level, _ in heard.lines] == [logging.ERROR] * FIRST
    assert "failed dead letters of orders: … 6 more in the last" in caplog.text


@pytest.mark.parametrize("protocol", ["stomp", "amqp"])
def test_a_loss_meanwhile_is_neither_said_to_be_one_nor_left_out(
    protocol: str, heard: Heard, opened: ExitStack
) -> None:
    if protocol == "amqp":
        pytest.importorskip("proton")
    site = Site(protocol, opened)
    site.broker.send("orders", "bad")
    options = {**OPTIONS, "reconnect": QUICK, "observer": heard.observe}
    with redelivery.connect(site.url, **options) as connection:
        session = connection.session("transacted")
        consumer = session.consumer("orders")
        message = receive(consumer)
        site.broker.faults.drop("SEND")
        session.rollback(cause=ValueError("bad order"))
        ((level, text),) = heard.lines
        assert level == logging.WARNING
        assert text.startswith(f"orders {message.message_id}: perhaps not dead-lettered {FAILED} (to denied.dlq): ")
        assert text.endswith("; if not, the broker redelivers it")
        assert not heard.events
        heard.lines.clear()
        assert consumer.receive(timeout=0.5) is None  # it has had its deliveries
        assert [each.body for each in site.broker.messages("denied.dlq")] == ["bad"]


def test_what_is_dropped_is_counted_when_it_is_done(broker: EmbeddedBroker, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="redelivery")
    broker.send("orders", "bad")
    options = {**OPTIONS, "dead_letter_strategy": DiscardingDeadLetterStrategy()}
    with redelivery.connect(broker.vm_url, **options) as connection:
        session = connection.session("transacted")
        consumer = session.consumer("orders")
        receive(consumer)
        broker.faults.error("ACK", "no")
        session.rollback(cause=ValueError("bad order"))
        assert connection.dropped_count == 0
        assert f": not dropped {FAILED}: " in caplog.text
