"""The table of differences is complete and has no entry too many; what it leaves out really cannot be expressed."""

from __future__ import annotations

import pytest
from tests.traces.courses import courses, stated_courses
from tests.traces.differences import BY_BROKER, DIFFERENCES, FAULTS, REASONS, missing
from tests.traces.scenario import Event, scenarios
from tests.traces.table import PAGE, page, stated
from tests.traces.targets import TARGETS

import redelivery
from redelivery import ConfigError, Session


def test_every_entry_names_a_scenario_that_is_played_a_reason_and_a_course() -> None:
    for name in DIFFERENCES.keys() | BY_BROKER.keys():
        entries = (*DIFFERENCES.get(name, ()), *BY_BROKER.get(name, ()))
        assert missing(scenarios()[name]) is None
        for entry in entries:
            assert entry.why in REASONS, name
            assert (entry.why == "fault") is (entry.fault in FAULTS), name
            for target in entry.targets or TARGETS:
                if TARGETS[target].plays(scenarios()[name]):
                    assert courses(scenarios()[name], target), f"{name} has no course at {target}"


def test_every_course_is_played_at_the_targets_that_it_names() -> None:
    for name, targets in stated_courses():
        for target in targets:
            assert TARGETS[target].plays(scenarios()[name]), f"{name} is not played at {target}"


def test_no_first_delivery_is_stated_to_take_longer_than_it_was_recorded_to() -> None:
    """What comes for the first time waits for no delay of a policy: a time there is a slow run's, and may be less."""
    for name, scenario in scenarios().items():
        recorded = {_first(event): event["ms"] for trace in scenario.traces for event in trace.events if _timed(event)}
        for target in TARGETS:
            for event in (event for course in courses(scenario, target) for event in course.events if _timed(event)):
                assert event["ms"] <= recorded.get(_first(event), 0), f"{name} at {target}: {event}"


def _timed(event: Event) -> bool:
    return event["op"] in ("receive", "deliver") and event.get("count") == 1 and "ms" in event


def _first(event: Event) -> tuple[object, object]:
    return event.get("step"), event["body"]


def test_the_options_that_scenarios_are_played_without_are_refused_by_name() -> None:
    for scenario in scenarios().values():
        for option in scenario.connection.get("options", {}):
            with pytest.raises(ConfigError, match=option):
                redelivery.connect(f"vm://refused?{option}=true")


def test_what_scenarios_are_left_out_for_does_not_exist_yet() -> None:
    with pytest.raises(ConfigError):
        redelivery.connect("failover:(vm://a)?jms.prefetchPolicy.all=1")
    assert not hasattr(Session, "durable_consumer")


def test_the_page_in_the_documentation_is_the_one_of_this_table() -> None:
    cells = {(name, target): stated(scenario, target) for name, scenario in scenarios().items() for target in TARGETS}

    assert PAGE.read_text(encoding="utf-8") == page(cells), "run scripts/trace-table"
