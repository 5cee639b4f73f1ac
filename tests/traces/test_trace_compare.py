"""The comparer must find every kind of difference; a comparer that finds nothing would make all traces equal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.traces.compare import CAUSE, Mismatch, Sight, cause, closest, compare, only_late
from tests.traces.scenario import Trace, scenarios

Events = list[dict[str, Any]]
POISONED = scenarios()["max-2"].traces[0]  # m1 three times, 20 ms apart, m2, then nothing for 400 ms
DELAYED = scenarios()["delay-fixed"].traces[0]  # 100 ms, then 200 ms


def replayed(trace: Trace, change: Callable[[Events], object] = lambda _: None) -> Trace:
    """A trace as the player would record it, with one change."""
    events = [{**event, "ms": float(event["ms"]), "setup": 0.0} for event in trace.events]
    change(events)
    return replace(trace, events=tuple(events))


def found(trace: Trace, change: Callable[[Events], object]) -> list[str]:
    return [mismatch.kind for mismatch in compare(trace, replayed(trace, change), Sight())]


def with_end(trace: Trace, queue: str, messages: Sequence[Mapping[str, Any]]) -> Trace:
    return replace(trace, end={**trace.end, queue: messages})


@pytest.mark.parametrize("name", ["max-2", "listener-auto-throw-always", "expired-in-hand-rollback", "batch-order"])
def test_a_replay_without_a_change_is_equal(name: str) -> None:
    trace = scenarios()[name].traces[0]

    assert compare(trace, replayed(trace), Sight()) == []


def test_two_messages_in_another_order_differ() -> None:
    def swap(events: Events) -> None:
        events[0]["body"], events[6]["body"] = "m2", "m1"

    assert found(POISONED, swap) == ["order"]


def test_a_missing_redelivered_flag_differs() -> None:
    assert found(POISONED, lambda events: events[2].update(redelivered=False)) == ["redelivered"]


def test_a_count_off_by_one_differs() -> None:
    assert found(POISONED, lambda events: events[4].update(count=4)) == ["count"]


def test_a_field_that_was_not_recorded_differs() -> None:
    assert found(POISONED, lambda events: events[4].update(then="throw")) == ["then"]


def test_a_delivery_too_many_differs() -> None:
    assert found(POISONED, lambda events: events.append(dict(events[0]))) == ["order"]


def test_a_delivery_too_few_differs() -> None:
    assert found(POISONED, lambda events: events.pop()) == ["order"]


def test_a_redelivery_a_tenth_too_early_differs() -> None:
    assert found(DELAYED, lambda events: events[4].update(ms=180.0)) == ["early"]


def test_a_redelivery_is_not_early_by_what_the_rollback_before_it_took() -> None:
    def slow_rollback(events: Events) -> None:
        events[3]["ms"] += 15.0
        events[4]["ms"] -= 15.0

    assert found(DELAYED, slow_rollback) == []


def test_nor_by_what_the_first_of_two_rollbacks_took() -> None:
    trace = scenarios()["rollback-twice"].traces[0]

    def slow_rollback(events: Events) -> None:
        events[1]["ms"] += 19.0
        events[3]["ms"] -= 19.0

    assert [event["op"] for event in trace.events[1:4]] == ["rollback", "rollback", "receive"]
    assert compare(trace, replayed(trace, slow_rollback), Sight()) == []


def test_a_slow_receive_does_not_excuse_the_delay_after_the_next_rollback() -> None:
    def slow_receive(events: Events) -> None:
        events[2]["ms"] += 40.0
        events[4]["ms"] -= 40.0

    assert found(DELAYED, slow_receive) == ["early"]


def test_a_slow_receive_excuses_the_end_of_a_delay_that_runs_beside_it() -> None:
    trace = scenarios()["nonblocking-two-batches"].traces[0]

    def slow_receive(events: Events) -> None:
        events[3]["ms"] += 40.0  # between the two rollbacks; m1 waits since the first one
        events[7]["ms"] -= 40.0

    got = replayed(trace, slow_receive)
    assert compare(trace, got, Sight(), overlapping=True) == []
    assert [each.kind for each in compare(trace, got, Sight())] == ["early"]


def test_a_redelivery_too_late_differs_and_may_be_tried_again() -> None:
    mismatches = compare(DELAYED, replayed(DELAYED, lambda events: events[4].update(ms=260.0)), Sight())

    assert [each.kind for each in mismatches] == ["late"]
    assert only_late(mismatches)


def test_nothing_but_lateness_may_be_tried_again() -> None:
    assert not only_late([])
    assert not only_late([Mismatch("late", "", 0, 100), Mismatch("count", "", 1, 2)])


def test_an_error_of_our_class_for_javas_is_equal_and_any_other_differs() -> None:
    trace = scenarios()["illegal-commit-auto"].traces[0]

    def raising(name: str) -> Callable[[Events], object]:
        return lambda events: [event.update(error={"class": name}) for event in events]

    assert found(trace, raising("IllegalStateError")) == []
    assert found(trace, raising("ProtocolError")) == ["error", "error"]
    assert found(trace, lambda events: [event.pop("error") for event in events]) == ["error", "error"]


def test_a_missing_dead_letter_differs() -> None:
    got = with_end(replayed(POISONED), "ActiveMQ.DLQ", ())

    assert [each.kind for each in compare(POISONED, got, Sight())] == ["end"]


def test_a_message_left_in_a_queue_differs() -> None:
    got = with_end(replayed(POISONED), "q", POISONED.end["ActiveMQ.DLQ"])

    assert [each.kind for each in compare(POISONED, got, Sight())] == ["end"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("originalDestination", "queue://other"),
        ("persistent", False),
        ("redelivered", True),
        ("originalExpiration", "5"),
    ],
)
def test_a_dead_letter_with_another_field_differs(name: str, value: object) -> None:
    got = with_end(replayed(POISONED), "ActiveMQ.DLQ", [{**POISONED.end["ActiveMQ.DLQ"][0], name: value}])

    assert [each.kind for each in compare(POISONED, got, Sight())] == ["end"]


def test_a_cause_differs_by_its_number_and_is_ignored_only_where_it_cannot_be_seen() -> None:
    letter = POISONED.end["ActiveMQ.DLQ"][0]
    wrong = {**letter, CAUSE: letter[CAUSE].replace("Delivery[3]", "Delivery[4]")}
    silent = {name: value for name, value in letter.items() if name != CAUSE}

    assert len(compare(POISONED, with_end(replayed(POISONED), "ActiveMQ.DLQ", [wrong]), Sight())) == 1
    assert len(compare(POISONED, with_end(replayed(POISONED), "ActiveMQ.DLQ", [silent]), Sight())) == 1
    assert compare(POISONED, with_end(replayed(POISONED), "ActiveMQ.DLQ", [silent]), Sight(causes=False)) == []


def test_an_expiry_is_distinguished_from_poison_even_where_causes_of_poison_cannot_be_seen() -> None:
    trace = scenarios()["expired-on-queue"].traces[0]
    silent = [{name: value for name, value in trace.end["ActiveMQ.DLQ"][0].items() if name != CAUSE}]

    got = with_end(replayed(trace), "ActiveMQ.DLQ", silent)
    assert [each.kind for each in compare(trace, got, Sight(causes=False))] == ["end"]


def test_our_own_count_on_a_copy_must_agree_with_its_cause() -> None:
    letter = POISONED.end["ActiveMQ.DLQ"][0]
    right = with_end(replayed(POISONED), "ActiveMQ.DLQ", [{**letter, "dlqDeliveryCount": "3"}])
    wrong = with_end(replayed(POISONED), "ActiveMQ.DLQ", [{**letter, "dlqDeliveryCount": "2"}])

    assert compare(POISONED, right, Sight()) == []
    assert [each.kind for each in compare(POISONED, wrong, Sight())] == ["end"]


def test_what_follows_a_late_callback_is_not_early() -> None:
    """The delay of m1 has run meanwhile; only that the callback itself was late is reported, which is played again."""
    trace = scenarios()["listener-transacted-rollback-nonblocking"].traces[0]
    held_up = replayed(trace, lambda events: (events[2].update(ms=events[2]["ms"] + 200), events[3].update(ms=0.0)))
    early = replayed(trace, lambda events: events[3].update(ms=0.0))

    assert [each.kind for each in compare(trace, held_up, Sight(), overlapping=True)] == ["late"]
    assert [each.kind for each in compare(trace, early, Sight(), overlapping=True)] == ["early"]


def test_an_exception_listener_that_heard_too_much_differs() -> None:
    assert [each.kind for each in compare(POISONED, replace(replayed(POISONED), heard=1), Sight())] == ["heard"]


def test_any_variant_is_right_and_the_closest_is_shown_otherwise() -> None:
    variants = scenarios()["policy-put-prefixes"].traces
    bounded = [replace(each, events=tuple({**e, "ms": e.get("ms_max", 0)} for e in each.events)) for each in variants]

    assert closest(variants, replayed(bounded[1]), Sight()) == []
    wrong = replayed(bounded[1], lambda events: events[0].update(count=2))
    assert [each.kind for each in closest(variants, wrong, Sight())] == ["count"]


def test_a_java_cause_and_ours_meet_in_one_form() -> None:
    java = (
        "java.lang.Throwable: Delivery[3] exceeds redelivery policy limit:RedeliveryPolicy {destination = queue://q, "
        "collisionAvoidanceFactor = 0.15, maximumRedeliveries = 2}, cause:java.lang.RuntimeException: fail m1 #3"
    )
    ours = (
        "Delivery[3] exceeds redelivery policy limit:RedeliveryPolicy {destination = null, "
        "collisionAvoidanceFactor = 0.15, maximumRedeliveries = 2}, cause:RuntimeError: fail m1 #3"
    )

    assert cause(java) == cause(ours)
    assert cause(java) != cause(ours.replace("maximumRedeliveries = 2", "maximumRedeliveries = 3"))
