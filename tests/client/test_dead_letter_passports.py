"""The passport of each dead letter that a connection sends: which failure it was, and what the client knew of it."""

from __future__ import annotations

import asyncio
import os
import platform
import socket
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.client.shell import SOON, Bench, eventually, receive

import redelivery
from redelivery import (
    AckMode,
    App,
    BrokerDeadLetterStrategy,
    DeadLetter,
    DeadLetterStrategy,
    DiscardingDeadLetterStrategy,
    IndividualDeadLetterStrategy,
    Message,
    Passport,
    RedeliveryPolicy,
    RedeliveryPolicyMap,
    SharedDeadLetterStrategy,
    aio,
)
from redelivery.operate.letters.editing import editable
from redelivery.operate.letters.routes import back, elsewhere

TWICE = RedeliveryPolicy(maximum_redeliveries=1, initial_redelivery_delay=0.01, redelivery_delay=0.01)
ONCE = RedeliveryPolicy(maximum_redeliveries=0)
SHARED = SharedDeadLetterStrategy("DLQ")
SHORT: dict[str, Any] = {"redelivery_policy": TWICE, "dead_letter_strategy": SHARED}


class OrderError(Exception):
    pass


def place(message: Message) -> None:
    raise OrderError(f"no {message.body}")


def placed(message: Message) -> OrderError:
    try:
        place(message)
    except OrderError as error:
        return error
    raise AssertionError("it did not fail")


def letter(bench: Bench, queue: str = "DLQ") -> Message:
    """The dead letter, as a consumer gets it."""
    with bench.connect() as connection, connection.session() as session:
        return receive(session.consumer(queue))


def passport(bench: Bench, queue: str = "DLQ") -> Passport:
    said = letter(bench, queue).dead_letter
    assert said is not None
    assert said.passport is not None
    return said.passport


def fail(bench: Bench, deliveries: int = 2, **options: Any) -> None:
    """A message fails to its end, which is after so many deliveries."""
    bench.send("moon")
    with bench.connect(**{**SHORT, **options}) as connection, connection.session(AckMode.TRANSACTED) as session:
        consumer = session.consumer(bench.queue)
        for _ in range(deliveries):
            session.rollback(cause=placed(receive(consumer)))


def check_failed(found: Passport, began: datetime, numbers: tuple[int, ...] = (1, 2)) -> None:
    module = __name__
    assert (found.version, found.exception, found.message) == (1, f"{module}.OrderError", "no moon")
    assert found.frame == f"{module}:place"
    assert found.stack[-1].startswith(f"{module}:place, line ")
    assert len(found.fingerprint or "") == 12
    assert tuple(each.number for each in found.attempts) == numbers
    assert {each.host for each in found.attempts} == {socket.gethostname()}
    times = [began - timedelta(milliseconds=1), *(each.at for each in found.attempts), datetime.now(UTC)]
    assert times == sorted(times)


def test_what_it_says(bench: Bench) -> None:
    began = datetime.now(UTC)
    policies = RedeliveryPolicyMap({"orders": TWICE, "orders.>": ONCE})
    options: dict[str, Any] = {"redelivery_policy": None, "redelivery_policies": policies, "client_id": "worker-1"}
    fail(bench, application="shop 2.4", **options)
    found = passport(bench)
    check_failed(found, began)
    assert found.policy == "orders: 1 redelivery, after 0.01 s"
    assert found.client == f"redelivery {redelivery.__version__}, Python {platform.python_version()}"
    assert found.application == "shop 2.4"
    here = f"process {os.getpid()} on {socket.gethostname()}"
    assert found.consumer == f"consumer 1 of queue://orders, {here}, client id worker-1"


MODES = (AckMode.TRANSACTED, AckMode.CLIENT, AckMode.INDIVIDUAL, AckMode.AUTO, AckMode.DUPS_OK)
STRATEGIES = [
    (SHARED, "DLQ"),
    (IndividualDeadLetterStrategy(), "ActiveMQ.DLQ.Queue.orders"),
    (BrokerDeadLetterStrategy(configured=False, otherwise=SHARED), "DLQ"),
    (BrokerDeadLetterStrategy(configured=False), "ActiveMQ.DLQ"),
    (DiscardingDeadLetterStrategy("other", otherwise=SHARED), "DLQ"),
]


@pytest.mark.parametrize(("strategy", "queue"), STRATEGIES)
def test_every_strategy_that_sends_a_copy(bench: Bench, strategy: DeadLetterStrategy, queue: str) -> None:
    began = datetime.now(UTC)
    fail(bench, dead_letter_strategy=strategy)
    check_failed(passport(bench, queue), began)


@pytest.mark.parametrize("mode", MODES)
def test_a_listener_in_every_mode(bench: Bench, mode: AckMode) -> None:
    began = datetime.now(UTC)
    bench.send("moon")
    session = bench.connect(**SHORT).session(mode)

    def handle(message: Message) -> None:
        if mode == AckMode.TRANSACTED:
            session.rollback(cause=placed(message))
        elif mode == AckMode.CLIENT:
            session.recover(cause=placed(message))
        else:
            place(message)

    session.consumer(bench.queue).listen(handle)
    eventually(lambda: bench.broker.queue_depth("DLQ") == 1)
    check_failed(passport(bench), began)


@pytest.mark.parametrize("mode", [AckMode.TRANSACTED, AckMode.CLIENT, AckMode.INDIVIDUAL])
def test_a_consumer_that_is_asked(bench: Bench, mode: AckMode) -> None:
    began = datetime.now(UTC)
    bench.send("moon")
    session, consumer = bench.consuming(mode, **SHORT)
    for _ in range(2):
        (session.rollback if mode == AckMode.TRANSACTED else session.recover)(cause=placed(receive(consumer)))
    check_failed(passport(bench), began)


def test_a_container(bench: Bench) -> None:
    began = datetime.now(UTC)
    bench.send("moon")
    with bench.connect(**SHORT).listener_container("orders", place, concurrency=2):
        eventually(lambda: bench.broker.queue_depth("DLQ") == 1)
    check_failed(passport(bench), began)


def test_an_app(bench: Bench) -> None:
    bench.send("moon")
    app = App(bench.broker.vm_url, application="shop 2.4", **SHORT)
    found = app._options
    assert (found.application, found.passport) == ("shop 2.4", True)


def test_asyncio(bench: Bench) -> None:
    began = datetime.now(UTC)
    bench.send("moon")

    async def run() -> None:
        connection = await aio.connect(bench.broker.vm_url, application="shop 2.4", **SHORT)
        async with connection, connection.session("transacted") as session:
            consumer = await session.consumer("orders")
            for _ in range(2):
                message = await consumer.receive(timeout=SOON)
                assert message is not None
                await session.rollback(cause=placed(message))

    asyncio.run(run())
    found = passport(bench)
    check_failed(found, began)
    assert found.application == "shop 2.4"


def test_a_decision_of_the_handler(bench: Bench) -> None:
    def handle(message: Message) -> None:
        raise DeadLetter("no such customer") from placed(message)

    bench.send("moon", "sun")
    with bench.connect(**SHORT).listener_container("orders", handle):
        eventually(lambda: bench.broker.queue_depth("DLQ") == 2)
    found = passport(bench)
    assert (found.exception, found.message) == ("redelivery.DeadLetter", "no such customer")
    assert f"caused by {__name__}.OrderError: no moon" in found.stack
    assert [each.number for each in found.attempts] == [1]
    assert found.fingerprint == passport(bench).fingerprint


def test_a_failure_without_an_exception(bench: Bench) -> None:
    bench.send("moon")
    session, consumer = bench.consuming(AckMode.TRANSACTED, **{**SHORT, "redelivery_policy": ONCE})
    receive(consumer)
    session.rollback()
    found = passport(bench)
    assert (found.exception, found.message, found.fingerprint, found.frame, found.stack) == (None, None, None, None, ())
    assert [each.number for each in found.attempts] == [1]
    assert found.policy == "(default): no redelivery"


def test_an_expired_message(bench: Bench) -> None:
    _, consumer = bench.consuming(AckMode.TRANSACTED, **SHORT)
    bench.connect().session().producer(bench.queue).send("m1", ttl=0.05)
    time.sleep(0.06)  # the message's own clock
    assert consumer.receive(0) is None
    said = letter(bench).dead_letter
    assert said is not None
    assert said.expired
    assert said.passport is not None
    assert (said.passport.exception, said.passport.attempts) == (None, ())
    assert said.passport.client.startswith("redelivery ")


def test_the_attempts_of_others_are_counted_and_not_invented(bench: Bench) -> None:
    bench.send("moon")
    connection = bench.connect(redelivery_policy=replace(TWICE, maximum_redeliveries=3))
    with connection.session(AckMode.CLIENT) as session:  # closed unacknowledged: the broker counts
        receive(session.consumer(bench.queue))
    with connection.session(AckMode.CLIENT) as session:
        receive(session.consumer(bench.queue))
    began = datetime.now(UTC)
    session, consumer = bench.consuming(AckMode.CLIENT, **{**SHORT, "redelivery_policy": TWICE})
    session.recover(cause=placed(receive(consumer)))
    said = letter(bench).dead_letter
    assert said is not None
    assert said.count == 3
    assert said.passport is not None
    check_failed(said.passport, began, (3,))


def test_few_of_many_attempts_are_kept(bench: Bench) -> None:
    many = RedeliveryPolicy(maximum_redeliveries=40, initial_redelivery_delay=0, redelivery_delay=0)
    fail(bench, 41, redelivery_policy=many)
    assert [each.number for each in passport(bench).attempts] == [1, *range(27, 42)]


def test_the_policy_of_a_consumer(bench: Bench) -> None:
    bench.send("moon")
    own = RedeliveryPolicy(
        maximum_redeliveries=2,
        initial_redelivery_delay=0,
        redelivery_delay=0.001,
        use_exponential_back_off=True,
        back_off_multiplier=2,
        maximum_redelivery_delay=0.5,
        use_collision_avoidance=True,
    )
    session = bench.connect(**SHORT).session(AckMode.TRANSACTED)
    consumer = session.consumer(bench.queue, redelivery_policy=own)
    for _ in range(3):
        receive(consumer)
        session.rollback()
    expected = "2 redeliveries, after 0 s, then 2 times as long each, 0.5 s at most, ±15 %"
    assert passport(bench).policy == f"(of its consumer): {expected}"


def test_a_letter_that_is_replayed_and_fails_again_has_a_new_one(bench: Bench) -> None:
    fail(bench)
    first = letter(bench)
    assert "dlqPassport" not in editable(first)["properties"]
    moved = elsewhere(redelivery.Queue("other"))(first)
    assert moved is not None
    assert moved.message.properties["dlqPassport"] == first.properties["dlqPassport"]
    again = back(None, "run")(first)
    assert again is not None
    assert "dlqPassport" not in again.message.properties
    with bench.connect() as connection:
        connection.session().producer("orders").send(again.message)
        # a program that takes a letter as it is, and fails with it
        connection.session().producer("orders").send(first.copy())
    session, consumer = bench.consuming(AckMode.TRANSACTED, application="new", **SHORT)
    for _ in range(4):
        session.rollback(cause=KeyError(receive(consumer).body))
    for _ in range(2):
        found = passport(bench)
        assert (found.application, found.exception) == ("new", "KeyError")
        assert str(first.properties["dlqPassport"]) not in str(found)
