"""A consumer process to be killed: moves messages from one queue to another in transactions of changing size.

Says on standard output what it does, a line at a time and at once:

| line | means |
|---|---|
| `got BODY COUNT` | delivered for the COUNT-th time, as far as we know |
| `commit` | the commit begins |
| `committed` | commit() has returned |
| `rolled-back` | rollback() has returned |
| `end` | nothing came any more; the connection is closed |

``python victim.py URL SOURCE TARGET SEED``; in every third transaction or so it rolls back once.
"""

from __future__ import annotations

import os
import random
import sys

import redelivery
from redelivery import RedeliveryPolicy

SIZES = (1, 2, 7, 30, 150)  # the last is more than the prefetch window
QUICK = RedeliveryPolicy(maximum_redeliveries=-1, initial_redelivery_delay=0.01, redelivery_delay=0.01)


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def main(url: str, source: str, target: str, seed: str) -> None:
    chance = random.Random(seed)  # noqa: S311  # a test that can be repeated
    with redelivery.connect(url, redelivery_policy=QUICK) as connection, connection.session("transacted") as session:
        consumer, producer = session.consumer(source), session.producer(target)
        while True:
            for _ in range(chance.choice(SIZES)):
                message = consumer.receive(timeout=2)
                if message is None:
                    break
                say("got", message.body, message.delivery_count)
                producer.send(message.body)
            else:
                if chance.random() < 0.3:
                    session.rollback()
                    say("rolled-back")
                    continue
            say("commit")
            session.commit()
            say("committed")
            if message is None:
                break
    say("end")


if __name__ == "__main__":
    main(*sys.argv[1:])
