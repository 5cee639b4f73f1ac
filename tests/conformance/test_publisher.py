"""A publisher sends from any thread, on every pair, also while listeners run."""

from __future__ import annotations

import threading
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

from tests.conformance.stage import SOON, Stage

from redelivery import AckMode, Message

THREADS, EACH = 8, 6


def test_threads_publish_while_listeners_run_and_each_keeps_its_order(stage: Stage) -> None:
    connection = stage.connect()
    seen: dict[str, list[int]] = defaultdict(list)
    done = threading.Event()

    def listener(message: Message) -> None:
        thread, _, number = message.body.partition(":")
        seen[thread].append(int(number))
        if sum(map(len, seen.values())) == THREADS * EACH:
            done.set()

    connection.session(AckMode.AUTO).consumer(stage.queue).listen(listener)
    with connection.publisher() as publisher, ThreadPoolExecutor(THREADS) as pool:
        start = threading.Barrier(THREADS)

        def publish(thread: int) -> None:
            start.wait(SOON)
            for number in range(EACH):
                publisher.send(f"{thread}:{number}", stage.queue)

        for sent in [pool.submit(publish, thread) for thread in range(THREADS)]:
            sent.result(SOON)
        assert done.wait(SOON), f"of {THREADS * EACH} came {dict(seen)}"
    assert seen == {str(thread): list(range(EACH)) for thread in range(THREADS)}
