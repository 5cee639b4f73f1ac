"""The demo played fast on an embedded broker: what it reports is what happened, and what does not add up is named."""

from __future__ import annotations

from collections.abc import Mapping
from io import StringIO
from typing import Any
from uuid import uuid4

import pytest
from rich.console import Console

import redelivery
from redelivery import RedeliveryPolicy
from redelivery.broker import EmbeddedBroker
from redelivery.cli.demo.orders import ALWAYS, Demo, Script, contradictions
from redelivery.cli.demo.story import Order, StoryStep
from redelivery.cli.demo.view import View
from redelivery.testing.brokers.real import RealBroker

QUICK = Script(
    orders=("a", "b", "c"),
    failures={"b": (1, OSError("once")), "c": (ALWAYS, OSError("always"))},
    policy=RedeliveryPolicy(maximum_redeliveries=2, initial_redelivery_delay=0.02, redelivery_delay=0.04),
    work=0.0,
    limit=10.0,
)


def play(script: Script = QUICK) -> tuple[list[StoryStep], Mapping[str, Any]]:
    steps: list[StoryStep] = []
    with EmbeddedBroker(f"demo-{uuid4().hex}") as broker:
        summary = Demo(steps.append, script).run(broker.vm_url)
        started = steps[0].fields
        assert broker.queue_depth(started["queue"]) == broker.queue_depth(started["dead_letter_queue"]) == 0
    return steps, summary


def values(steps: list[StoryStep], event: str, *names: str) -> list[Any]:
    """The values of fields, of each such step."""
    return [tuple(step.fields[name] for name in names) for step in steps if step.event == event]


def test_every_order_is_processed_or_dead_lettered_once_after_the_delays_of_its_policy() -> None:
    steps, summary = play()
    assert summary["problems"] == []
    assert values(steps, "sent", "order") == [("a",), ("b",), ("c",)]
    assert values(steps, "delivered", "order", "delivery", "redelivered", "planned") == [
        ("a", 1, False, None),
        ("b", 1, False, None),
        ("b", 2, True, 0.02),
        ("c", 1, False, None),
        ("c", 2, True, 0.02),
        ("c", 3, True, 0.04),
    ]
    again = [each for each in values(steps, "delivered", "measured", "planned") if each[1] is not None]
    assert all(measured >= planned for measured, planned in again)
    assert values(steps, "failed", "again_in") == [(0.02,), (0.02,), (0.04,), (None,)]
    assert values(steps, "processed", "order") == [("a",), ("b",)]
    ((order, deliveries, cause),) = values(steps, "dead_lettered", "order", "deliveries", "cause")
    assert (order, deliveries) == ("c", 3)
    assert cause.endswith("cause:OSError: always")
    assert steps[-1].fields == summary


def test_it_runs_on_a_real_broker_and_leaves_nothing_there(activemq: RealBroker) -> None:
    steps: list[StoryStep] = []
    summary = Demo(steps.append, QUICK).run(activemq.stomp_url)
    assert (summary["problems"], summary["sent"], summary["processed"], summary["dead_letters"]) == ([], 3, 2, 1)
    with redelivery.connect(activemq.stomp_url) as connection, connection.session() as session:
        for name in ("queue", "dead_letter_queue"):
            assert session.consumer(steps[0].fields[name]).receive(timeout=0.5) is None


def test_what_is_not_finished_in_time_is_a_problem_and_is_cleaned_away() -> None:
    slow = Script(failures={"1001": (1, OSError("x"))}, policy=RedeliveryPolicy(), work=0.0, limit=0.2)
    _, summary = play(slow)
    assert summary["problems"][0] == "not finished after 0.2 s, and nothing more was delivered"
    assert any(problem.startswith("order 1008: ") for problem in summary["problems"])


def test_the_counts_of_each_order_are_those_of_the_script() -> None:
    good = {
        "a": Order(1, [1], 1),
        "b": Order(1, [1, 2], 1, 1),
        "c": Order(1, [1, 2, 3], 0, 3, [(3, "queue://orders", True)]),
    }
    assert contradictions(QUICK, good, "queue://orders") == []
    for name, wrong in (
        ("a", Order(2, [1], 1)),
        ("a", Order(1, [1, 2], 1)),
        ("a", Order(1, [], 1)),
        ("b", Order(1, [1, 1], 1, 1)),
        ("b", Order(1, [1, 2], 2, 1)),
        ("c", Order(1, [1, 2, 3], 0, 3)),
        ("c", Order(1, [1, 2, 3], 0, 3, [(2, "queue://orders", True)])),
        ("c", Order(1, [1, 2, 3], 0, 3, [(3, "queue://others", True)])),
        ("c", Order(1, [1, 2, 3], 1, 2, [(3, "queue://orders", True)])),
    ):
        (problem,) = contradictions(QUICK, {**good, name: wrong}, "queue://orders")
        assert problem.startswith(f"order {name}: ")


@pytest.mark.parametrize("width", [50, 120])
def test_the_terminal_shows_deliveries_dead_letters_and_summary(width: int) -> None:
    steps, _ = play()
    screen = StringIO()
    console = Console(file=screen, force_terminal=True, width=width, height=40, color_system=None, legacy_windows=False)
    with View(console) as view:
        for step in steps:
            view(step)
    shown = screen.getvalue()
    assert "c  delivery 3, after 0." in shown  # 0.04 s, and what a busy machine adds
    assert "c is redelivered in 0.0 s" in shown
    assert "a dead letter after" in shown
    last = " ".join(shown[shown.rindex("summary") :].replace("│", " ").split())
    assert "3 orders sent = 2 processed + 1 dead letters" in last
    assert "it adds up" in last


def test_lines_and_the_terminal_say_what_does_not_add_up(capsys: pytest.CaptureFixture[str]) -> None:
    steps, _ = play(QUICK._replace(failures={"b": (1, OSError("once"))}, limit=0.01))
    screen = StringIO()
    for console in (Console(file=screen, force_terminal=True, width=80), Console(force_terminal=False)):
        with View(console) as view:
            for step in steps:
                view(step)
    for shown in (screen.getvalue(), capsys.readouterr().out):
        assert "it does not add up: not finished after" in shown


def test_plain_lines_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    steps, _ = play()
    with View(Console(force_terminal=False)) as view:
        for step in steps:
            view(step)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("3 orders in queue " + steps[0].fields["queue"])
    assert [line.split("  ")[-1].strip() for line in lines if "  delivery " in line] == [
        "✔ commit",
        "✘ rollback: once",
        "✔ commit",
        "✘ rollback: always",
        "✘ rollback: always",
        "✘ poison ack: always",
    ]
    assert "      Delivery[3] exceeds redelivery policy limit:RedeliveryPolicy {…}, cause:OSError: always" in lines
    assert lines[-3] == "3 orders sent = 2 processed + 1 dead letters"
