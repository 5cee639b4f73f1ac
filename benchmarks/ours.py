"""redelivery by its public API: what a user would write. Every function returns what the messages took."""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future

import redelivery
from benchmarks.places import Place
from benchmarks.results import BenchmarkError
from benchmarks.stopwatch import Spent, Stopwatch
from redelivery import AckMode

PATIENCE = 120.0  # seconds


def consume(place: Place, queue: str, count: int, *, mode: AckMode, batch: int = 0, read: bool = True) -> Spent:
    """Receive, read body and id, acknowledge as the mode asks: INDIVIDUAL each, TRANSACTED by ``batch``."""
    length = 0
    with redelivery.connect(place.url) as connection, connection.session(mode) as session:
        watch = Stopwatch()
        receive = session.consumer(queue).receive
        for number in range(1, count + 1):
            message = receive(PATIENCE)
            if message is None:
                raise BenchmarkError(f"{queue}: message {number} of {count} did not come")
            if read:
                length += len(message.body) + len(message.message_id or "")
            if mode is AckMode.INDIVIDUAL:
                message.acknowledge()
            elif batch and number % batch == 0:
                session.commit()
        return watch.stop()


def send(place: Place, queue: str, count: int, *, window: int) -> Spent:
    """Persistent and confirmed; one by one, or at most ``window`` futures open."""
    body = "x" * 1024
    futures: deque[Future[redelivery.Message]] = deque()
    with redelivery.connect(place.url) as connection, connection.session() as session:
        producer = session.producer(queue)
        watch = Stopwatch()
        for _ in range(count):
            if window == 1:
                producer.send(body)
                continue
            if len(futures) == window:
                futures.popleft().result(PATIENCE)
            futures.append(producer.send_async(body))
        for future in futures:
            future.result(PATIENCE)
        return watch.stop()
