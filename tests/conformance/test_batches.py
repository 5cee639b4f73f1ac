"""Batches larger than the prefetch window, on a queue that was filled before.

ActiveMQ Classic pages 200 messages of a backlog and then sleeps until an acknowledgement wakes it, even one inside a
transaction. A client that acknowledges at commit only stalls there for ever.
"""

from __future__ import annotations

import threading

import pytest
from tests.conformance.stage import Stage, bodies, numbered, receive, receive_all

from redelivery import AckMode, Message, PrefetchPolicy, RedeliveryPolicy

beyond_the_window = pytest.mark.needs("batches beyond the window")
# Around the windows: 100 is ours, 200 what Classic pages in, and 400 twice that.
SIZES = [
    20,
    pytest.param(401, marks=(beyond_the_window, pytest.mark.long_form(on="embedded"))),
    *(pytest.param(size, marks=(beyond_the_window, pytest.mark.long_form)) for size in (101, 201, 5000)),
]
AT_ONCE = RedeliveryPolicy(maximum_redeliveries=-1, initial_redelivery_delay=0.0, redelivery_delay=0.0)


@pytest.mark.parametrize("size", SIZES)
def test_batch_commits_as_one(stage: Stage, size: int) -> None:
    stage.send(*numbered(size), "next")
    session, consumer = stage.consuming(AckMode.TRANSACTED)
    assert bodies(receive_all(consumer, size)) == numbered(size)
    session.commit()
    assert receive(consumer).body == "next"
    session.close()
    assert stage.left_bodies(at_least=1) == ["next"]


@pytest.mark.parametrize("size", SIZES)
def test_batch_rolls_back_and_comes_again_in_order(stage: Stage, size: int) -> None:
    stage.send(*numbered(size))
    session, consumer = stage.consuming(AckMode.TRANSACTED, redelivery_policy=AT_ONCE)
    receive_all(consumer, size)
    session.rollback()
    again = receive_all(consumer, size)
    assert bodies(again) == numbered(size)
    assert {(message.delivery_count, message.redelivered) for message in again} == {(2, True)}
    session.commit()
    session.close()
    assert stage.left() == []


@pytest.mark.parametrize("rounds", [1, pytest.param(3, marks=beyond_the_window)])
def test_batches_of_small_and_large_messages_in_a_window_of_bytes(stage: Stage, rounds: int) -> None:
    """It grows with the small ones, and large ones come through it one by one."""
    sent = [f"{number:03}" + "x" * (30_000 if number % 40 > 30 else 10) for number in range(rounds * 40)]
    stage.send(*sent)
    window = PrefetchPolicy(max_bytes=50_000)
    session, consumer = stage.consuming(AckMode.TRANSACTED, prefetch=window, redelivery_policy=AT_ONCE)
    for count in (15, rounds * 40 - 15):
        receive_all(consumer, count)
        session.rollback()
        assert bodies(receive_all(consumer, count)) == sent[:count]
        session.commit()
        sent = sent[count:]
    session.close()
    assert stage.left() == []


@pytest.mark.promise("classic-closed")
@pytest.mark.parametrize("size", SIZES)
def test_batch_left_uncommitted_at_close_is_all_there(stage: Stage, size: int) -> None:
    stage.send(*numbered(size))
    session, consumer = stage.consuming(AckMode.TRANSACTED)
    receive_all(consumer, size)
    session.close()
    assert stage.left_bodies(at_least=size) == numbered(size)


@pytest.mark.parametrize("size", SIZES)
def test_batch_acknowledged_in_client_mode(stage: Stage, size: int) -> None:
    stage.send(*numbered(size), "next")
    session, consumer = stage.consuming(AckMode.CLIENT)
    messages = receive_all(consumer, size)
    assert bodies(messages) == numbered(size)
    messages[0].acknowledge()
    session.close()
    assert stage.left_bodies(at_least=1) == ["next"]


@pytest.mark.parametrize("size", SIZES)
def test_batch_recovered_in_client_mode(stage: Stage, size: int) -> None:
    stage.send(*numbered(size))
    session, consumer = stage.consuming(AckMode.CLIENT, redelivery_policy=AT_ONCE)
    receive_all(consumer, size)
    session.recover()
    again = receive_all(consumer, size)
    assert bodies(again) == numbered(size)
    assert {message.delivery_count for message in again} == {2}
    session.acknowledge()
    session.close()
    assert stage.left() == []


@pytest.mark.parametrize("size", SIZES[:-1])
def test_batch_never_acknowledged_in_client_mode_is_all_there(stage: Stage, size: int) -> None:
    stage.send(*numbered(size))
    session, consumer = stage.consuming(AckMode.CLIENT)
    receive_all(consumer, size)
    session.close()
    assert stage.left_bodies(at_least=size) == numbered(size)


@beyond_the_window
@pytest.mark.parametrize("prefetch", [1, 2, 10])
def test_batch_larger_than_a_small_window(stage: Stage, prefetch: int) -> None:
    stage.send(*numbered(60))
    session, consumer = stage.consuming(AckMode.TRANSACTED, prefetch=prefetch, redelivery_policy=AT_ONCE)
    for _ in range(3):
        assert bodies(receive_all(consumer, 60)) == numbered(60)
        session.rollback()
    assert bodies(receive_all(consumer, 60)) == numbered(60)
    session.commit()
    session.close()
    assert stage.left() == []


@beyond_the_window
def test_batch_with_sends_is_one_transaction(stage: Stage) -> None:
    target = stage.beside("target")
    stage.send(*numbered(401))
    session, consumer = stage.consuming(AckMode.TRANSACTED, redelivery_policy=AT_ONCE)
    producer = session.producer(target)
    for end in (session.rollback, session.commit):
        for message in receive_all(consumer, 401):
            producer.send(message.body)
        end()
    session.close()
    assert stage.left() == []
    assert stage.left_bodies(target, at_least=401) == numbered(401)


def test_many_small_transactions_on_a_backlog(stage: Stage) -> None:
    stage.send(*numbered(1000))
    session, consumer = stage.consuming(AckMode.TRANSACTED)
    for start in range(0, 1000, 10):
        assert bodies(receive_all(consumer, 10)) == numbered(1000)[start : start + 10]
        session.commit()
    session.close()
    assert stage.left() == []


@beyond_the_window
def test_two_consumers_of_one_session_share_a_backlog(stage: Stage) -> None:
    stage.send(*numbered(600))
    session = stage.session(AckMode.TRANSACTED)
    consumers = [session.consumer(stage.queue) for _ in range(2)]
    taken: list[str] = []
    while len(taken) < 600:
        for consumer in consumers:
            if (message := consumer.receive(timeout=0.05)) is not None:
                taken.append(message.body)
    assert sorted(taken) == numbered(600)
    session.commit()
    session.close()
    assert stage.left() == []


@beyond_the_window
def test_a_listener_takes_batches_larger_than_the_window(stage: Stage) -> None:
    stage.send(*numbered(900))
    session, consumer = stage.consuming(AckMode.TRANSACTED)
    seen: list[str] = []
    ended = threading.Event()

    def callback(message: Message) -> None:
        seen.append(message.body)
        if len(seen) % 300 == 0:
            session.commit()
        if len(seen) == 900:
            ended.set()

    consumer.listen(callback)
    assert ended.wait(40)
    session.close()
    assert seen == numbered(900)
    assert stage.left() == []
