"""What the clients for Java do wrong when a connection goes, and this one does not.

That the same message never comes twice in a transaction that is committed, and that the waits differ from client to
client, is tested with the rest of the reconnecting.
"""

from __future__ import annotations

import threading

import pytest
from tests.conformance.outage import OUTAGE, Outage
from tests.conformance.stage import NOTHING, Stage, receive
from tests.run.again import may_hide

from redelivery import AckMode, InDoubtError, JMSError
from redelivery.events import DeadLettered

TRANSACTED = pytest.mark.needs("transactions")


@may_hide
@pytest.mark.parametrize("mode", [pytest.param(AckMode.TRANSACTED, marks=TRANSACTED), AckMode.CLIENT])
def test_what_was_prefetched_is_not_dead_lettered_as_a_duplicate(stage: Stage, outage: Outage, mode: AckMode) -> None:
    """ActiveMQ's client takes what is delivered once more for duplicates, and poisons them (AMQ-9829)."""
    bodies = sorted(str(number) for number in range(12))
    stage.send(*bodies)
    session = outage.connect(prefetch=20).session(mode)
    consumer = session.consumer(stage.queue)
    for _ in range(3):
        receive(consumer)
        outage.begin()
        if mode == AckMode.TRANSACTED:
            session.rollback()
    got: list[str] = []
    while len(set(got)) < len(bodies):
        message = receive(consumer)
        got.append(str(message.body))
    session.commit() if mode == AckMode.TRANSACTED else message.acknowledge()
    assert consumer.receive(timeout=NOTHING) is None
    assert sorted(set(got)) == bodies
    assert not outage.seen(DeadLettered)
    assert not stage.dead_letters()
    if stage.pair.kind.own_dead_letters is not None:
        assert not stage.dead_letters(stage.pair.kind.own_dead_letters)


@TRANSACTED
def test_a_commit_whose_answer_is_lost_is_not_called_rolled_back(stage: Stage, outage: Outage) -> None:
    session = outage.connect().session("transacted")
    producer = session.producer(stage.queue)
    for body in ("one", "two"):
        producer.send(body)
        threading.Event().wait(0.2)  # the broker has answered all that comes before the commit
    outage.gate.deafen()
    timer = threading.Timer(OUTAGE, outage.gate.shut, (OUTAGE,))
    timer.start()
    with pytest.raises(InDoubtError):
        session.commit()
    timer.join()
    assert stage.left_bodies(at_least=2) == ["one", "two"]


def test_no_asynchronous_send_is_lost_in_silence(stage: Stage, outage: Outage) -> None:
    producer = outage.connect().session().producer(stage.queue)
    futures = {}
    for number in range(60):
        if number == 30:
            threading.Timer(0, outage.gate.shut, (OUTAGE,)).start()
        futures[str(number)] = producer.send_async(str(number))
        threading.Event().wait(0.001)
    confirmed = set()
    for body, future in futures.items():
        try:
            future.result(10)
        except InDoubtError:
            continue
        except JMSError as error:
            pytest.fail(f"{error!r} is neither confirmed nor in doubt")
        confirmed.add(body)
    left = stage.left_bodies(at_least=len(confirmed))
    assert confirmed <= set(left)
    assert len(left) == len(set(left))
