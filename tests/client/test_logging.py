"""What an operator reads in the log: which level says what, with which attributes, and what is never in it."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.client.shell import SOON, Bench, eventually, receive

import redelivery
from redelivery import AckMode, DiscardingDeadLetterStrategy, RedeliveryPolicy, SharedDeadLetterStrategy

QUICK = RedeliveryPolicy(maximum_redeliveries=1, initial_redelivery_delay=0.01, redelivery_delay=0.01)
SECRET = "s3cret"  # noqa: S105 - to look for


def lines(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno == level]


@pytest.fixture
def info(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    caplog.set_level(logging.INFO, logger="redelivery")
    return lambda: lines(caplog, logging.INFO)


def test_info_reports_the_connection(bench: Bench, info: Callable[[], list[str]]) -> None:
    url = bench.broker.vm_url
    connection = redelivery.connect(url.replace("vm://", f"vm://me:{SECRET}@"))
    connection.close()
    masked = url.replace("vm://", "vm://me:****@")
    version = redelivery.__version__
    assert info() == [f"{masked}: connected to redelivery {version} over vm (dialect activemq)", f"{masked}: closed"]


@pytest.mark.parametrize("listener", [None, lambda _: None])
def test_a_lost_connection_is_logged_once(bench: Bench, caplog: pytest.LogCaptureFixture, listener: Any) -> None:
    bench.connect(exception_listener=listener)
    bench.broker.close()
    reported = [each for each in caplog.records if each.levelno > logging.INFO]
    assert [each.levelno for each in reported] == [logging.WARNING]
    start = f"{bench.broker.vm_url}: the connection was lost: "
    assert reported[0].getMessage().startswith(start)


def test_info_reports_which_redelivery_comes_when_and_why(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="redelivery")
    policy = RedeliveryPolicy(maximum_redeliveries=2, initial_redelivery_delay=0.05, redelivery_delay=0.05)
    session, consumer = bench.consuming(AckMode.TRANSACTED, redelivery_policy=policy)
    bench.send("body that is nobody's business", "another")
    message = receive(consumer)
    receive(consumer)
    session.rollback(cause=ValueError("bad order"))
    again = [each for each in caplog.records if "redelivery 1" in each.getMessage()]
    assert again[0].getMessage() == f"orders {message.message_id}: redelivery 1 of 2 in 0.05 s: ValueError: bad order"
    assert len(again) == 2
    record: Any = again[0]
    assert (record.message_id, record.destination) == (message.message_id, "queue://orders")
    assert (record.delivery_count, record.cause) == (1, "ValueError: bad order")
    receive(consumer)
    session.rollback()
    later = [each.getMessage() for each in caplog.records if "redelivery 2 of 2" in each.getMessage()]
    assert later[0].endswith("in 0.05 s: ValueError: bad order")  # the last cause that was given
    assert "business" not in caplog.text


@pytest.mark.parametrize("non_blocking", [False, True])
def test_a_rollback_of_many_is_cut(bench: Bench, info: Callable[[], list[str]], non_blocking: bool) -> None:
    session, consumer = bench.consuming(AckMode.TRANSACTED, non_blocking_redelivery=non_blocking)
    bench.send(*range_of_texts(50))
    assert len(consumer.receive_many(50, SOON)) == 50
    session.rollback()
    again = [each for each in info() if "redelivery 1 of 6 in 0.02 s" in each]
    assert len(again) == 20
    assert "and 30 more of the same rollback" in info()


def range_of_texts(count: int) -> list[str]:
    return [str(number) for number in range(count)]


def test_a_listener_that_raises_is_logged_likewise(bench: Bench, info: Callable[[], list[str]]) -> None:
    def listener(_: redelivery.Message) -> None:
        raise ValueError("bad order")

    _, consumer = bench.consuming(AckMode.AUTO)
    consumer.listen(listener)
    bench.send("x")
    eventually(lambda: any("redelivery 1 of 6 in 0.02 s: ValueError: bad order" in each for each in info()))


def test_a_dead_letter_is_an_error_in_a_persons_words(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    strategy = SharedDeadLetterStrategy("dead")
    session, consumer = bench.consuming(AckMode.TRANSACTED, redelivery_policy=QUICK, dead_letter_strategy=strategy)
    bench.send("body that is nobody's business")
    identifier = receive(consumer).message_id
    session.rollback(cause=ValueError("bad order"))
    receive(consumer)
    session.rollback(cause=ValueError("bad order"))
    (record,) = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert record.getMessage() == (
        f"orders {identifier}: dead-lettered after 2 deliveries (limit 1): ValueError: bad order (to dead)"
    )
    found: Any = record
    assert (found.message_id, found.destination) == (identifier, "queue://orders")
    assert (found.delivery_count, found.cause) == (2, "after 2 deliveries (limit 1): ValueError: bad order")
    (letter,) = bench.broker.messages("dead")
    assert str(letter.properties["dlqDeliveryFailureCause"]).startswith("Delivery[2] exceeds redelivery policy limit:")
    assert "business" not in caplog.text


def test_the_brokers_own_dead_letter_and_a_drop(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    none = RedeliveryPolicy(maximum_redeliveries=0)
    session, consumer = bench.consuming(AckMode.TRANSACTED, redelivery_policy=none)
    bench.send("x")
    receive(consumer)
    session.rollback()
    expected = "dead-lettered after 1 delivery (limit 0): no cause given: rollback(cause=error) (to the broker's dead-l"
    assert expected in lines(caplog, logging.ERROR)[-1]
    session.close()
    caplog.set_level(logging.INFO, logger="redelivery")
    drop = DiscardingDeadLetterStrategy()
    session, consumer = bench.consuming(AckMode.TRANSACTED, redelivery_policy=none, dead_letter_strategy=drop)
    bench.send("x")
    receive(consumer)
    session.rollback(cause=ValueError("bad"))
    assert "dropped after 1 delivery (limit 0): ValueError: bad (" in lines(caplog, logging.INFO)[-1]


def test_an_expired_message(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="redelivery")
    session, consumer = bench.consuming(AckMode.TRANSACTED)
    with bench.connect().publisher() as publisher:
        publisher.send("x", "orders", ttl=0.3)
    assert receive(consumer).body == "x"
    session.rollback()  # it waits with us, beyond its time
    time.sleep(0.3)
    assert consumer.receive(timeout=0.05) is None
    assert ": dead-lettered as it has expired (to the broker's dead-letter queue)" in lines(caplog, logging.WARNING)[-1]


def test_debug_reports_sessions_subscriptions_commits_and_acknowledgements(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="redelivery")
    url = bench.broker.vm_url
    session, consumer = bench.consuming(AckMode.TRANSACTED)
    bench.send("a")
    receive(consumer)
    session.producer("out").send("b")
    session.commit()
    individual = bench.connect().session("individual")
    bench.send("c")
    one = receive(individual.consumer("out"))
    one.acknowledge()
    client = bench.connect().session("client")
    bench.send("d", "e", queue="two")
    consumer = client.consumer("two")
    for _ in range(2):
        message = receive(consumer)
    message.acknowledge()
    bench.send("f", queue="three")
    auto = receive(bench.connect().session().consumer("three"))
    said = lines(caplog, logging.DEBUG)
    for line in (
        f"{url}: a session, TRANSACTED",
        f"{url}: a consumer of queue://orders",
        f"{url}: committed 1 sent, 1 received",
        f"out {one.message_id}: acknowledged",
        f"{url}: acknowledged 2",
        f"three {auto.message_id}: acknowledged",
    ):
        assert line in said


def test_warnings_are_heard_without_any_set_up() -> None:
    code = (
        "import logging, redelivery\n"
        "assert logging.getLogger('redelivery').handlers == []\n"
        "none = redelivery.RedeliveryPolicy(maximum_redeliveries=0)\n"
        "with redelivery.connect('vm://x', redelivery_policy=none) as c:\n"
        "    with c.session('transacted') as s:\n"
        "        s.producer('orders').send('body'); s.commit(); s.consumer('orders').receive(5); s.rollback()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=150)  # noqa: S603
    assert "dead-lettered after 1 delivery" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_every_logger_is_below_redelivery() -> None:
    code = (
        "import logging, redelivery; [getattr(redelivery, each) for each in redelivery.__all__]\n"
        "print([each for each in logging.root.manager.loggerDict if not each.startswith('redelivery')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=150)  # noqa: S603
    assert [each for each in eval(done.stdout) if each not in ("concurrent", "concurrent.futures", "asyncio")] == []  # noqa: S307 - our own list
