"""The comparison itself: it finds a broker whose delays are not those of its file."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.differential.compare import EARLY, SLOW, differences, promised_waits
from tests.differential.scenario import Played, Scenario
from tests.differential.scenarios import SCENARIOS

DOUBLING = Scenario("doubling", "artemis", "q", delays=(600, 1200, 1800), tolerance=150)
EXACT = [600, 1200, 1800, 1800]
DELAYED = [each for each in SCENARIOS if any(each.delays)]


def played(waits: list[int]) -> Played:
    return Played([("1", count) for count in range(len(waits) + 1)], waits)


def test_the_waits_that_the_file_promises_are_the_same() -> None:
    early = [each - EARLY for each in EXACT]
    assert differences(DOUBLING, played(EXACT), played(early)) == []
    late = [each + SLOW for each in EXACT]
    assert differences(DOUBLING, played([each + 150 for each in late]), played(late)) == []


@pytest.mark.parametrize(
    "waits",
    [
        [0, 0, 0, 0],
        [600, 600, 600, 600],  # not doubled
        [600, 1200, 2400, 4800],  # no maximum
        [1200, 1800, 1800, 1800],  # one step ahead
        [600 - EARLY - 1, 1200, 1800, 1800],
        [600, 1200, 1800, 1800 + SLOW + 151],
    ],
)
def test_other_waits_are_refused_on_either_side_and_on_both(waits: list[int]) -> None:
    for real, ours in ((waits, EXACT), (EXACT, waits), (waits, waits)):
        found = differences(DOUBLING, played(real), played(ours))
        assert len(found) == (real is waits) + (ours is waits)
        assert all(each.startswith("waits in ms: [600, 1200, 1800, 1800] promised") for each in found)


@pytest.mark.parametrize("scenario", DELAYED, ids=[each.name for each in DELAYED])
def test_no_delayed_scenario_passes_on_brokers_without_delays(scenario: Scenario) -> None:
    found = differences(scenario, played([45, 45]), played([45, 45]))
    assert [each.partition(":")[0] for each in found] == ["waits in ms", "waits in ms"]


def test_what_comes_at_once_must_not_wait() -> None:
    at_once = replace(DOUBLING, delays=(0,))
    assert differences(at_once, played([45]), played([3])) == []
    assert len(differences(at_once, played([600]), played([600]))) == 2


def test_the_last_delay_counts_for_all_after_it_and_none_is_not_compared() -> None:
    assert promised_waits(DOUBLING, 5) == [600, 1200, 1800, 1800, 1800]
    assert differences(replace(DOUBLING, delays=(None,)), played([0, 5000]), played([0, 9])) == []
