"""What the tests of the shell have in common: a broker of their own, other threads, and patience with a bound."""

from __future__ import annotations

import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from uuid import uuid4

import pytest

import redelivery
from redelivery import AckMode, Connection, Consumer, Message, RedeliveryPolicy, Session
from redelivery.broker import EmbeddedBroker
from redelivery.transports.seam import Transport, Waiter

SOON = 10.0
"""Long enough for a busy machine; who waits this long for something has lost."""


class Bench:
    """An embedded broker of its own, and whatever is opened on it, closed at the end."""

    def __init__(self, broker: EmbeddedBroker, opened: ExitStack) -> None:
        self.broker = broker
        self._opened = opened
        self.queue = "orders"
        self._parked: set[Waiter] = set()

    def connect(self, **options: Any) -> Connection:
        options.setdefault("redelivery_policy", RedeliveryPolicy(initial_redelivery_delay=0.02, redelivery_delay=0.02))
        connection = self._opened.enter_context(redelivery.connect(self.broker.vm_url, **options))
        self._watch(connection._core.transport)
        return connection

    def consuming(self, mode: AckMode = AckMode.AUTO, **options: Any) -> tuple[Session, Consumer]:
        session = self.connect(**options).session(mode)
        return session, session.consumer(self.queue)

    def send(self, *bodies: Any, queue: str | None = None) -> None:
        with redelivery.connect(self.broker.vm_url) as connection, connection.session() as session:
            producer = session.producer(queue or self.queue)
            for body in bodies:
                producer.send(body)

    @property
    def left(self) -> list[Any]:
        """What the queue still holds."""
        return [message.body for message in self.broker.messages(self.queue)]

    def waits(self, session: Session) -> bool:
        """Whether a thread has come so far that it waits for a message of the session."""
        return session._core.waiter in self._parked

    def _watch(self, transport: Transport) -> None:
        wait = transport.wait

        def watched(waiter: Waiter, timeout: float | None) -> None:
            self._parked.add(waiter)
            try:
                wait(waiter, timeout)
            finally:
                self._parked.discard(waiter)

        transport.wait = watched  # type: ignore[method-assign]  # a test looks over its shoulder

    @property
    def dead(self) -> list[Any]:
        return [message.body for message in self.broker.messages("ActiveMQ.DLQ")]


class Background:
    """Calls in other threads; what they raise is raised by `result`."""

    def __init__(self) -> None:
        self._threads: list[threading.Thread] = []

    def start(self, call: Callable[[], Any]) -> Callable[[], Any]:
        """Run it in a thread; the answer waits for its result, bounded."""
        outcome: list[Any] = []

        def run() -> None:
            try:
                outcome.extend((True, call()))
            except BaseException as error:  # noqa: BLE001 - it is raised again by `result`
                outcome.extend((False, error))

        thread = threading.Thread(target=run, name="background")
        self._threads.append(thread)
        thread.start()

        def result() -> Any:
            thread.join(SOON)
            assert outcome, "the call did not return"
            if not outcome[0]:
                raise outcome[1]
            return outcome[1]

        return result

    def join(self) -> None:
        for thread in self._threads:
            thread.join(SOON)
            assert not thread.is_alive()


class Gate:
    """A callback that stays inside until it is let go."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.leave = threading.Event()

    def __call__(self, _: object) -> None:
        self.entered.set()
        self.leave.wait(SOON)


def eventually(condition: Callable[[], object], within: float = SOON) -> None:
    """Wait until it holds, where nothing tells us when it does, ``within`` so many seconds."""
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, "it did not become so"
        time.sleep(0.002)


def receive(consumer: Consumer) -> Message:
    """The next message; fails when none comes soon."""
    message = consumer.receive(timeout=SOON)
    assert message is not None, "nothing came"
    return message


@contextmanager
def embedded(protocol: str) -> Iterator[tuple[EmbeddedBroker, str]]:
    """An embedded broker of one test's own, and its URL by vm, stomp or amqp."""
    if protocol == "amqp":
        pytest.importorskip("proton")
    ports: dict[str, Any] = {} if protocol == "vm" else {f"{protocol}_port": 0}
    with EmbeddedBroker(f"served-{uuid4().hex}", **ports) as broker:
        yield broker, getattr(broker, f"{protocol}_url")


def asked(port: int, path: str, method: str = "GET") -> tuple[int, str]:
    """The status and the text of a page of this machine."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
