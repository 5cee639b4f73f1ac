"""Calls that collect, or begin, when their connection is lost and comes back: each message once, and no error."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from time import monotonic
from typing import Any

import pytest
from tests.client.gated import QUICK, Site
from tests.client.shell import SOON, Background, eventually
from tests.conformance.blocking import Shell

import redelivery

MODES = pytest.mark.parametrize("mode", ["transacted", "client", "individual", "auto", "dups_ok"])
FIRST = ["0", "1", "2"]


def settle(session: Any, got: list[Any]) -> None:
    if session.transacted:
        session.commit()
    for message in got:
        message.acknowledge()


@MODES
@pytest.mark.parametrize("prefetch", [2, 100])
def test_a_list_has_each_message_once(
    background: Background, site: Site, shell: Shell, mode: str, prefetch: int
) -> None:
    connection = shell.connect(site.url, reconnect=QUICK, prefetch=prefetch)
    session = connection.session(mode)
    consumer = session.consumer("orders")
    for body in FIRST:
        site.broker.send("orders", body)
    result = background.start(lambda: consumer.receive_many(4, SOON))
    eventually(lambda: len(session._core.hand) == len(FIRST))
    site.gate.shut(0.0)
    eventually(lambda: connection.epoch == 2)
    site.broker.send("orders", "last")
    got = result()
    assert sorted(message.body for message in got) == sorted([*FIRST, "last"])
    assert not connection._core.shared.history.places  # the application had none of them before
    settle(session, got)  # and there is nothing that could not be committed
    site.broker.wait_for("orders", depth=0)


@MODES
def test_a_list_whose_time_ends_while_the_connection_is_away_is_empty(
    background: Background, site: Site, opened: ExitStack, mode: str
) -> None:
    connection = opened.enter_context(redelivery.connect(site.url, reconnect=QUICK))
    session = connection.session(mode)
    consumer = session.consumer("orders")
    for body in FIRST:
        site.broker.send("orders", body)
    began = monotonic()
    result = background.start(lambda: consumer.receive_many(4, 1.0))
    eventually(lambda: len(session._core.hand) == len(FIRST))
    site.gate.shut()
    assert result() == []
    assert monotonic() - began < SOON
    site.gate.open()
    got = consumer.receive_many(3, SOON)
    assert sorted(message.body for message in got) == FIRST
    settle(session, got)
    site.broker.wait_for("orders", depth=0)


@pytest.mark.parametrize("mode", ["transacted", "client", "auto"])
def test_what_the_application_holds_beside_the_list_is_still_lost(
    background: Background, site: Site, opened: ExitStack, mode: str
) -> None:
    connection = opened.enter_context(redelivery.connect(site.url, reconnect=QUICK))
    session = connection.session(mode)
    consumer, other = session.consumer("orders"), session.consumer("others")
    site.broker.send("others", "held")
    assert other.receive(SOON).body == "held"  # type: ignore[union-attr]  # it has come
    site.broker.send("orders", "0")
    result = background.start(lambda: consumer.receive_many(2, SOON))
    eventually(lambda: len(session._core.hand) == 1)
    site.gate.shut(0.0)
    eventually(lambda: connection.epoch == 2)
    site.broker.send("orders", "last")
    got = result()
    assert sorted(message.body for message in got) == ["0", "last"]
    if mode == "transacted":
        with pytest.raises(redelivery.TransactionRolledBackError):
            session.commit()
        return
    settle(session, got)
    site.broker.wait_for("orders", depth=0)
    if mode == "client":
        assert other.receive(SOON).body == "held"  # type: ignore[union-attr]  # as above


class Late:
    """A connection whose sessions hear late of its loss, which another session of it notices."""

    def __init__(self, background: Background, site: Site, opened: ExitStack) -> None:
        self.lost, self.go_on = threading.Event(), threading.Event()
        connection = redelivery.connect(site.url, reconnect=QUICK)
        self.connection = opened.enter_context(connection)
        opened.callback(self.go_on.set)  # before it closes
        self.session = connection.session()
        on_lost = connection._core.on_lost

        def late(*args: Any) -> None:
            self.lost.set()
            assert self.go_on.wait(SOON)
            on_lost(*args)

        connection._core.on_lost = late  # type: ignore[method-assign, assignment]  # what happens between the two
        self.reads = connection.session().consumer("idle")
        background.start(lambda: self.reads.receive(SOON))
        eventually(lambda: self.reads._core.in_use)


def test_a_look_begins_on_the_next_connection_though_the_session_has_not_heard_of_the_loss(
    background: Background, site: Site, opened: ExitStack
) -> None:
    for body in FIRST:
        site.broker.send("orders", body)
    late = Late(background, site, opened)
    browser = late.session.browser("orders")
    site.gate.shut(0.0)
    assert late.lost.wait(SOON)
    result = background.start(lambda: [message.body for message in browser])
    eventually(lambda: late.session._core.in_use)
    late.go_on.set()
    assert result() == FIRST
    late.reads.close()


def test_a_receive_that_failed_at_a_loss_does_not_wait_for_another_one(
    background: Background, site: Site, opened: ExitStack
) -> None:
    """The thread that reconnects brings the session back before the call looks what became of it."""
    connection = opened.enter_context(redelivery.connect(site.url, reconnect=QUICK))
    consumer = connection.session().consumer("orders")
    core, await_loss = consumer._core, consumer._await_loss
    failed = threading.Event()

    def late(number: int) -> None:
        core.use.release()
        failed.set()
        eventually(lambda: core.epoch.number > number)  # by the other thread
        assert core.use.acquire(timeout=SOON)
        await_loss(number)

    consumer._await_loss = late  # type: ignore[method-assign]  # as above
    core.epoch.channel.dispatched = core.epoch.channel.accept = fail  # type: ignore[method-assign]  # as at a loss
    site.broker.send("orders", "one")
    result = background.start(lambda: consumer.receive(SOON))
    assert failed.wait(SOON)
    began = monotonic()
    site.gate.shut(0.0)
    message = result()
    assert message is not None
    assert message.body == "one"
    assert monotonic() - began < SOON


def fail(*_args: Any, **_options: Any) -> None:
    raise redelivery.ConnectionLostError("it is gone")
