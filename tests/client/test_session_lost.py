"""A lost connection: who is notified, how often, and that nobody waits for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from tests.client.shell import SOON, Background, Bench, eventually, receive

from redelivery import AckMode, Connection, ConnectionLostError, IllegalStateError, JMSError, RedeliveryPolicy
from redelivery.client import lifecycle
from redelivery.transports.wire import clock

MODES = pytest.mark.parametrize("mode", list(AckMode), ids=lambda mode: mode.name)


def abort(_: Bench, connection: Connection) -> None:
    connection._core.transport.abort()


def end_broker(bench: Bench, _: Connection) -> None:
    bench.broker.close()


LOSSES = pytest.mark.parametrize("lose", [abort, end_broker], ids=["cut off", "broker ended"])
Loss = Callable[[Bench, Connection], None]


@LOSSES
@MODES
def test_a_receive_that_waits_raises_and_never_gives_none(
    background: Background, bench: Bench, mode: AckMode, lose: Loss
) -> None:
    connection = bench.connect()
    session = connection.session(mode)
    consumer = session.consumer(bench.queue)
    waiting = background.start(lambda: consumer.receive(SOON))
    eventually(lambda: bench.waits(session))
    lose(bench, connection)
    with pytest.raises(ConnectionLostError):
        waiting()


def test_every_call_says_why_it_was_lost(bench: Bench) -> None:
    heard: list[JMSError] = []
    connection = bench.connect(exception_listener=heard.append)
    session = connection.session()
    consumer, producer = session.consumer(bench.queue), session.producer("elsewhere")
    bench.broker.close()
    eventually(lambda: bool(heard))
    for _ in range(2):  # who is the first to take the loss in, and who comes after it
        for call in (
            connection.session,
            lambda: consumer.receive(0),
            lambda: consumer.receive_many(3, 0),
            lambda: session.consumer("other"),
            lambda: producer.send("x"),
            session.recover,
        ):
            with pytest.raises(ConnectionLostError) as caught:
                call()
            assert str(caught.value).endswith(f": {heard[0]}")


def test_connection_and_sessions_report_the_same_time_of_the_loss(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = bench.connect()
    first, second = connection.session(), connection.session()
    bench.broker.close()
    later = clock.utc_now() + timedelta(seconds=100)
    monkeypatch.setattr(lifecycle, "utc_now", lambda: later)  # when they are asked
    said = set()
    for call in (connection.session, first.producer, lambda: second.consumer("orders")):
        with pytest.raises(
            ConnectionLostError, match=r"the connection was lost, noticed at [-\d]+ [:\d]+ UTC"
        ) as caught:
            call()
        said.add(str(caught.value).partition("noticed at ")[2])
    assert len(said) == 1
    assert f"{later:%H:%M:%S}" not in said.pop()


def test_closing_it_is_quick_and_quiet(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.send("m1")
    connection = bench.connect(exception_listener=lambda _: None)
    session = connection.session(AckMode.TRANSACTED)
    receive(session.consumer(bench.queue))
    bench.broker.close()
    caplog.clear()
    session.close()
    connection.close()
    assert connection.closed
    assert session.closed
    assert caplog.records == []
    with pytest.raises(IllegalStateError):
        connection.session()


class TestExceptionListener:
    def test_a_loss_is_reported_once(self, bench: Bench) -> None:
        reported: list[JMSError] = []
        connection = bench.connect(exception_listener=reported.append)
        sessions = [connection.session() for _ in range(3)]
        bench.broker.close()
        eventually(lambda: reported)
        for session in sessions:
            session.close()
        connection.close()
        eventually(lambda: not any(each.name == "redelivery-exceptions" for each in threading.enumerate()))
        assert [type(error) for error in reported] == [ConnectionLostError]
        assert not connection.connected

    def test_it_is_notified_of_one_thing_at_a_time_and_in_order(self, bench: Bench) -> None:
        running, most, reported = [0], [0], []

        def listener(error: JMSError) -> None:
            running[0] += 1
            most[0] = max(most[0], running[0])
            reported.append(str(error))
            running[0] -= 1

        connection = bench.connect(exception_listener=listener)

        def trouble(source: int) -> None:
            for number in range(50):
                connection._core.on_error(JMSError(f"{source}-{number}"))

        threads = [threading.Thread(target=trouble, args=(source,)) for source in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        eventually(lambda: len(reported) == 200)
        assert most == [1]
        assert [each for each in reported if each.startswith("2-")] == [f"2-{n}" for n in range(50)]

    def test_one_that_raises_is_notified_of_the_next_thing_too(
        self, bench: Bench, caplog: pytest.LogCaptureFixture
    ) -> None:
        reported: list[str] = []

        def listener(error: JMSError) -> None:
            reported.append(str(error))
            raise ValueError("a bug of the application")

        connection = bench.connect(exception_listener=listener)
        connection._core.on_error(JMSError("one"))
        connection._core.on_error(JMSError("two"))
        eventually(lambda: len(reported) == 2)
        assert "the exception listener raised" in caplog.text

    def test_it_may_close_its_connection(self, bench: Bench) -> None:
        def listener(_: JMSError) -> None:
            connection.close()

        connection = bench.connect(exception_listener=listener)
        connection._core.on_error(JMSError("one"))
        eventually(lambda: connection.closed)
        eventually(lambda: not any(each.name == "redelivery-exceptions" for each in threading.enumerate()))

    def test_without_one_it_stands_in_the_log(self, bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
        connection = bench.connect()
        connection._core.on_error(JMSError("something that no call waits for"))
        assert "something that no call waits for" in caplog.text


def test_a_dead_letter_that_cannot_be_written_is_reported_and_nothing_is_lost(bench: Bench) -> None:
    reported: list[JMSError] = []
    bench.send("m1", "m2")
    session, consumer = bench.consuming(
        AckMode.TRANSACTED,
        redelivery_policy=RedeliveryPolicy(maximum_redeliveries=0),
        exception_listener=reported.append,
    )
    receive(consumer)
    bench.broker.faults.error("NACK", "the dead-letter queue is full")
    session.rollback()
    eventually(lambda: reported)
    assert "could not be dead-lettered; it stays unacknowledged" in str(reported[0])
    assert bench.left == ["m1", "m2"]
    assert receive(consumer).body == "m2"  # which does not wait for it
    session.commit()
    assert consumer.receive(timeout=1.5) is None
    assert bench.dead == ["m1"]
