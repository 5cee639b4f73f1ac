"""`deduplicate_sends`, where the connection is lost without a sign: on the embedded broker, by each protocol and shell.

It drops no duplicate, so a repeated send is there twice, with the id by which another broker would drop one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from time import monotonic
from typing import Any

import pytest
from tests.client.gated import Site
from tests.client.shell import SOON, eventually
from tests.conformance import blocking

import redelivery
from redelivery import InDoubtError, ReconnectPolicy, aio
from redelivery.client.operations.resend import Repeatable
from redelivery.events import ConnectionLost, Event, InDoubt
from redelivery.transports.dialects import detect

ID = "_AMQ_DUPL_ID"
REQUEST = 0.05  # seconds: an answer is late long before the loss is noticed
BEAT = 0.2
Connect = Callable[..., Any]


@pytest.fixture(params=["stomp", "amqp"])
def site(request: pytest.FixtureRequest, opened: ExitStack, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A broker that says that it drops duplicates."""
    if request.param == "amqp":
        pytest.importorskip("proton")
    dialects: Any = detect._DIALECTS
    plain = getattr(dialects["embedded"], request.param)
    able = replace(plain, capabilities=replace(plain.capabilities, duplicate_id_property=ID))
    monkeypatch.setitem(dialects, "embedded", replace(dialects["embedded"], **{request.param: able}))
    return Site(request.param, opened)


@pytest.fixture(params=["threads", "asyncio"])
def connect(request: pytest.FixtureRequest, site: Site, opened: ExitStack) -> Connect:
    options: dict[str, Any] = {"deduplicate_sends": True, "heartbeat": BEAT}
    if site.url.startswith("amqp"):
        options["request_timeout"] = 2.0  # a peer that owes an answer may be silent for so much longer
    if request.param == "threads":
        return lambda **more: opened.enter_context(redelivery.connect(site.url, **options, **more))
    loop = blocking.Loop()
    opened.callback(loop.end)
    return lambda **more: opened.enter_context(blocking.connect(loop, site.url, **options, **more))


def hurry(session: Any) -> None:
    """From now on each answer has so long; to open it all, a busy machine had longer."""
    object.__setattr__(session._core.options, "request_timeout", REQUEST)


def ids(site: Site) -> list[Any]:
    return [message.properties[ID] for message in site.broker.messages("orders")]


@pytest.mark.parametrize("mode", ["auto", "transacted"])
def test_a_half_open_connection_doubts_nothing(site: Site, connect: Connect, mode: str) -> None:
    events: list[Event] = []

    def observe(event: Event) -> None:
        events.append(event)
        if isinstance(event, ConnectionLost):
            site.broker.faults.clear()

    connection = connect(reconnect=ReconnectPolicy(maximum_delay=0.02), observer=observe)
    session = connection.session(mode)
    producer = session.producer("orders")
    producer.send("first")
    if mode == "transacted":
        session.commit()
    hurry(session)
    site.broker.faults.silence()
    producer.send("again")
    if mode == "transacted":
        session.commit()
    first, *again = ids(site)
    assert len(set(again)) == 1
    assert first not in again
    assert not [event for event in events if isinstance(event, InDoubt)]


def test_a_broker_that_lives_and_does_not_answer_has_the_time_out_of_the_policy(site: Site, connect: Connect) -> None:
    connection = connect(reconnect=ReconnectPolicy(timeout=4 * REQUEST))
    session = connection.session()
    producer = session.producer("orders")
    producer.send("first")
    hurry(session)
    site.broker.faults.swallow("SEND")
    with pytest.raises(InDoubtError):
        producer.send("second")
    assert connection.epoch == 1


@pytest.mark.parametrize("mode", ["auto", "transacted"])
def test_a_policy_without_a_time_out_waits_for_a_bounded_time(site: Site, connect: Connect, mode: str) -> None:
    connection = connect(reconnect=ReconnectPolicy())
    session = connection.session(mode)
    producer = session.producer("orders")
    producer.send("first")
    if mode == "transacted":
        session.commit()
    hurry(session)
    object.__setattr__(session._core.options.transport, "request_timeout", REQUEST)
    site.broker.faults.swallow("SEND" if mode == "auto" else "COMMIT")
    if mode == "transacted":
        producer.send("second")
    began = monotonic()
    with pytest.raises(InDoubtError):
        session.commit() if mode == "transacted" else producer.send("second")
    assert monotonic() - began >= 4 * (REQUEST + BEAT)  # or a loss that is noticed later would be in doubt
    assert connection.epoch == 1


@pytest.mark.parametrize(
    ("took", "expected"),
    [((), 0.1), ((0.02,), 0.1), ((0.4, 0.1), 0.792), ((100.0,), 5.0), ((100.0, *[0.01] * 1000), 0.1)],
    ids=str,
)
def test_the_next_connection_waits_as_the_broker_stores(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, took: tuple[float, ...], expected: float
) -> None:
    """For twice the longest time of late, at least 0.1 s and at most 5 s."""
    core = connect(reconnect=ReconnectPolicy(jitter=0.0))._core
    for seconds in took:
        core.shared.storing.took(seconds)
    now = [1000.0]
    monkeypatch.setattr("redelivery.client.connection.dialing.session_time", lambda: now[0])

    def dialled(_url: str) -> Any:
        return core.transport, core.events
        yield

    monkeypatch.setattr(core.dialer, "dial", dialled)
    flow: Any = core.dialer.open(again=True)
    waits = []
    for wish in flow:
        waits.append(wish.deadline - now[0])
        now[0] = wish.deadline
    assert waits == pytest.approx([0.01, expected])  # before it is dialled, and when it is there


def test_an_answer_that_comes_before_its_send_is_noted_took_no_time(connect: Connect) -> None:
    connection = connect(reconnect=ReconnectPolicy())
    session = connection.session()
    Repeatable(session._core).complete()
    assert connection._core.shared.storing.seconds == 0.0
    session.producer("orders").send("one")
    assert 0.0 < connection._core.shared.storing.seconds < SOON


def test_a_task_that_is_cancelled_waits_no_longer(site: Site) -> None:
    async def work() -> None:
        options: dict[str, Any] = {"deduplicate_sends": True, "reconnect": ReconnectPolicy()}
        async with await aio.connect(site.url, **options) as connection, await connection.session() as session:
            producer = await session.producer("orders")
            await producer.send("first")
            hurry(session)
            site.broker.faults.silence()
            sending = asyncio.create_task(producer.send("second"))
            await asyncio.to_thread(eventually, lambda: site.broker.queue_depth("orders") == 2)
            await asyncio.sleep(2 * REQUEST)
            assert not sending.done()
            sending.cancel()
            with pytest.raises(asyncio.CancelledError) as cancelled:
                await sending
            assert isinstance(cancelled.value.__cause__, InDoubtError)
            site.broker.faults.clear()

    asyncio.run(work())
