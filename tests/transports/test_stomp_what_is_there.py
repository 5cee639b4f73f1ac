"""What the socket holds counts as there, also for a session that was woken before: by an answer that it did not wait
for, or by a message that somebody else has read for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from queue import SimpleQueue

import pytest
from tests.transports.scripted import SHARING, TIMEOUT, BrokerEnd, ScriptedBroker

import redelivery
from redelivery import Connection, Consumer, RedeliveryPolicy, Session
from redelivery.transports.stomp.adapter import StompTransport
from redelivery.transports.wire.clock import session_time

DELAY = 60.0


class Scene:
    """A session, another one that may read for it, and messages of which the test knows that they are in the socket."""

    def __init__(self, connection: Connection, send: Callable[[int], None]) -> None:
        self.session: Session = connection.session("transacted")
        self.consumer: Consumer = self.session.consumer("queue://orders")
        self._other = connection.session("auto").consumer("queue://others")
        transport = connection._core.transport
        assert isinstance(transport, StompTransport)
        assert transport._first is not None
        self._stream = transport._first._stream
        self._send = send

    def put(self, number: int) -> None:
        """It has come as far as the socket."""
        self._send(number)
        assert self._stream.wait_readable(TIMEOUT)

    def read_by_another(self) -> None:
        assert self._other.receive_nowait() is None

    def received(self) -> object:
        message = self.consumer.receive_nowait()
        return None if message is None else message.body


@pytest.fixture
def scene() -> Iterator[Scene]:
    wanted: SimpleQueue[int] = SimpleQueue()

    def script(end: BrokerEnd) -> None:
        end.log_in(SHARING)
        subscription = end.subscribed()
        end.subscribed()
        while number := wanted.get(timeout=TIMEOUT):
            end.message(subscription, number, b"m%d" % number)
        end.goodbye()

    policy = RedeliveryPolicy(initial_redelivery_delay=DELAY)
    with (
        ScriptedBroker(script) as broker,
        redelivery.connect(
            f"stomp://127.0.0.1:{broker.port}", redelivery_policy=policy, non_blocking_redelivery=True
        ) as connection,
    ):
        yield Scene(connection, wanted.put)
        wanted.put(0)


def test_receive_nowait_has_it(scene: Scene) -> None:
    scene.put(1)
    scene.read_by_another()
    scene.put(2)
    assert [scene.received(), scene.received()] == ["m1", "m2"]


def test_a_redelivery_that_is_due_does_not_come_before_it(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.put(1)
    assert scene.received() == "m1"
    scene.session.rollback()
    scene.put(2)
    scene.read_by_another()
    assert scene.received() == "m2"
    scene.put(3)
    monkeypatch.setattr("redelivery.client.session.state.session_time", lambda: session_time() + DELAY)
    assert [scene.received(), scene.received()] == ["m3", "m1"]
