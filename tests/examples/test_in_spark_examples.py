"""The examples with Spark: each runs as it is, on an embedded broker; the long form starts a Spark for each."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.examples.with_spark import SECONDS, needs_spark

import redelivery
from redelivery import RedeliveryPolicy, SharedDeadLetterStrategy
from redelivery.broker import EmbeddedBroker

EXAMPLES = Path(__file__).parents[2] / "examples"
LETTERS = "ActiveMQ.DLQ"

Output = Callable[..., list[str]]

pytestmark = pytest.mark.timeout(SECONDS)


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(f"examples-{uuid.uuid4().hex}", stomp_port=0) as broker:
        yield broker


def rows(lines: list[str]) -> list[list[str]]:
    """The cells of a table that Spark has shown, without its head."""
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return table[1:]


@pytest.mark.long_form
def test_dead_letters_are_counted_and_stay(output: Output) -> None:
    lines = output(EXAMPLES / "spark_dead_letters.py")
    assert [row[:3] for row in rows(lines)] == [
        ["queue://orders", "LookupError: no such article", "3"],
        ["queue://orders", "ValueError: price is negative", "1"],
        ["queue://payments", "TimeoutError: the bank did not answer", "2"],
    ]
    assert lines[-1] == "6 dead letters are still there"


def test_each_order_is_in_the_table_once_although_the_job_failed(output: Output) -> None:
    lines = output(EXAMPLES / "spark_exactly_once.py")
    assert lines[0] == "the job failed, and has written 600 rows"
    assert sum(int(count) for _, count in rows(lines)) == 1000
    assert lines[-2:] == ["1000 rows, 1000 orders", "0 orders are left in the queue"]


def test_dead_letters_go_back_to_their_queues(output: Output) -> None:
    assert output(EXAMPLES / "spark_replay.py") == [
        "5 dead letters",
        "5 dead letters were sent back",
        "orders: ['orders 0', 'orders 1', 'orders 2']",
        "payments: ['payments 0', 'payments 1']",
        "ActiveMQ.DLQ: []",
    ]


@pytest.mark.long_form
def test_a_replay_keeps_what_the_application_said_and_parks_a_stray(
    output: Output, broker: EmbeddedBroker, tmp_path: Path
) -> None:
    with (
        redelivery.connect(
            broker.vm_url,
            redelivery_policy=RedeliveryPolicy(maximum_redeliveries=0),
            dead_letter_strategy=SharedDeadLetterStrategy(LETTERS),
        ) as connection,
        connection.session("transacted") as session,
    ):
        producer = session.producer()
        producer.send("a chair", "orders", properties={"colour": "red"}, priority=7, correlation_id="c1")
        producer.send("a stray", LETTERS)
        session.commit()
        session.consumer("orders").receive(timeout=10)
        session.rollback(cause=LookupError("no such article"))
    said = output(EXAMPLES / "spark_replay.py", broker.stomp_url, str(tmp_path))
    assert said == ["2 dead letters were sent back"]
    (chair,) = broker.messages("orders")
    assert (chair.body, chair.priority, chair.correlation_id) == ("a chair", 7, "c1")
    assert {name: value for name, value in chair.properties.items() if not name.startswith("redelivery_")} == {
        "colour": "red"
    }
    assert [stray.body for stray in broker.messages(f"{LETTERS}.parked")] == ["a stray"]
    assert broker.messages(LETTERS) == []


def test_a_replay_without_a_folder_explains_itself() -> None:
    needs_spark()
    done = subprocess.run(  # noqa: S603  # our own example
        [sys.executable, str(EXAMPLES / "spark_replay.py"), "stomp://127.0.0.1:1"],
        capture_output=True,
        text=True,
        timeout=150,
    )
    assert done.returncode == 1
    assert "/folder/of/the/job" in done.stderr
