"""Blocking redelivery keeps the order; non-blocking lets others pass, far beyond the prefetch window."""

from __future__ import annotations

from time import monotonic
from typing import Any

import pytest
from tests.conformance.stage import NOTHING, SOON, Stage, bodies, nothing_comes, numbered, receive, receive_all

from redelivery import AckMode, RedeliveryPolicy

beyond_the_window = pytest.mark.needs("batches beyond the window")


def large(count: int) -> Any:
    """So many messages that it is a matter of the broker's window."""
    return pytest.param(count, marks=(beyond_the_window, pytest.mark.long_form(on="embedded")))


def delayed(seconds: float) -> RedeliveryPolicy:
    return RedeliveryPolicy(maximum_redeliveries=-1, initial_redelivery_delay=seconds, redelivery_delay=seconds)


@pytest.mark.everywhere_in_long_form
def test_blocking_nothing_overtakes_a_delayed_message(stage: Stage) -> None:
    stage.send("a", "b", "c")
    session, consumer = stage.consuming(AckMode.TRANSACTED, redelivery_policy=delayed(NOTHING + 1.0))
    receive_all(consumer, 2)
    session.rollback()
    assert nothing_comes(consumer)
    assert bodies(receive_all(consumer, 3)) == ["a", "b", "c"]


@pytest.mark.everywhere_in_long_form
def test_blocking_holds_back_that_consumer_only(stage: Stage) -> None:
    other = stage.beside("other")
    stage.send("a")
    stage.send("x", queue=other)
    session, consumer = stage.consuming(AckMode.TRANSACTED, redelivery_policy=delayed(2.5))
    second = session.consumer(other)
    receive(consumer)
    session.rollback()
    began = monotonic()
    assert receive(second).body == "x"
    assert monotonic() - began < 2.3
    assert receive(consumer).body == "a"


def test_non_blocking_others_pass_a_delayed_message(stage: Stage) -> None:
    stage.send("a", "b", "c")
    session, consumer = stage.consuming(
        AckMode.TRANSACTED, redelivery_policy=delayed(1.0), non_blocking_redelivery=True
    )
    assert receive(consumer).body == "a"
    session.rollback()
    assert bodies(receive_all(consumer, 2)) == ["b", "c"]
    session.commit()
    message = receive(consumer)
    assert (message.body, message.delivery_count) == ("a", 2)
    session.commit()
    session.close()
    assert stage.left() == []


def test_non_blocking_acknowledges_the_right_messages_in_client_mode(stage: Stage) -> None:
    """The Java client loses acknowledgements there: its ranges assume the broker's order."""
    stage.send("a", "b", "c")
    session, consumer = stage.consuming(AckMode.CLIENT, redelivery_policy=delayed(1.0), non_blocking_redelivery=True)
    assert receive(consumer).body == "a"
    session.recover()
    second, third, first = receive_all(consumer, 3)
    assert bodies([second, third, first]) == ["b", "c", "a"]
    first.acknowledge()
    session.close()
    assert stage.left() == []


@pytest.mark.parametrize(
    "count", [20, large(150), pytest.param(1000, marks=(beyond_the_window, pytest.mark.long_form))]
)
def test_parking_delayed_messages_do_not_fill_the_window(stage: Stage, count: int) -> None:
    stage.send(*numbered(count), "last")
    session, consumer = stage.consuming(
        AckMode.TRANSACTED, redelivery_policy=delayed(20.0), non_blocking_redelivery=True, prefetch=100
    )
    for body in numbered(count):
        assert receive(consumer).body == body
        session.rollback()
    assert receive(consumer).body == "last"
    session.commit()
    session.close()
    assert sorted(stage.left_bodies(at_least=count)) == numbered(count)


@pytest.mark.parametrize("count", [20, pytest.param(300, marks=(beyond_the_window, pytest.mark.long_form))])
def test_parking_each_comes_again_once_with_its_count(stage: Stage, count: int) -> None:
    stage.send(*numbered(count))
    all_are_rolled_back = 1.5 + count / 50  # seconds, on a busy machine
    session, consumer = stage.consuming(
        AckMode.TRANSACTED, redelivery_policy=delayed(all_are_rolled_back), non_blocking_redelivery=True, prefetch=100
    )
    for body in numbered(count):
        assert receive(consumer).body == body
        session.rollback()
    again = []
    for _ in range(count):
        message = receive(consumer)
        again.append((message.body, message.delivery_count))
        session.commit()
    assert sorted(again) == [(body, 2) for body in numbered(count)]
    assert nothing_comes(consumer)
    session.close()
    assert stage.left() == []


@pytest.mark.parametrize("count", [20, pytest.param(400, marks=(beyond_the_window, pytest.mark.long_form))])
def test_parking_survives_the_commits_of_others(stage: Stage, count: int) -> None:
    """A COMMIT makes Classic forget what is acknowledged in any open transaction of the same subscription."""
    stage.send(*numbered(count))
    session, consumer = stage.consuming(
        AckMode.TRANSACTED,
        redelivery_policy=delayed(1.5 + count / 80),  # seconds, in which all are rolled back on a busy machine
        non_blocking_redelivery=True,
        prefetch=100,
    )
    done: list[tuple[str, int]] = []
    while len(done) < count:
        message = receive(consumer)
        if message.delivery_count == 1 and int(message.body[1:]) % 2:
            session.rollback()
        else:
            done.append((message.body, message.delivery_count))
            session.commit()
    assert sorted(done) == [(body, 1 + int(body[1:]) % 2) for body in numbered(count)]
    assert nothing_comes(consumer)
    session.close()
    assert stage.left() == []
    assert stage.dead_letters() == []


@pytest.mark.everywhere_in_long_form
@pytest.mark.in_turns("pair")
@pytest.mark.parametrize("non_blocking", [False, True])
def test_a_time_out_during_the_delay_is_kept(stage: Stage, non_blocking: bool) -> None:
    stage.send("a")
    session, consumer = stage.consuming(
        AckMode.TRANSACTED, redelivery_policy=delayed(2.5), non_blocking_redelivery=non_blocking, prefetch=1
    )
    receive(consumer)
    session.rollback()
    began = monotonic()
    assert consumer.receive(timeout=0.2) is None
    assert consumer.receive_nowait() is None
    assert 0.19 <= monotonic() - began < 2.2
    assert consumer.receive(timeout=SOON) is not None


@pytest.mark.everywhere_in_long_form
def test_stop_and_start_do_not_shorten_the_delay(stage: Stage) -> None:
    """The Java client restarts its consumer there: the order is lost and the commit fails."""
    stage.send("a", "b")
    connection = stage.connect(redelivery_policy=delayed(1.0))
    session = connection.session(AckMode.TRANSACTED)
    consumer = session.consumer(stage.queue)
    receive(consumer)
    session.rollback()
    began = monotonic()
    connection.stop()
    connection.start()
    assert bodies(receive_all(consumer, 2)) == ["a", "b"]
    assert monotonic() - began > 0.9
    session.commit()
    session.close()
    assert stage.left() == []
