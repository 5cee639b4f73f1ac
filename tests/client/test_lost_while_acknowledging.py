"""AUTO and DUPS_OK: a connection that is lost while a message is acknowledged takes no message with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pytest
from tests.client.gated import QUICK, Site
from tests.client.shell import SOON, eventually
from tests.conformance.blocking import Shell
from tests.conformance.lives import Lives

import redelivery
from redelivery import AckMode, ConnectionLostError, aio, events
from redelivery.transports.seam import Flow

MODES = pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.DUPS_OK], ids=lambda mode: mode.name)


class Stocked(Site):
    """With two messages."""

    def __init__(self, protocol: str, opened: ExitStack) -> None:
        super().__init__(protocol, opened)
        for body in ("m1", "m2"):
            self.broker.send("orders", body)

    def lose(self) -> None:
        """The connection, once the broker has all but one message no more."""
        eventually(lambda: self.left == ["m2"])
        self.gate.shut(0.1)

    @property
    def left(self) -> list[Any]:
        return [message.body for message in self.broker.messages("orders")]


@pytest.fixture(params=["stomp", "amqp"])
def site(request: pytest.FixtureRequest) -> Iterator[Stocked]:
    if request.param == "amqp":
        pytest.importorskip("proton")
    with ExitStack() as opened:
        yield Stocked(request.param, opened)


def fail_once(channel: Any, fail: Callable[[], None]) -> None:
    """The first message is acknowledged, and then this fails."""
    accept = channel.accept

    def failing(deliveries: Sequence[Any], *, batched: bool, done: list[None] | None = None) -> None:
        del batched  # the broker gets it at once
        channel.accept = accept
        accept(deliveries, batched=False, done=done)
        fail()

    channel.accept = failing


@MODES
@pytest.mark.parametrize("take", ["receive", "receive_many", "receive_body"])
def test_a_loss_behind_the_acknowledgement(site: Stocked, shell: Shell, mode: AckMode, take: str) -> None:
    def lost() -> None:
        site.lose()
        if not shell.tasks:  # it knows; else "m2" may come of the lost connection, and again
            eventually(lambda: session._core.needs_check)
        raise ConnectionLostError("reset")

    with shell.connect(site.url, reconnect=QUICK) as connection, connection.session(mode) as session:
        consumer = session.consumer("orders")
        fail_once(session._core.epoch.channel, lost)
        if take == "receive":
            got = [consumer.receive(SOON).body]
        elif take == "receive_body":
            got = [consumer.receive_body(str, SOON)]
        else:
            got = [message.body for message in consumer.receive_many(1, SOON)]
        assert got == ["m1"]
        assert consumer.receive_body(str, SOON) == "m2"
        eventually(lambda: shell.tasks or site.left == [])


@MODES
def test_a_loss_behind_the_acknowledgement_of_a_connection_that_does_not_come_back(
    site: Stocked, mode: AckMode
) -> None:
    def lost() -> None:
        site.lose()
        raise ConnectionLostError("reset")

    with redelivery.connect(site.url) as connection, connection.session(mode) as session:
        consumer = session.consumer("orders")
        fail_once(session._core.epoch.channel, lost)
        bodies: list[Any] = []
        with pytest.raises(ConnectionLostError):
            bodies.extend(iter(lambda: consumer.receive_body(str, SOON), None))
        assert bodies in (["m1"], ["m1", "m2"])  # the acknowledgement of another may find nothing of the loss


@MODES
@pytest.mark.parametrize("known", [False, True], ids=["the loss comes later", "the loss has come"])
def test_an_interrupt_behind_the_acknowledgement_and_a_loss(site: Stocked, mode: AckMode, known: bool) -> None:
    with redelivery.connect(site.url, reconnect=QUICK) as connection, connection.session(mode) as session:
        consumer = session.consumer("orders")

        def interrupted() -> None:
            if known:
                site.lose()
                eventually(lambda: session._core.needs_check)  # it knows of the loss
            raise KeyboardInterrupt

        fail_once(session._core.epoch.channel, interrupted)
        with pytest.raises(KeyboardInterrupt):
            consumer.receive(SOON)
        if not known:
            site.lose()
            eventually(lambda: session._core.needs_check)  # it knows of the loss
        assert [consumer.receive_body(str, SOON), consumer.receive_body(str, SOON)] == ["m1", "m2"]
        eventually(lambda: site.left == [])


@MODES
def test_a_cancellation_behind_the_acknowledgement_and_a_loss(site: Stocked, mode: AckMode) -> None:
    async def work() -> None:
        async with (
            await aio.connect(site.url, reconnect=QUICK) as connection,
            await connection.session(mode) as session,
        ):
            consumer = await session.consumer("orders")

            def cancelled() -> None:
                raise asyncio.CancelledError

            fail_once(session._core.epoch.channel, cancelled)
            with pytest.raises(asyncio.CancelledError):
                await consumer.receive(SOON)
            await asyncio.to_thread(site.lose)
            await asyncio.to_thread(eventually, lambda: session._core.needs_check)
            assert [await consumer.receive_body(str, SOON), await consumer.receive_body(str, SOON)] == ["m1", "m2"]
            await asyncio.to_thread(eventually, lambda: site.left == [])

    asyncio.run(work())


@pytest.mark.parametrize("known", [False, True], ids=["the loss comes later", "the loss has come"])
def test_an_acknowledgement_that_meets_the_loss_is_an_event_after_it(site: Stocked, known: bool) -> None:
    def lost() -> None:
        site.lose()
        if known:
            eventually(lambda: session._core.needs_check)
        raise ConnectionLostError("reset")

    lives = Lives()
    connection = redelivery.connect(site.url, reconnect=QUICK, observer=lives)
    with connection, connection.session("individual") as session:
        consumer = session.consumer("orders")
        message = consumer.receive(SOON)
        assert message is not None
        fail_once(session._core.epoch.channel, lost)
        message.acknowledge()
        eventually(lambda: lives.of(events.ConnectionLost))
        eventually(lambda: (consumer.receive_nowait(), lives.of(events.AcknowledgedTooLate))[1])
        (late,) = lives.of(events.AcknowledgedTooLate)
        assert isinstance(late, events.AcknowledgedTooLate)
        assert late.message_id == message.message_id
    lives.check()


def test_acknowledging_all_that_meets_the_loss_is_an_event_after_it(site: Stocked) -> None:
    """CLIENT: no error of a connection that comes back; over AMQP nothing waits for an answer that could be missing."""

    def lost(deliveries: Sequence[Any]) -> Flow[None]:  # noqa: ARG001  # of `Channel.commit`
        site.gate.shut(0.1)
        eventually(lambda: session._core.needs_check)
        raise ConnectionLostError("reset")
        yield

    lives = Lives()
    connection = redelivery.connect(site.url, reconnect=QUICK, observer=lives)
    with connection, connection.session("client") as session:
        consumer = session.consumer("orders")
        first = consumer.receive(SOON)
        assert first is not None
        session._core.epoch.channel.commit = lost  # type: ignore[method-assign]  # a write that fails
        session.acknowledge()
        assert [consumer.receive_body(str, SOON), consumer.receive_body(str, SOON)] == ["m1", "m2"]
        session.acknowledge()
        (late,) = lives.of(events.AcknowledgedTooLate)
        assert isinstance(late, events.AcknowledgedTooLate)
        assert late.message_id == first.message_id
    assert site.left == []
    lives.check()
