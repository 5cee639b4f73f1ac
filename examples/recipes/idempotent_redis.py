"""Do the work of a message once, as far as a key in Redis can: for work that no database transaction contains.

REDELIVERY_URL=stomp://user:password@localhost:61613 redelivery run idempotent_redis:app
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from uuid import uuid4

from redis import Redis, WatchError

import redelivery
from redelivery import Retry

LEASE = 60  # seconds: longer than the work takes; after that, a worker that has died is replaced
KEPT = 7 * 24 * 3600  # seconds: longer than a message may be in a dead-letter queue before it is replayed
DONE = b"done"

app = redelivery.App(os.environ["REDELIVERY_URL"], dead_letter_strategy=redelivery.SharedDeadLetterStrategy("shop.DLQ"))
redis = Redis.from_url(os.environ.get("REDIS_URL", "redis://localhost:6379"))


@dataclass
class Order:
    id: str
    email: str


@contextmanager
def once(key: str) -> Iterator[bool]:
    """Say whether the work is to be done. Its failure releases the key, so that the redelivery may do it.

    Raises:
        Retry: another worker is doing it, or has died within the last LEASE seconds.
    """
    mine = uuid4().hex.encode()
    if not redis.set(key, mine, nx=True, ex=LEASE):
        if redis.get(key) != DONE:
            raise Retry(f"{key} is being handled elsewhere", after=LEASE / 4)
        yield False
        return
    try:
        yield True
    except BaseException:
        release(key, mine)
        raise
    redis.set(key, DONE, ex=KEPT)


def release(key: str, mine: bytes) -> None:
    """Delete the key, unless the lease is over and another worker has it."""
    with redis.pipeline() as pipeline, suppress(WatchError):
        pipeline.watch(key)
        if pipeline.get(key) == mine:
            pipeline.multi()
            pipeline.delete(key)
            pipeline.execute()


def send_mail(order: Order) -> None:
    """Your code."""
    print(f"mail to {order.email}")


@app.listener("orders", body_type=Order, concurrency=2)
def confirm(order: Order) -> None:
    with once(f"confirm:{order.id}") as first:
        if first:
            send_mail(order)
