"""Senders of what is measured: as fast as they can, or so many messages a second."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Final

import redelivery

TICK: Final = 0.002  # seconds that a sender by the clock sleeps at least


def fill(
    connection: redelivery.Connection,
    queue: str,
    messages: Iterable[redelivery.Message | str | bytes],
    *,
    rate: float = 0.0,
    commit: int = 500,
    transacted: bool = True,
) -> int:
    """Send messages to a queue, in transactions if the broker has some; ``rate``: so many a second by the clock.

    Those that are due together are one transaction. Without one they are sent one by one, and are not persistent.
    """
    transacted, sent = transacted and connection.metadata.capabilities.transactions, 0
    with connection.session("transacted" if transacted else "auto") as session:
        producer, began = session.producer(queue, persistent=transacted), time.monotonic()
        for message in messages:
            producer.send(message)
            sent += 1
            ahead = began + sent / rate - time.monotonic() if rate else 0.0
            if transacted and (ahead > 0 or sent % commit == 0):
                session.commit()
            time.sleep(max(TICK, ahead) if ahead > 0 else 0)
        if transacted:
            session.commit()
    return sent


def send_times(url: str, queue: str, count: int, rate: float) -> int:
    """Send the time of the call, so many times a second by the clock."""
    with redelivery.connect(url) as connection:
        return fill(connection, queue, (str(time.time_ns()) for _ in range(count)), rate=rate, transacted=False)
