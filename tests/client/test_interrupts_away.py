"""Ctrl-C at every place of calls that wait for another connection.

As `test_session_interrupts_everywhere.py`, whose sessions are on a connection that is there, and with the same reading:
afterwards the same can be done again, and nothing is lost.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Final
from uuid import uuid4

import pytest
from tests.client.gated import QUICK, Site
from tests.client.interrupts import at_each_place
from tests.client.shell import SOON
from tests.run.forms import at_length

import redelivery
from redelivery import AckMode, InDoubtError, Message, RedeliveryPolicy, TransactionRolledBackError
from redelivery.events import ConnectionLost, Event

pytestmark = [pytest.mark.long_form, pytest.mark.timeout(600)]
AT_ONCE: Final = RedeliveryPolicy(maximum_redeliveries=-1, initial_redelivery_delay=0, redelivery_delay=0)
AWAY: Final = 0.02  # seconds
EVERY: Final = 1 if at_length() else 3  # one place in so many: each takes the loss of a connection


class Away:
    """A connection that comes back, lost a moment ago, with a session, a consumer, and m1 on its queue."""

    def __init__(self, site: Site, mode: AckMode, *, received: bool) -> None:
        self.site, self.queue = site, f"q-{uuid4().hex}"
        self._losses = threading.Event()
        self.connection = redelivery.connect(
            site.url, reconnect=QUICK, redelivery_policy=AT_ONCE, observer=self._observe, close_timeout=5
        )
        self.session = self.connection.session(mode)
        self.consumer, self.producer = self.session.consumer(self.queue), self.session.producer(f"{self.queue}-out")
        site.broker.send(self.queue, "m1")
        self.message = self.receive() if received else None
        self._losses.clear()
        site.gate.shut(AWAY)
        assert self._losses.wait(SOON)

    def _observe(self, event: Event) -> None:
        if isinstance(event, ConnectionLost):
            self._losses.set()

    def receive(self) -> Message:
        message = self.consumer.receive(SOON)
        assert message is not None, "nothing came"
        return message

    def takes_all(self, *sent: str) -> None:
        """m1 is there, once; and so is what was sent, if anything was."""
        if self.session.transacted:
            self.session.rollback()
        assert self.receive().body == "m1"
        self.producer.send("last")
        if self.session.transacted:
            self.session.commit()
        elif self.session.ack_mode is AckMode.CLIENT:
            self.session.acknowledge()
        self.connection.close()
        assert not self.site.broker.messages(self.queue)
        out = [message.body for message in self.site.broker.messages(f"{self.queue}-out")]
        assert out in (["last"], [*sent, "last"])

    def close(self) -> None:
        self.connection.close()


@pytest.fixture(params=["stomp", "amqp"])
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    if request.param == "amqp":
        pytest.importorskip("proton")
    with ExitStack() as opened:
        yield Site(request.param, opened)


def commit(made: Away) -> None:
    with suppress(TransactionRolledBackError, InDoubtError):
        made.session.commit()


@pytest.mark.parametrize("mode", list(AckMode), ids=lambda mode: mode.name)
def test_a_receive_while_the_connection_is_away(site: Site, mode: AckMode) -> None:
    def check(made: Away) -> None:
        if mode is AckMode.INDIVIDUAL:
            made.receive().acknowledge()
            made.connection.close()
            assert not site.broker.messages(made.queue)
        else:
            made.takes_all()

    at_each_place(lambda: Away(site, mode, received=False), lambda made: made.consumer.receive(SOON), check, EVERY)


@pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.TRANSACTED], ids=lambda mode: mode.name)
def test_a_send_while_the_connection_is_away(site: Site, mode: AckMode) -> None:
    at_each_place(
        lambda: Away(site, mode, received=False),
        lambda made: made.producer.send("r1"),
        lambda made: made.takes_all("r1"),
        EVERY,
    )


def test_an_asynchronous_send_while_the_connection_is_away(site: Site) -> None:
    at_each_place(
        lambda: Away(site, AckMode.AUTO, received=False),
        lambda made: made.producer.send_async("r1"),
        lambda made: made.takes_all("r1"),
        EVERY,
    )


def test_a_commit_that_is_refused_as_the_connection_was_lost(site: Site) -> None:
    at_each_place(lambda: Away(site, AckMode.TRANSACTED, received=True), commit, lambda made: made.takes_all(), EVERY)


def test_a_rollback_while_the_connection_is_away(site: Site) -> None:
    at_each_place(
        lambda: Away(site, AckMode.TRANSACTED, received=True),
        lambda made: made.session.rollback(),
        lambda made: made.takes_all(),
        EVERY,
    )


def test_an_acknowledge_that_comes_too_late(site: Site) -> None:
    at_each_place(
        lambda: Away(site, AckMode.CLIENT, received=True),
        lambda made: made.session.acknowledge(),
        lambda made: made.takes_all(),
        EVERY,
    )


def test_a_session_and_a_consumer_made_while_the_connection_is_away(site: Site) -> None:
    def check(made: Away) -> None:
        other = made.connection.session()
        consumer = other.consumer(f"{made.queue}-other")
        site.broker.send(f"{made.queue}-other", "o1")
        message = consumer.receive(SOON)
        assert message is not None
        assert message.body == "o1"
        other.close()
        made.takes_all()

    at_each_place(
        lambda: Away(site, AckMode.AUTO, received=False),
        lambda made: made.connection.session().consumer(f"{made.queue}-else"),
        check,
        EVERY,
    )


def test_a_close_while_the_connection_is_away(site: Site) -> None:
    def check(made: Away) -> None:
        made.connection.close()
        assert [message.body for message in site.broker.messages(made.queue)] == ["m1"]

    at_each_place(lambda: Away(site, AckMode.CLIENT, received=True), lambda made: made.connection.close(), check, EVERY)
