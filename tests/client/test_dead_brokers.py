"""A broker that goes while nobody reads, without a ReconnectPolicy: it does not look alive, and hands nothing out."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack

import pytest
from tests.client.shell import SOON, embedded, eventually, receive
from tests.conformance.blocking import Shell

from redelivery import ConnectionLostError, Message
from redelivery.broker import EmbeddedBroker

MODES = pytest.mark.parametrize("mode", ["auto", "dups_ok", "client", "individual", "transacted"])


@pytest.fixture(params=["vm", "stomp", "amqp"])
def place(request: pytest.FixtureRequest, opened: ExitStack) -> tuple[EmbeddedBroker, str]:
    """A broker, which a test closes, and its URL."""
    broker, url = opened.enter_context(embedded(request.param))
    for number in range(4):
        broker.send("orders", f"{number}")
    return broker, url


@MODES
def test_every_call_raises_and_nothing_prefetched_is_dispatched(
    place: tuple[EmbeddedBroker, str], shell: Shell, mode: str
) -> None:
    broker, url = place
    connection = shell.connect(url, exception_listener=lambda _: None)
    session, publisher = connection.session(mode), connection.publisher()
    consumer, producer = session.consumer("orders"), session.producer("other")
    publisher.send("x", "other")
    first = receive(consumer)
    broker.close()
    eventually(lambda: not connection.connected)
    calls: list[Callable[[], object]] = [
        lambda: consumer.receive(timeout=0.1),
        lambda: consumer.receive(timeout=0),
        consumer.receive,
        consumer.receive_nowait,
        lambda: consumer.receive_many(3, 0.1),
        lambda: consumer.receive_body(str, 0.1),
        lambda: next(iter(consumer)),
        lambda: consumer.listen(lambda _: None),
        lambda: producer.send("x"),
        lambda: producer.send("x", persistent=False),
        *([] if shell.tasks else [lambda: producer.send_async("x")]),
        lambda: publisher.send("x", "other"),
        lambda: session.producer("other"),
        lambda: session.consumer("other"),
        lambda: list(session.browser("orders")),
        session.temporary_queue,
        connection.session,
        connection.publisher,
        lambda: connection.request("other", "x", timeout=1),
        lambda: connection.wait(1),
    ]
    if mode in ("client", "individual"):
        calls += [first.acknowledge, session.recover]
    if mode == "client":
        calls += [session.acknowledge]
    if mode == "transacted":
        calls += [session.commit, session.rollback]
    for call in calls:
        with pytest.raises(ConnectionLostError):
            call()


@MODES
def test_no_listener_is_called_with_what_was_prefetched(
    place: tuple[EmbeddedBroker, str], shell: Shell, mode: str
) -> None:
    broker, url = place
    connection = shell.connect(url, exception_listener=lambda _: None)
    heard: list[object] = []
    there, returns = threading.Event(), threading.Event()

    def hear(message: Message) -> None:
        heard.append(message.body)
        there.set()
        assert returns.wait(SOON)

    connection.session(mode).consumer("orders").listen(hear)
    assert there.wait(SOON)
    broker.close()
    eventually(lambda: not connection.connected)
    returns.set()
    with pytest.raises(ConnectionLostError):
        connection.wait(SOON)
    eventually(lambda: "redelivery-listener" not in {each.name for each in threading.enumerate()})
    assert not threading.Event().wait(0.05 if shell.tasks else 0)
    assert heard == ["0"]
