"""10,000 messages, each consumed exactly once and in order, while every tenth batch fails once."""

from __future__ import annotations

import pytest
from tests.conformance.stage import Stage, bodies, nothing_comes, numbered, receive_all

from redelivery import AckMode

BATCH = 20  # HornetQ promises no order beyond 10 KiB; larger batches are those of test_batches


@pytest.mark.timeout(300)
@pytest.mark.parametrize("count", [1_000, pytest.param(10_000, marks=pytest.mark.long_form)])
def test_ten_thousand_messages_exactly_once_in_order(stage: Stage, count: int) -> None:
    mode = AckMode.TRANSACTED if stage.pair.can("transactions") else AckMode.CLIENT
    fill(stage, mode, count)
    session, consumer = stage.consuming(mode)
    for start in range(0, count, BATCH):
        received = receive_all(consumer, BATCH)
        assert bodies(received) == numbered(count)[start : start + BATCH]
        if start % (10 * BATCH) == 0:
            counts = [message.delivery_count for message in received]
            session.rollback() if session.transacted else session.recover()
            again = receive_all(consumer, BATCH)
            assert bodies(again) == bodies(received)
            assert [message.delivery_count for message in again] == [count + 1 for count in counts]
        session.commit() if session.transacted else session.acknowledge()
    assert nothing_comes(consumer)
    session.close()
    assert stage.left() == []


def fill(stage: Stage, mode: AckMode, count: int) -> None:
    """The messages, confirmed by a commit of each batch; where there are no transactions each by the broker."""
    with stage.session(mode) as session:
        producer = session.producer(stage.queue)
        for start in range(0, count, BATCH):
            sent = [producer.send_async(body) for body in numbered(count)[start : start + BATCH]]
            if session.transacted:
                session.commit()
            for each in sent:
                each.result(timeout=30)
