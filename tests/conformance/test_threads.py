"""One thread at a time in a session: misuse is refused, two sessions of one connection are free."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic

import pytest
from tests.conformance.stage import SOON, Stage, bodies, numbered, receive, receive_all

from redelivery import AckMode, Consumer, IllegalStateError, Session


def calls(session: Session, consumer: Consumer) -> dict[str, Callable[[], object]]:
    producer = session.producer()
    return {
        "receive": lambda: consumer.receive(timeout=0),
        "commit": session.commit,
        "rollback": session.rollback,
        "send": lambda: producer.send("a", "elsewhere"),
        "consumer": lambda: session.consumer("elsewhere"),
    }


@pytest.mark.everywhere_in_long_form
@pytest.mark.parametrize("call", ["receive", "commit", "rollback", "send", "consumer"])
def test_a_call_while_another_thread_is_inside_is_refused(stage: Stage, call: str) -> None:
    session, consumer = stage.consuming(AckMode.TRANSACTED)
    attempt = calls(session, consumer)[call]
    inside = threading.Thread(target=lambda: consumer.receive(timeout=SOON))
    inside.start()
    threading.Event().wait(0.1)
    with pytest.raises(IllegalStateError, match=r"another (thread|task)"):
        attempt()
    stage.send("a")
    inside.join(SOON)
    assert not inside.is_alive()


@pytest.mark.everywhere_in_long_form
def test_close_from_another_thread_is_allowed(stage: Stage) -> None:
    session, consumer = stage.consuming(AckMode.TRANSACTED)
    results: list[object] = []
    inside = threading.Thread(target=lambda: results.append(consumer.receive(timeout=SOON)))
    inside.start()
    threading.Event().wait(0.1)
    session.close()
    inside.join(SOON)
    assert results == [None]


@pytest.mark.everywhere_in_long_form
def test_a_session_may_be_handed_to_another_thread(stage: Stage) -> None:
    stage.send("a", "b")
    session, consumer = stage.consuming(AckMode.TRANSACTED)
    assert receive(consumer).body == "a"
    results: list[str] = []

    def other() -> None:
        results.append(receive(consumer).body)
        session.commit()

    thread = threading.Thread(target=other)
    thread.start()
    thread.join(SOON)
    assert results == ["b"]
    session.close()
    assert stage.left() == []


@pytest.mark.everywhere_in_long_form
def test_while_a_listener_is_set_only_callbacks_use_the_session(stage: Stage) -> None:
    session, consumer = stage.consuming(AckMode.TRANSACTED)
    consumer.listen(lambda _: None)
    with pytest.raises(IllegalStateError, match="listener"):
        session.commit()
    consumer.listen(None)
    session.commit()


@pytest.mark.needs("transactions")
def test_two_sessions_of_one_connection_work_side_by_side(stage: Stage) -> None:
    stage.send(*numbered(400))
    connection = stage.connect()
    taken: list[list[str]] = [[], []]
    end = monotonic() + 40
    both_consume = threading.Barrier(2, timeout=SOON)  # or the first may have taken all before the second is there

    def work(mine: list[str]) -> None:
        with connection.session(AckMode.TRANSACTED) as session:
            consumer = session.consumer(stage.queue, prefetch=10)
            both_consume.wait()
            while sum(map(len, taken)) < 400 and monotonic() < end:
                if (message := consumer.receive(timeout=0.2)) is not None:
                    mine.append(message.body)
                    session.commit()

    threads = [threading.Thread(target=work, args=(mine,)) for mine in taken]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(50)
    assert sorted(taken[0] + taken[1]) == numbered(400)
    assert all(taken)
    assert stage.left() == []


def test_two_sessions_each_receiving_only_after_the_other(stage: Stage) -> None:
    """The thread that reads the wire wakes the other when it leaves: neither starves."""
    ping, pong = stage.beside("ping"), stage.beside("pong")
    connection = stage.connect()
    rounds = 50
    seen: list[str] = []

    def answer() -> None:
        with connection.session() as session:
            consumer, producer = session.consumer(ping), session.producer(pong)
            for _ in range(rounds):
                producer.send(receive(consumer).body + "!")

    thread = threading.Thread(target=answer)
    thread.start()
    with connection.session() as session:
        consumer, producer = session.consumer(pong), session.producer(ping)
        for number in range(rounds):
            producer.send(str(number))
            seen.append(receive(consumer).body)
    thread.join(SOON)
    assert seen == [f"{number}!" for number in range(rounds)]


def test_several_consumers_of_one_session_take_turns(stage: Stage) -> None:
    queues = [stage.beside(number) for number in range(3)]
    for queue in queues:
        stage.send(*numbered(20), queue=queue)
    session = stage.session(AckMode.TRANSACTED)
    consumers = [session.consumer(queue) for queue in queues]
    for index in range(20):
        assert bodies([receive(consumer) for consumer in consumers]) == [numbered(20)[index]] * 3
    session.rollback()
    for consumer in consumers:
        assert bodies(receive_all(consumer, 20)) == numbered(20)
    session.commit()
    session.close()
    assert [stage.left(queue) for queue in queues] == [[], [], []]
