"""What fails a thousand times is logged twenty times a minute, and then counted; DEBUG has every line."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest
from tests.client.shell import SOON, Bench, eventually
from tests.conformance.blocking import Shell

from redelivery import AckMode, Message, RedeliveryPolicy, SharedDeadLetterStrategy
from redelivery.client.observing.log_lines import FIRST, WINDOW, Lines

AT_ONCE = RedeliveryPolicy(maximum_redeliveries=0, initial_redelivery_delay=0, redelivery_delay=0)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def summaries(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    return [(each.levelno, each.getMessage()) for each in caplog.records if "more in the last" in each.getMessage()]


def test_the_first_lines_of_a_kind_come_as_they_are_and_the_others_at_debug() -> None:
    lines = Lines(Clock())
    levels = [lines.level(logging.WARNING, "orders") for _ in range(FIRST + 3)]
    assert levels == [logging.WARNING] * FIRST + [logging.DEBUG] * 3
    assert lines.level(logging.ERROR, "bills") == logging.ERROR


def test_their_number_is_logged_once_a_minute_and_the_next_ones_come_as_they_are(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    lines = Lines(clock)
    for _ in range(FIRST + 1234):
        lines.level(logging.WARNING, "the listener of orders raised")
    clock.now += WINDOW - 1
    assert lines.level(logging.WARNING, "the listener of orders raised") == logging.DEBUG
    assert summaries(caplog) == []
    clock.now += 1
    assert lines.level(logging.WARNING, "another") == logging.WARNING  # any line finds that the minute is over
    assert summaries(caplog) == [(logging.WARNING, "the listener of orders raised: … 1,235 more in the last 60 s")]
    assert lines.level(logging.WARNING, "the listener of orders raised") == logging.WARNING


def test_the_end_logs_what_was_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    lines = Lines(clock)
    for _ in range(FIRST + 2):
        lines.level(logging.WARNING, "orders")
    lines.level(logging.WARNING, "bills")
    clock.now += 7
    lines.end()
    lines.end()
    assert summaries(caplog) == [(logging.WARNING, "orders: … 2 more in the last 7 s")]


def test_kinds_without_end_are_not_kept() -> None:
    lines = Lines(Clock())
    for number in range(5000):
        lines.level(logging.WARNING, f"queue {number}")
    assert len(lines._kinds) <= 1000


def test_threads_lose_no_line() -> None:
    lines = Lines(Clock())
    got: list[int] = []

    def work() -> None:
        got.extend(lines.level(logging.WARNING, "orders") for _ in range(500))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON)
    assert got.count(logging.WARNING) == FIRST
    assert len(got) == 2000


def _fail(_: Message) -> None:
    raise ValueError("bad order")


def test_a_listener_that_always_fails(bench: Bench, shell: Shell, caplog: pytest.LogCaptureFixture) -> None:
    count = FIRST + 30
    bench.connect()  # keeps what the broker has, while the other one is away
    bench.send(*map(str, range(count)))
    options: dict[str, Any] = {"redelivery_policy": AT_ONCE, "dead_letter_strategy": SharedDeadLetterStrategy()}
    connection = shell.connect(bench.broker.vm_url, **options)
    connection.session(AckMode.AUTO).consumer(bench.queue).listen(_fail)
    eventually(lambda: len(bench.dead) == count)
    connection.close()
    check_errors(caplog)


def check_errors(caplog: pytest.LogCaptureFixture) -> None:
    """Of messages that fail once and for all: one line each, with the traceback, and nothing else."""
    shown = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert [each.levelno for each in shown] == [logging.ERROR] * (FIRST + 1)
    facts = vars(shown[0])
    assert (facts["destination"], facts["delivery_count"], facts["cause"]) == (
        "queue://orders",
        1,
        "after 1 delivery (limit 0): ValueError: bad order",
    )
    assert facts["message_id"]
    assert facts["exc_info"][0] is ValueError
    assert [text.rpartition(" in the last ")[0] for _, text in summaries(caplog)] == [
        "dead letters of orders: … 30 more"
    ]


def test_a_handler_that_always_fails(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    count = FIRST + 30
    bench.send(*map(str, range(count)))
    connection = bench.connect(redelivery_policy=AT_ONCE, dead_letter_strategy=SharedDeadLetterStrategy())
    with connection.listener_container(bench.queue, _fail, outage_after=None) as container:
        eventually(lambda: len(bench.dead) == count)
        assert container.drain(SOON)
    connection.close()
    check_errors(caplog)
