"""Queues of a test's own that it declares, and a session to do so."""

from __future__ import annotations

import contextlib

from tests.conformance.stage import Stage

import redelivery
from redelivery import AckMode, InvalidDestinationError, Queue, Session

# broker -> the type of a queue that counts what comes back; elsewhere each does
COUNTS = {"rabbitmq4": "quorum"}


class Own:
    """A session, and the queues of the test, which are deleted after it."""

    def __init__(self, stage: Stage) -> None:
        self.pair, self.stage, self.queue = stage.pair, stage, Queue(stage.queue)
        self.dead = Queue(f"{stage.queue}.dead")
        self.broker = stage.pair.kind.broker or ""
        self.session: Session = stage.session(AckMode.AUTO)

    @property
    def counts(self) -> str | None:
        return COUNTS.get(self.broker)

    def clear(self) -> None:
        with redelivery.connect(self.pair.url) as connection, connection.session() as session:
            for each in (self.queue, self.dead):
                with contextlib.suppress(InvalidDestinationError):
                    session.delete(each)
