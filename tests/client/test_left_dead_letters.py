"""A dead letter that takes long is made without its caller: one whose time is over, or who was interrupted."""

from __future__ import annotations

import _thread
import asyncio
import threading
from contextlib import nullcontext
from time import monotonic
from typing import Any

import pytest
from tests.client.shell import SOON, receive
from tests.conformance.blocking import Shell

import redelivery
from redelivery import RedeliveryPolicy, SharedDeadLetterStrategy, aio
from redelivery.broker import EmbeddedBroker

LONG = 1.5  # seconds that the broker takes
OPTIONS: dict[str, Any] = {
    "redelivery_policy": RedeliveryPolicy(maximum_redeliveries=0),
    "dead_letter_strategy": SharedDeadLetterStrategy("my.dlq"),
}
STEPS = [("stomp", "SEND"), ("stomp", "COMMIT"), ("amqp", "SEND"), ("amqp", "COMMIT")]
AT_EACH_STEP = pytest.mark.parametrize(("protocol", "step"), STEPS)
AT_THE_END = pytest.mark.parametrize(("protocol", "step"), [each for each in STEPS if each[1] == "COMMIT"])


@pytest.fixture
def url(protocol: str, broker: EmbeddedBroker) -> str:
    if protocol == "amqp":
        pytest.importorskip("proton")
    return str(getattr(broker, f"{protocol}_url"))


def made_once(broker: EmbeddedBroker) -> None:
    """The dead letter is there, once, and nothing else."""
    broker.wait_for("my.dlq", depth=1, timeout=SOON)
    assert not broker.queue_depth("orders")


@AT_THE_END
@pytest.mark.parametrize("call", ["receive", "receive_many", "receive_body"])
def test_a_receive_ends_when_its_time_is_over(
    url: str, call: str, step: str, broker: EmbeddedBroker, shell: Shell
) -> None:
    with shell.connect(url, **OPTIONS) as connection:
        session = connection.session("transacted")
        consumer = session.consumer("orders")
        calls: dict[str, Any] = {
            "receive": lambda: consumer.receive(timeout=0.1),
            "receive_many": lambda: consumer.receive_many(2, timeout=0.1),
            "receive_body": lambda: consumer.receive_body(str, timeout=0.1),
        }
        broker.send("orders", "bad")
        receive(consumer)
        broker.faults.delay(step, LONG)
        began = monotonic()
        fail(session)
        assert not calls[call]()
        assert not calls[call]()  # the second one waits no longer
        assert monotonic() - began < LONG * 0.9
        made_once(broker)
        broker.send("orders", "good")
        assert receive(consumer).body == "good"
        session.commit()
    made_once(broker)


def fail(session: Any) -> None:
    """A failure that is dead-lettered by the next receive: its orders wait for who comes next."""
    core = session._core
    with getattr(core, "use", nullcontext()):
        core.ledger.rollback(core.now(), ValueError("bad order"))


@AT_EACH_STEP
def test_a_cancelled_rollback_makes_one_dead_letter(url: str, step: str, broker: EmbeddedBroker) -> None:
    async def main() -> None:
        async with (
            aio.connect(url, **OPTIONS) as connection,
            connection.session("transacted") as session,
            session.consumer("orders") as consumer,
        ):
            broker.send("orders", "bad")
            assert await consumer.receive(timeout=SOON) is not None
            fault = broker.faults.delay(step, 0.5)
            rollback = asyncio.create_task(session.rollback(cause=ValueError("bad order")))
            await asyncio.to_thread(fault.wait, SOON)
            rollback.cancel()
            with pytest.raises(asyncio.CancelledError):
                await rollback
            broker.send("orders", "good")
            good = await consumer.receive(timeout=SOON)  # waits for the one before
            assert good is not None
            assert good.body == "good"
            await session.commit()
            assert await consumer.receive(timeout=0) is None

    asyncio.run(main())
    made_once(broker)


@AT_EACH_STEP
def test_an_interrupted_rollback_makes_one_dead_letter(url: str, step: str, broker: EmbeddedBroker) -> None:
    with redelivery.connect(url, **OPTIONS) as connection:
        session = connection.session("transacted")
        consumer = session.consumer("orders")
        broker.send("orders", "bad")
        receive(consumer)
        fault = broker.faults.delay(step, 0.5)

        def interrupt() -> None:
            fault.wait(SOON)
            _thread.interrupt_main()

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            session.rollback(cause=ValueError("bad order"))
        thread.join()
        made_once(broker)
        broker.send("orders", "good")
        assert receive(consumer).body == "good"
        session.commit()
        assert consumer.receive(timeout=0) is None
    made_once(broker)


@AT_THE_END
def test_a_close_goes_on_with_it(url: str, step: str, broker: EmbeddedBroker) -> None:
    with redelivery.connect(url, **OPTIONS) as connection, connection.session("transacted") as session:
        consumer = session.consumer("orders")
        broker.send("orders", "bad")
        receive(consumer)
        fail(session)
        broker.faults.delay(step, LONG / 2)
        assert consumer.receive(timeout=0.1) is None
    made_once(broker)
