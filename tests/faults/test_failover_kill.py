"""kill -9 and restart of a real broker under programs whose connections come back: nothing is lost, nothing hangs."""

from __future__ import annotations

import threading
from collections import Counter
from time import monotonic
from uuid import uuid4

import pytest

import redelivery
from redelivery import InDoubtError, Session, TransactionRolledBackError
from redelivery.testing.brokers.real import RealBroker

KILLS = 2
AFTER = 60  # messages that are confirmed before each kill
PATIENCE = 120.0  # seconds for the whole


class Sender:
    """Sends numbered messages, each confirmed; what is in doubt is sent again, under its number."""

    def __init__(self, session: Session, queue: str) -> None:
        self._producer = session.producer(queue)
        self.confirmed = 0
        self.doubts: list[int] = []
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._run, name="sender")

    def _run(self) -> None:
        while not self.stop.is_set():
            try:
                self._producer.send(str(self.confirmed))
            except InDoubtError:
                self.doubts.append(self.confirmed)
            else:
                self.confirmed += 1


class Receiver:
    """Receives in transactions of up to five messages."""

    def __init__(self, session: Session, queue: str) -> None:
        self._session = session
        self._consumer = session.consumer(queue)
        self.received: Counter[int] = Counter()
        self.doubts: Counter[int] = Counter()

    def take(self) -> bool:
        """One transaction; whether there was anything in it."""
        batch = [int(str(each.body)) for each in self._consumer.receive_many(5, timeout=2)]
        try:
            self._session.commit()
        except TransactionRolledBackError:
            return True
        except InDoubtError:
            self.doubts.update(batch)
        self.received.update(batch)
        return bool(batch)


def kill_and_restart(broker: RealBroker) -> None:
    broker.kill()
    broker.restart()


@pytest.mark.timeout(200)
@pytest.mark.parametrize("protocol", ["stomp", pytest.param("amqp", marks=pytest.mark.long_form)])
def test_confirmed_messages_survive_and_come_once_but_for_what_was_in_doubt(
    killable: RealBroker, protocol: str
) -> None:
    queue = f"failover.kill.{uuid4().hex[:8]}"
    url = f"failover:({getattr(killable, f'{protocol}_url')})?maxReconnectDelay=200"
    with redelivery.connect(url) as sending, redelivery.connect(url) as receiving:
        sender = Sender(sending.session(), queue)
        receiver = Receiver(receiving.session("transacted"), queue)
        sender.thread.start()
        end = monotonic() + PATIENCE
        try:
            for number in range(1, KILLS + 1):
                while sender.confirmed < number * AFTER:
                    assert monotonic() < end, "the senders stand still"
                    receiver.take()
                killing = threading.Thread(target=kill_and_restart, args=(killable,))
                killing.start()
                while killing.is_alive():
                    receiver.take()
            while sender.confirmed < (KILLS + 1) * AFTER:
                assert monotonic() < end, "the senders stand still"
                receiver.take()
        finally:
            sender.stop.set()
            sender.thread.join(PATIENCE)
        while receiver.take():
            assert monotonic() < end
    assert not [number for number in range(sender.confirmed) if not receiver.received[number]]
    twice = {number for number, times in receiver.received.items() if times > 1}
    assert twice <= set(sender.doubts) | set(receiver.doubts)
