"""A connection that is moved to a priority broker loses, doubles and doubts nothing."""

from __future__ import annotations

import threading

from tests.conformance.outage import Outage, until
from tests.conformance.stage import Stage, receive

from redelivery import AckMode, ReconnectPolicy
from redelivery.events import ConnectionLost, InDoubt, Reconnected

QUICK = ReconnectPolicy(initial_delay=0.005, maximum_delay=0.05, randomize=False, priority_backup=True)


def test_no_message_is_lost_doubled_or_in_doubt_because_of_a_move(stage: Stage, outage: Outage) -> None:
    outage.gate.shut()
    list_of_two = f"failover:({outage.url},{stage.pair.url})"
    transacted = stage.pair.can("transactions")
    connection = stage.connect(url=list_of_two, observer=outage.lives, reconnect=QUICK)
    sending = connection.session(AckMode.TRANSACTED if transacted else AckMode.AUTO)
    producer = sending.producer(stage.queue)
    receiving = connection.session(AckMode.CLIENT)
    consumer = receiving.consumer(stage.queue)
    threading.Timer(0.03, outage.gate.open).start()
    got, number = [], 0
    while number < 60 or not outage.seen(Reconnected):
        producer.send(str(number))
        if transacted and number % 3 == 2:
            sending.commit()
        number += 1
        # Where nothing is open: the move would wait for that, and this thread for the move.
        if not number % (30 if transacted else 10):
            got += [receive(consumer).body for _ in range(20 if transacted else 5)]
            receiving.acknowledge()
    if transacted:
        sending.commit()
    while len(got) < number:
        got.append(receive(consumer).body)
    receiving.acknowledge()
    assert sorted(got, key=int) == [str(each) for each in range(number)]
    assert not outage.seen(InDoubt)
    until(lambda: len(outage.seen(Reconnected)) == 1)
    assert [each.planned for each in outage.seen(ConnectionLost)] == [True]
    assert not stage.left_bodies()
