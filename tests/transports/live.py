"""What the tests of the transport on real brokers have in common."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from tests.conformance.stage import LATE
from tests.transports.scripted import TIMEOUT, Client, Session, text

import redelivery
from redelivery import AckMode, Connection, RedeliveryPolicy
from redelivery.transports.seam import Pending

AT_ONCE = RedeliveryPolicy(maximum_redeliveries=2, initial_redelivery_delay=0, redelivery_delay=0)


class Place:
    """One real broker, a queue of the test's own, and all that was opened there; it is left closed and empty."""

    def __init__(self, url: str, opened: ExitStack) -> None:
        self.url = url
        self.queue = f"transport.{uuid4().hex}"
        self._opened = opened
        self._address = urlsplit(url)
        self._used = {self.queue}
        opened.callback(self._empty)

    def name(self, suffix: str) -> str:
        """A further queue of the test's own."""
        self._used.add(f"{self.queue}.{suffix}")
        return f"{self.queue}.{suffix}"

    def forget(self) -> None:
        """The test has emptied its queues itself, which no plain consumer can."""
        self._used.clear()

    def client(self, **options: Any) -> Client:
        """A transport."""
        address = self._address
        assert address.port is not None
        defaults = {"host": address.hostname, "username": address.username, "password": address.password}
        client = Client(address.port, **{**defaults, "heartbeat": 10.0, **options})
        self._opened.callback(client.close)
        return client

    def connect(self, **options: Any) -> Connection:
        """A connection of the public kind, which redelivers at once."""
        if "redelivery_policies" not in options:
            options.setdefault("redelivery_policy", AT_ONCE)
        return self._opened.enter_context(redelivery.connect(self.url, **options))

    def fill(self, *bodies: object, queue: str | None = None, **stamps: object) -> None:
        """Send, each confirmed."""
        client = self.client()
        session = client.session()
        answers = [Pending(session.waiter) for _ in bodies]
        for body, answer in zip(bodies, answers, strict=True):
            session.channel.send(text(body, queue or self.queue, **stamps), transacted=False, pending=answer)
        for answer in answers:
            while not answer.done:
                client.transport.wait(session.waiter, TIMEOUT)
            assert answer.error is None
        client.close()

    def holding(self) -> tuple[Client, Session, Any]:
        """A transacted session that holds the queue's only message, "in"; its client and the delivery."""
        self.fill("in")
        client = self.client()
        session = client.session(AckMode.TRANSACTED)
        session.attach(self.queue)
        (delivery,) = held(session, 1)
        return client, session, delivery

    def left(self, queue: str | None = None, *, wait: float = 0.5, at_least: int = 0, **options: Any) -> list[Any]:
        """What another consumer gets of a queue, in order; it is acknowledged.

        ``at_least``: so many must be there, and are waited for longer than the moment that a broker may need.
        """
        client = self.client()
        session = client.session()
        session.attach(queue or self.queue, **options)
        found: list[Any] = []
        soon = LATE if client.transport.peer.dialect == "artemis" else TIMEOUT
        while (delivery := session.receive(soon if len(found) < at_least else wait)) is not None:
            session.channel.accept([delivery], batched=False)
            found.append(delivery)
        session.do(session.channel.close())
        client.close()
        return found

    def _empty(self) -> None:
        for each in self._used:
            self.left(each, wait=0.1)


def bodies(deliveries: list[Any]) -> list[Any]:
    return [each.body() for each in deliveries]


def numbers(count: int) -> list[str]:
    return [str(at) for at in range(count)]


def held(session: Session, number: int) -> list[Any]:
    """Receive that many, as an application of a transacted session does: none is settled."""
    deliveries: list[Any] = []
    for _ in range(number):
        delivery = session.receive()
        assert delivery is not None, f"no message after {len(deliveries)}"
        session.channel.dispatched(delivery)
        deliveries.append(delivery)
    return deliveries


def exhaust(place: Place, deliveries: int, **options: Any) -> None:
    """Roll a message back until it is poisoned, over the public API."""
    with place.connect(**options) as connection, connection.session(AckMode.TRANSACTED) as session:
        consumer = session.consumer(place.queue)
        for _ in range(deliveries):
            assert consumer.receive(timeout=TIMEOUT) is not None
            session.rollback(cause=ValueError("no"))
        assert consumer.receive(timeout=0.3) is None


def until_committed(client: Client, session: Session, flow: Any) -> None:
    """Drive a commit until COMMIT is answered, and no further: what a crash then leaves is the broker's."""
    pending = next(flow)
    while True:
        while not pending.done:
            client.transport.wait(session.waiter, TIMEOUT)
        if not session.channel._work.begun:  # type: ignore[attr-defined]  # it is over with the COMMIT
            return
        pending = flow.send(None)


def raw_send(session: Any, queue: str, body: bytes, headers: dict[str, str]) -> None:
    """A SEND as another client writes it."""
    dialect = session.channel._dialect
    head = "".join(f"{name}:{value}\n" for name, value in {**dict(dialect.send_to_queue), **headers}.items())
    session.channel._outbox.write(f"SEND\ndestination:{dialect.queue_prefix}{queue}\n{head}\n".encode() + body + b"\0")
