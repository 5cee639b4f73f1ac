"""The table of differences is complete and has no entry too many; what it leaves out really cannot be expressed."""

from __future__ import annotations

import csv
import io

import pytest
from tests.traces.courses import courses, stated_courses
from tests.traces.differences import BY_BROKER, DIFFERENCES, ELSEWHERE, FAULTS, REASONS, differences, missing
from tests.traces.scenario import Event, scenarios
from tests.traces.table import DIFFERENT, EITHER, EQUAL, FOLDER, NOT_PLAYED, files, stated
from tests.traces.targets import TARGETS

import redelivery
from redelivery import ConfigError


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


def test_every_fault_that_is_not_copied_is_held_by_a_scenario_or_a_test() -> None:
    held = {each.fault for entries in (*DIFFERENCES.values(), *BY_BROKER.values()) for each in entries}
    assert (held - {None}) | ELSEWHERE.keys() == FAULTS.keys()
    assert not held & ELSEWHERE.keys()


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


def test_an_outcome_may_have_several_reasons_and_each_is_reported() -> None:
    scenario, target = scenarios()["individual-listener-throw"], "stomp-artemis"
    reasons = [(each.why, each.instead) for each in differences(scenario, target)]
    assert [why for why, _ in reasons] == ["rule", "counts"]
    written = files(stated_cells())
    rows = list(csv.DictReader(io.StringIO(written[FOLDER / "traces.csv"])))
    reported = [row for row in rows if (row["scenario"], row["target"]) == (scenario.id, target)]
    assert [(row["reason"], row["what happens instead"]) for row in reported] == reasons
    page = written[FOLDER / "traces" / "artemis.md"]
    assert page.count(f"`{scenario.id}`") == 2


def test_a_choice_of_ours_is_not_called_a_fault_of_the_java_client() -> None:
    """Java checks the limit before it delivers; we do not where the broker charges what it only prefetched."""
    for name in ("predispatch-nowait", "qpid-max-1-prefetched-unseen"):
        assert [each.why for each in differences(scenarios()[name], "amqp-qpid")] == ["rule"], name


def test_every_outcome_is_in_the_data() -> None:
    rows = list(csv.DictReader(io.StringIO(files(stated_cells())[FOLDER / "traces.csv"])))
    assert {(row["scenario"], row["target"]) for row in rows} == stated_cells().keys()
    assert {row["outcome"] for row in rows} == {EQUAL, DIFFERENT, EITHER, NOT_PLAYED}


def stated_cells() -> dict[tuple[str, str], str]:
    return {(name, target): stated(scenario, target) for name, scenario in scenarios().items() for target in TARGETS}


def test_the_folder_has_a_page_of_each_broker_and_no_other() -> None:
    assert set((FOLDER / "traces").iterdir()) == {path for path in files(stated_cells()) if path.parent != FOLDER}
