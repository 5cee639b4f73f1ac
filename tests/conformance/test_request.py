"""Requests over a temporary queue: each gets its own reply, whatever the order in which they come."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.conformance.stage import SOON, Stage

from redelivery import AckMode, Message, RequestTimeoutError, UnsupportedError

pytestmark = pytest.mark.needs("temporary destinations", refused=UnsupportedError)
TOGETHER = 5


def test_requests_that_are_answered_backwards(stage: Stage) -> None:
    asking, answering = stage.connect(), stage.session(AckMode.AUTO)
    asked: list[Message] = []

    def answer(request: Message) -> None:
        asked.append(request)
        if len(asked) % TOGETHER == 0:
            producer = answering.producer()
            for each in reversed(asked[-TOGETHER:]):
                producer.send(f"re: {each.body}", each.reply_to, correlation_id=each.correlation_id)

    answering.consumer(stage.queue).listen(answer)
    with ThreadPoolExecutor(TOGETHER) as pool:
        for _ in range(2):
            replies = pool.map(lambda n: asking.request(stage.queue, f"question {n}", SOON).body, range(TOGETHER))
            assert list(replies) == [f"re: question {n}" for n in range(TOGETHER)]
    assert asking.late_reply_count == 0


def test_no_reply_in_time(stage: Stage) -> None:
    asking = stage.connect()
    with pytest.raises(RequestTimeoutError):
        asking.request(stage.queue, "question", 0.02, ttl=0)
    assert stage.left_bodies(at_least=1) == ["question"]
