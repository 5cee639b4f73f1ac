"""What tests of subscriptions have in common: a topic, and a client id, of the test's own."""

from __future__ import annotations

import uuid
from typing import Any

from tests.conformance.stage import NOTHING, NOTHING_EMBEDDED, Stage, bodies, nothing_comes, receive

from redelivery import AckMode, Connection, Consumer, Session


class Desk:
    """A topic of the test's own, and connections of a client id of the test's own, one at a time."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.topic = f"topic://{stage.queue}"
        self.client_id = f"client-{uuid.uuid4().hex[:12]}"
        self.name = f"sub-{uuid.uuid4().hex[:8]}"

    def connect(self, **options: Any) -> Connection:
        return self.stage.connect(client_id=self.client_id, **options)

    def session(self, mode: AckMode = AckMode.AUTO, **options: Any) -> Session:
        return self.connect(**options).session(mode)

    def send(self, *sent: str, **options: Any) -> None:
        self.stage.send(*sent, queue=self.topic, **options)

    def left(self, consumer: Consumer) -> list[Any]:
        """What still comes, which is something: the first of it is waited for."""
        first = receive(consumer)
        more = consumer.receive_many(100, NOTHING if self.stage.pair.real else NOTHING_EMBEDDED)
        return bodies([first, *more])


def share(consumers: list[Consumer], expected: list[str]) -> None:
    """Each message comes once, and no consumer gets all of them."""
    taken: list[list[Any]] = [[] for _ in consumers]
    for _ in range(200):
        for consumer, own in zip(consumers, taken, strict=True):
            if (message := consumer.receive(timeout=0.05)) is not None:
                own.append(message.body)
        if sum(map(len, taken)) >= len(expected):
            break
    assert sorted(body for own in taken for body in own) == expected
    assert all(taken), taken
    assert all(nothing_comes(consumer) for consumer in consumers)
