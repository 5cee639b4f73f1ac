"""redelivery by its public API: what a user would write. Every function returns the seconds that the messages took."""

from __future__ import annotations

import time
from collections import deque
from concurrent.futures import Future

import redelivery
from redelivery import AckMode

PATIENCE = 120.0  # seconds


def consume(url: str, queue: str, count: int, *, mode: AckMode, batch: int = 0) -> float:
    """Receive, read body and id, acknowledge as the mode asks: INDIVIDUAL each, TRANSACTED by ``batch``."""
    read = 0
    with redelivery.connect(url) as connection, connection.session(mode) as session:
        start = time.perf_counter()
        receive = session.consumer(queue).receive
        for number in range(1, count + 1):
            message = receive(PATIENCE)
            assert message is not None, f"message {number} of {count} did not come"
            read += len(message.body) + len(message.message_id or "")
            if mode is AckMode.INDIVIDUAL:
                message.acknowledge()
            elif batch and number % batch == 0:
                session.commit()
        return time.perf_counter() - start


def send(url: str, queue: str, count: int, *, window: int) -> float:
    """Persistent and confirmed; one by one, or at most ``window`` futures open."""
    body = "x" * 1024
    futures: deque[Future[redelivery.Message]] = deque()
    with redelivery.connect(url) as connection, connection.session() as session:
        producer = session.producer(queue)
        start = time.perf_counter()
        for _ in range(count):
            if window == 1:
                producer.send(body)
                continue
            if len(futures) == window:
                futures.popleft().result(PATIENCE)
            futures.append(producer.send_async(body))
        for future in futures:
            future.result(PATIENCE)
        return time.perf_counter() - start
