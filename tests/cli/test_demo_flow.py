"""The demo played fast on an embedded broker: what it reports is what happened."""

from __future__ import annotations

from collections import Counter
from io import StringIO
from uuid import uuid4

import pytest
from rich.console import Console

import redelivery
from redelivery import RedeliveryPolicy
from redelivery.broker import EmbeddedBroker
from redelivery.cli.demo.events import DeadLettered, Delivered, Event, Failed, Processed, Sent, Started, Summary
from redelivery.cli.demo.flow import ALWAYS, Demo, Script
from redelivery.cli.demo.lines import LineView
from redelivery.cli.demo.view import LiveView
from redelivery.testing.brokers.real import RealBroker

QUICK = Script(
    orders=("a", "b", "c"),
    failures={"b": (1, OSError("once")), "c": (ALWAYS, OSError("always"))},
    policy=RedeliveryPolicy(maximum_redeliveries=2, initial_redelivery_delay=0.02, redelivery_delay=0.04),
    work=0.0,
    limit=10.0,
)
SCREEN = 80


def play(script: Script = QUICK) -> tuple[list[Event], Summary]:
    events: list[Event] = []
    with EmbeddedBroker(f"demo-{uuid4().hex}") as broker:
        summary = Demo(events.append, script).run(broker.vm_url)
        started = next(event for event in events if isinstance(event, Started))
        assert broker.queue_depth(started.queue) == broker.queue_depth(started.dead_letter_queue) == 0
    return events, summary


def test_every_order_is_processed_or_dead_lettered_once() -> None:
    events, summary = play()
    assert summary.problems == ()
    assert [event.order for event in events if isinstance(event, Sent)] == ["a", "b", "c"]
    assert Counter(event.order for event in events if isinstance(event, Delivered)) == {"a": 1, "b": 2, "c": 3}
    assert [event.order for event in events if isinstance(event, Processed)] == ["a", "b"]
    (letter,) = [event for event in events if isinstance(event, DeadLettered)]
    assert (letter.order, letter.deliveries) == ("c", 3)
    assert letter.cause.endswith("cause:OSError: always")
    assert events[-1] == summary


def test_it_runs_on_a_real_broker_and_leaves_nothing_there(activemq: RealBroker) -> None:
    events: list[Event] = []
    summary = Demo(events.append, QUICK).run(activemq.stomp_url)
    assert summary.problems == ()
    assert (summary.sent, summary.processed, summary.dead_letters) == (3, 2, 1)
    started = next(event for event in events if isinstance(event, Started))
    with redelivery.connect(activemq.stomp_url) as connection, connection.session() as session:
        for name in (started.queue, started.dead_letter_queue):
            assert session.consumer(name).receive(timeout=0.5) is None


def test_delays_are_planned_by_the_policy_and_measured() -> None:
    events, _ = play()
    again = [event for event in events if isinstance(event, Delivered) and event.redelivered]
    assert [event.planned for event in again] == [0.02, 0.02, 0.04]
    assert all(event.measured is not None and event.measured >= (event.planned or 0) for event in again)
    assert [event.again_in for event in events if isinstance(event, Failed)] == [0.02, 0.02, 0.04, None]


def test_what_is_not_finished_in_time_is_a_problem_and_is_cleaned_away() -> None:
    slow = Script(failures={"1001": (1, OSError("x"))}, policy=RedeliveryPolicy(), work=0.0, limit=0.2)
    _, summary = play(slow)
    assert summary.problems[0] == "not finished after 0.2 s, and nothing more was delivered"
    assert "order 1008: processed 0 times, dead-lettered 0 times" in summary.problems


@pytest.mark.parametrize("width", [80, 120])
def test_the_terminal_shows_deliveries_dead_letters_and_summary(width: int) -> None:
    events, _ = play()
    screen = StringIO()
    console = Console(file=screen, force_terminal=True, width=width, height=40, color_system=None, legacy_windows=False)
    with LiveView(console) as view:
        for event in events:
            view(event)
    shown = screen.getvalue()
    assert " c      3         yes          0.040 s  " in shown
    assert "✘ rollback: " + ("always" if width == SCREEN else "OSError: always") in shown
    assert "c is redelivered in 0.0 s" in shown
    last = shown[shown.rindex("dead-letter queue") :]
    assert "order c  from queue://redelivery.demo." in last
    assert "cause:OSError: always" in " ".join(last.split())
    assert "3 orders sent = 2 processed + 1 dead letters" in last
    assert "it adds up" in last


def test_the_terminal_says_what_does_not_add_up() -> None:
    screen = StringIO()
    with LiveView(Console(file=screen, force_terminal=True, width=80, color_system=None)) as view:
        view(Started("b", "p", "u", "orders", "DLQ", ("1",), (0.5,)))
        view(Summary(1, 0, 0, 0, 0, 0.0, 1.0, ("order 1: processed 0 times",)))
    assert "it does not add up" in screen.getvalue()
    assert "order 1: processed 0 times" in screen.getvalue()


def test_plain_lines_say_the_same() -> None:
    events, _ = play()
    view = LineView()
    lines = [view.line(event) for event in events]
    assert "order b  OSError: once; rolled back, again in 0.020 s" in lines
    assert "order c  OSError: always; rolled back, that was the last delivery: poison ack" in lines
    letter = next(line for line in lines if "stands in the dead-letter queue" in line)
    assert letter.endswith(
        "3 deliveries, Delivery[3] exceeds redelivery policy limit:RedeliveryPolicy {…}, cause:OSError: always"
    )
    assert lines[-1].startswith("3 orders sent = 2 processed + 1 dead letters; 6 deliveries, 3 of them redeliveries")
