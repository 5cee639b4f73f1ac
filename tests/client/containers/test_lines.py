"""What a container writes into the log: one line a failure, at the level of what follows from it."""

from __future__ import annotations

import logging
import re
import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.client.shell import SOON, eventually
from tests.conformance.blocking import Shell

import redelivery
from redelivery import DeadLetter, Drop, IllegalStateError, RedeliveryPolicy, Retry, SharedDeadLetterStrategy
from redelivery.broker import EmbeddedBroker
from redelivery.client.containers.running import StopRequests

GUIDE = Path(__file__).parents[3] / "docs" / "guide" / "production.md"
POLICY = RedeliveryPolicy(initial_redelivery_delay=0.01, redelivery_delay=0.01, maximum_redeliveries=3)
OPTIONS: dict[str, Any] = {
    "redelivery_policy": POLICY,
    "dead_letter_strategy": SharedDeadLetterStrategy(dead_letter_queue="dead"),
}
Bodies = Sequence[str]
Act = Callable[[str, int], object]


def act(body: str, count: int) -> object:
    match body:
        case "bad":
            raise ValueError("no such product")
        case "fatal":
            raise KeyError("article")
        case "dead":
            raise DeadLetter("cancelled")
        case "drop":
            return Drop("a test")
        case "late" if count < 3:
            return Retry("not yet")
    return None


def play(shell: Shell, broker: EmbeddedBroker, act: Act, bodies: Bodies, **options: Any) -> None:
    """Have a container handle these bodies."""

    def handle(message: redelivery.Message) -> object:
        return act(message.body, message.delivery_count)

    with (
        shell.connect(broker.vm_url, **OPTIONS) as connection,
        connection.listener_container("orders", handle, **options) as container,
    ):
        for body in bodies:
            broker.send("orders", body)
        eventually(lambda: ended(container.counters) == len(bodies))


def by_threads(broker: EmbeddedBroker, act: Act, bodies: Bodies, **options: Any) -> None:
    with ExitStack() as opened:
        play(Shell("threads", opened), broker, act, bodies, **options)


def ended(counters: Any) -> int:
    return int(counters.succeeded + counters.dropped + counters.dead_lettered)


class Heard:
    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self._caplog = caplog

    def of(self, logger: str, least: int = logging.INFO) -> list[logging.LogRecord]:
        return [each for each in self._caplog.records if each.name == logger and each.levelno >= least]


@pytest.fixture
def heard(caplog: pytest.LogCaptureFixture) -> Heard:
    caplog.set_level(logging.DEBUG, logger="redelivery")
    return Heard(caplog)


@pytest.fixture
def broker() -> Any:
    with EmbeddedBroker(f"lines-{uuid4().hex}") as broker:
        yield broker


@pytest.mark.parametrize("mode", ["transacted", "client"])
def test_a_failure_is_one_line_at_the_level_of_what_follows(
    broker: EmbeddedBroker, heard: Heard, shell: Shell, mode: str
) -> None:
    play(shell, broker, act, ["bad"], ack_mode=mode)
    lines = heard.of("redelivery.messages")
    assert [each.levelno for each in lines] == [logging.INFO, logging.INFO, logging.WARNING, logging.ERROR]
    name = re.escape(f"orders {vars(lines[0])['message_id']}")
    for number, line in enumerate(lines[:3], 1):
        expected = rf"{name}: redelivery {number} of 3 in 0\.01 s: ValueError: no such product"
        assert re.fullmatch(expected, line.getMessage())
        assert line.exc_info is None
    last = lines[3]
    assert re.fullmatch(
        rf"{name}: dead-lettered after 4 deliveries \(limit 3\): ValueError: no such product \(to dead\)",
        last.getMessage(),
    )
    assert last.exc_info is not None
    assert isinstance(last.exc_info[1], ValueError)
    traced = [each for each in heard.of("redelivery.messages", logging.DEBUG) if each.exc_info and each is not last]
    assert [each.levelno for each in traced] == [logging.DEBUG] * 3
    assert [each.levelno for each in heard.of("redelivery.worker")] == [logging.INFO] * 2  # its start and its end


def test_what_a_handler_has_decided_needs_no_traceback(broker: EmbeddedBroker, heard: Heard, shell: Shell) -> None:
    play(shell, broker, act, ["drop", "dead", "fatal", "late"], fatal=KeyError)
    lines = [(each.levelno, each.getMessage().partition(": ")[2]) for each in heard.of("redelivery.messages")]
    assert lines == [
        (logging.INFO, "dropped by its handler: a test"),
        (logging.ERROR, "dead-lettered after 1 delivery (limit 3): DeadLetter: cancelled (to dead)"),
        (logging.ERROR, "dead-lettered after 1 delivery (KeyError is fatal): KeyError: 'article' (to dead)"),
        (logging.INFO, "redelivery 1 of 3 in 0.01 s: Retry: not yet"),
        (logging.INFO, "redelivery 2 of 3 in 0.01 s: Retry: not yet"),
    ]
    traced = [each for each in heard.of("redelivery.messages", logging.DEBUG) if each.exc_info]
    assert ["KeyError" in each.getMessage() for each in traced] == [True]


@pytest.mark.parametrize(
    ("concurrency", "workers"),
    [(1, "1 worker"), (4, "4 workers"), ((1, 8), "1–8 workers")],  # noqa: RUF001
)
def test_its_start_and_its_end_are_a_line_each(
    broker: EmbeddedBroker, heard: Heard, shell: Shell, concurrency: Any, workers: str
) -> None:
    play(shell, broker, act, [*["good"] * 31, "bad", "late"], concurrency=concurrency)
    start, end = heard.of("redelivery.worker")
    assert start.getMessage().endswith(f": listening on orders, {workers}, limit 3")
    assert end.getMessage().endswith(": stopped: 32 succeeded, 5 redelivered, 1 dead-lettered")
    assert start.levelno == end.levelno == logging.INFO


def test_a_signal_is_no_warning(heard: Heard) -> None:
    assert not StopRequests(30.0).again(signal.SIGTERM)
    (line,) = heard.of("redelivery.worker")
    assert line.levelno == logging.INFO
    assert line.getMessage().startswith("SIGTERM: ")


def test_a_container_without_a_limit_says_so(broker: EmbeddedBroker, heard: Heard) -> None:
    with redelivery.connect(broker.vm_url) as connection:
        policy = RedeliveryPolicy(maximum_redeliveries=-1)
        with connection.listener_container("topic://news", print, redelivery_policy=policy):
            pass
    assert heard.of("redelivery.worker")[0].getMessage() == "print: listening on topic://news, 1 worker, no limit"


# Each line of the guide's table, and how it comes about.


def dies(broker: EmbeddedBroker) -> None:
    by_threads(broker, act, ["bad"])


def cannot_die(broker: EmbeddedBroker) -> None:
    broker.faults.error("NACK", "no room", times=1)
    with redelivery.connect(broker.vm_url, **OPTIONS) as connection, connection.session("transacted") as session:
        broker.send("orders", "bad")
        consumer = session.consumer("orders", redelivery_policy=RedeliveryPolicy(maximum_redeliveries=0))
        assert consumer.receive(SOON) is not None
        session.rollback(cause=ValueError("bad"))


def last_attempt(broker: EmbeddedBroker) -> None:
    policy = RedeliveryPolicy(initial_redelivery_delay=0.01, maximum_redeliveries=1)
    by_threads(broker, act, ["bad"], redelivery_policy=policy)


def outage(broker: EmbeddedBroker) -> None:
    with redelivery.connect(broker.vm_url, **OPTIONS) as connection:

        def handle(_: redelivery.Message) -> None:
            raise ConnectionError("the database does not answer")

        with connection.listener_container("orders", handle, outage_on=ConnectionError, outage_after=1) as container:
            broker.send("orders", "a")
            eventually(lambda: not container.healthy)


def hangs(broker: EmbeddedBroker) -> None:
    released = threading.Event()
    with redelivery.connect(broker.vm_url, **OPTIONS) as connection:

        def handle(_: redelivery.Message) -> None:
            released.wait(SOON)

        with connection.listener_container("orders", handle, handler_warning_after=0.01) as container:
            broker.send("orders", "a")
            eventually(lambda: any(each.reported for each in container.in_progress))
            released.set()


def refused(broker: EmbeddedBroker) -> None:
    with redelivery.connect(broker.vm_url, **OPTIONS) as connection:
        container = connection.listener_container("orders", print, max_messages_per_task=1)
        with container:
            broker.faults.error("SUBSCRIBE", "not authorized", times=1)
            broker.send("orders", "a")
            eventually(lambda: container.last_error is not None)


def does_not_return(broker: EmbeddedBroker) -> None:
    begun, released = threading.Event(), threading.Event()
    with redelivery.connect(broker.vm_url, **OPTIONS) as connection:

        def handle(_: redelivery.Message) -> None:
            begun.set()
            released.wait(SOON)

        def stop() -> None:
            begun.wait(SOON)
            signal.raise_signal(signal.SIGTERM)

        broker.send("orders", "a")
        container = connection.listener_container("orders", handle)
        stopping = threading.Thread(target=stop)
        stopping.start()
        with pytest.raises(SystemExit):
            container.run(drain_timeout=0.05)
        stopping.join(SOON)
        released.set()
        container.drain(SOON)


def lost(broker: EmbeddedBroker) -> None:
    connection = redelivery.connect(broker.vm_url)
    broker.close()
    eventually(lambda: not connection.connected)
    with pytest.raises((IllegalStateError, redelivery.ConnectionLostError)):
        connection.session()
    connection.close()


def no_passport(broker: EmbeddedBroker) -> None:
    def redact(_: redelivery.Passport) -> redelivery.Passport:
        raise KeyError("redact")

    options = {**OPTIONS, "redelivery_policy": RedeliveryPolicy(maximum_redeliveries=0)}
    with (
        redelivery.connect(broker.vm_url, passport=redact, **options) as connection,
        connection.listener_container("orders", lambda message: act(message.body, 1)),
    ):
        broker.send("orders", "bad")
        broker.wait_for("dead", depth=1)


PROVOKED: dict[str, Callable[[EmbeddedBroker], None]] = {
    "dead-lettered after": dies,
    "not dead-lettered": cannot_die,
    "its dead letter has no passport": no_passport,
    "redelivery 1 of 1 in": last_attempt,
    "in an outage since": outage,
    "the handler has had": hangs,
    "a worker's session failed": refused,
    "a handler did not return within": does_not_return,
    "the connection was lost": lost,
}
_ROW = re.compile(r"^\| `(redelivery\.\w+)` \| (\w+) \| `([^`]+)` \|", re.M)
ROWS = _ROW.findall(GUIDE.read_text(encoding="utf-8"))


def test_the_guides_table_has_a_row_of_each() -> None:
    assert [line for _, _, line in ROWS] == list(PROVOKED)


@pytest.mark.parametrize(("logger", "level", "line"), ROWS, ids=[row[2] for row in ROWS])
def test_the_guides_lines_to_alert_on(broker: EmbeddedBroker, heard: Heard, logger: str, level: str, line: str) -> None:
    PROVOKED[line](broker)
    eventually(lambda: any(line in each.getMessage() for each in heard.of(logger)))
    assert {each.levelname for each in heard.of(logger) if line in each.getMessage()} == {level}


@pytest.mark.parametrize("logger", ["redelivery.messages", "redelivery.worker", "redelivery.connection"])
def test_where_nothing_is_wrong_nothing_is_above_info(broker: EmbeddedBroker, heard: Heard, logger: str) -> None:
    by_threads(broker, act, ["late", "good", "drop"])
    assert [each.getMessage() for each in heard.of(logger, logging.WARNING)] == []
    assert heard.of(logger)
