"""The demo's summary is checked against what happened: each way in which it could not add up is found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from redelivery.cli.demo.events import DeadLettered, Delivered, Event, Failed, Processed, Sent, Started, Summary
from redelivery.cli.demo.tally import Tally

STARTED = Started("b", "p", "u", "orders", "DLQ", ("1", "2"), delays=(0.5,))
GOOD: tuple[Event, ...] = (
    STARTED,
    Sent("1"),
    Sent("2"),
    Delivered("1", 1, False, None, None),
    Processed("1"),
    Delivered("2", 1, False, None, None),
    Failed("2", "ValueError: x", 0.5),
    Delivered("2", 2, True, 0.5, 0.51),
    Failed("2", "ValueError: x", None),
    DeadLettered("2", "queue://orders", 2, "because", 0.01),
)


def summary_of(*events: Event) -> Summary:
    tally = Tally()
    for event in events:
        tally.add(event)
    return tally.summary(1.0)


def changed(at: int, **fields: Any) -> tuple[Event, ...]:
    return (*GOOD[:at], replace(GOOD[at], **fields), *GOOD[at + 1 :])


def test_a_run_without_fault_adds_up() -> None:
    summary = summary_of(*GOOD)
    assert summary.problems == ()
    assert (summary.sent, summary.processed, summary.dead_letters) == (2, 1, 1)
    assert (summary.deliveries, summary.redeliveries) == (3, 1)
    assert summary.worst_lateness == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        (GOOD[:4] + GOOD[5:], "order 1: processed 0 times, dead-lettered 0 times"),
        (GOOD[:2] + GOOD[3:], "order 2: sent 0 times"),
        (GOOD[:2] + GOOD[1:], "order 1: sent 2 times"),
        (GOOD[:-1], "order 2: processed 0 times, dead-lettered 0 times"),
        ((*GOOD, GOOD[-1]), "order 2: processed 0 times, dead-lettered 2 times"),
        ((*GOOD, Processed("2")), "order 2: processed 1 times, dead-lettered 1 times"),
        ((*GOOD, *GOOD[3:5]), "order 1: its deliveries were counted [1, 1]"),
        (GOOD[:3] + GOOD[4:], "order 1: 0 deliveries, 1 commits, 0 rollbacks"),
        (changed(7, redelivered=False), "order 2: a redelivered flag is wrong"),
        (changed(3, redelivered=True), "order 1: a redelivered flag is wrong"),
        (changed(7, delivery=1), "order 2: its deliveries were counted [1, 1]"),
        (changed(7, measured=0.4), "order 2: redelivered before the policy's delay had passed"),
        (GOOD[:7] + GOOD[9:], "order 2: dead-lettered after 1 deliveries instead of 2"),
        (changed(9, deliveries=7), "order 2: its dead letter speaks of 7 deliveries"),
        (changed(9, origin="queue://others"), "order 2: its dead letter names the origin 'queue://others'"),
        (changed(9, cause=""), "order 2: its dead letter has no cause"),
        ((*GOOD, DeadLettered("3", "queue://orders", 2, "because", 0.01)), "order 3: sent 0 times"),
        (GOOD[1:], "the demo never started"),
    ],
)
def test_what_does_not_add_up_is_named(events: tuple[Event, ...], problem: str) -> None:
    assert any(each.startswith(problem) for each in summary_of(*events).problems), summary_of(*events).problems


def test_done_means_that_every_order_has_an_end() -> None:
    tally = Tally()
    for event in GOOD[:-1]:
        tally.add(event)
    assert not tally.done
    tally.add(GOOD[-1])
    assert tally.done
