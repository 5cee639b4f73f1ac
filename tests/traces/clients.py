"""What the tests of faults that we do not copy need: connections, listeners, and what is left in a queue."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from tests.traces.relay import Relay, cut_vm

import redelivery
from redelivery import Connection, Message, RedeliveryPolicy, SharedDeadLetterStrategy
from redelivery.broker import EmbeddedBroker

numbers = itertools.count(1)
SOON = 5.0  # seconds within which what must come comes
NEVER = 0.3  # seconds without it show that something does not come


class Client:
    """Connections to one broker, with names of their own, closed at the end."""

    def __init__(self, url: str, broker: EmbeddedBroker | None = None) -> None:
        self.url = url
        self.broker = broker
        self.queue = f"n{os.getpid()}.{next(numbers)}"
        self.dead_letters = f"{self.queue}.dead"
        self.connections: list[Connection] = []

    def connect(self, policy: RedeliveryPolicy, *, url: str = "", non_blocking: bool = False) -> Connection:
        connection = redelivery.connect(
            url or self.url,
            redelivery_policy=policy,
            non_blocking_redelivery=non_blocking,
            dead_letter_strategy=SharedDeadLetterStrategy(
                dead_letter_queue=self.dead_letters, process_non_persistent=False
            ),
        )
        self.connections.append(connection)
        return connection

    def send(self, *bodies: str) -> None:
        with redelivery.connect(self.url) as connection:
            producer = connection.session().producer(self.queue)
            for body in bodies:
                producer.send(body)

    def left(self, queue: str = "") -> list[str]:
        """The bodies left in a queue, when every other connection is closed; they are taken."""
        for connection in self.connections:
            connection.close()
        with redelivery.connect(self.url) as connection:
            return [message.body for message in drained(connection.session().consumer(queue or self.queue))]


def drained(consumer: redelivery.Consumer) -> Iterator[Message]:
    while (message := consumer.receive(timeout=NEVER)) is not None:
        yield message


def delayed(seconds: float, maximum: int = 5) -> RedeliveryPolicy:
    return RedeliveryPolicy(maximum_redeliveries=maximum, initial_redelivery_delay=seconds, redelivery_delay=seconds)


def expect(consumer: redelivery.Consumer, *deliveries: tuple[str, int]) -> list[Message]:
    """Receive exactly these bodies with these counts, in this order."""
    messages: list[Message] = []
    for _ in deliveries:
        message = consumer.receive(timeout=SOON)
        assert message is not None, f"only {[each.body for each in messages]} came"
        messages.append(message)
    assert [(message.body, message.delivery_count) for message in messages] == list(deliveries)
    return messages


@contextmanager
def cuttable(client: Client) -> Iterator[tuple[str, Callable[[Connection], object]]]:
    """A URL, and what cuts the one connection that was made with it."""
    if client.broker is not None:
        broker = client.broker
        yield client.url, lambda connection: cut_vm(broker, connection)
        return
    parts = urlsplit(client.url)
    assert parts.hostname is not None, f"{client.url} names no host"
    assert parts.port is not None, f"{client.url} names no port"
    relay = Relay(parts.hostname, parts.port)
    try:
        yield f"stomp://127.0.0.1:{relay.port}", lambda _: relay.cut()
    finally:
        relay.cut()


class Heard:
    """A listener that notes what it heard and when, then does what it was given to do."""

    def __init__(self, wanted: int, then: Callable[[Message], object]) -> None:
        self._wanted = wanted
        self._then = then
        self._deliveries: list[tuple[str, int]] = []
        self._enough = threading.Event()
        self.first_at = 0.0

    def __call__(self, message: Message) -> None:
        self.first_at = self.first_at or time.monotonic()
        self._deliveries.append((message.body, message.delivery_count))
        try:
            self._then(message)
        finally:
            if len(self._deliveries) >= self._wanted:
                self._enough.set()

    def wait(self) -> list[tuple[str, int]]:
        """What was heard, once it is as much as was wanted and no more follows."""
        assert self._enough.wait(SOON), f"only {self._deliveries} came"
        time.sleep(NEVER / 3)
        return self._deliveries


def failing(body: str, times: int, error: type[BaseException] = RuntimeError) -> Callable[[Message], object]:
    """Raises for one body, that many times."""
    left = itertools.chain([True] * times, itertools.repeat(False))

    def then(message: Message) -> None:
        if message.body == body and next(left):
            raise error(f"{body} is not handled")

    return then
