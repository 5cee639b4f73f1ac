"""Every recorded scenario, played here: the same as the Java client, or different as `differences` says."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.traces.runner import Runs
from tests.traces.scenario import scenarios
from tests.traces.targets import TARGETS

PLAYED = [
    pytest.param(name, target.name, id=f"{target.name}-{name}")
    for target in TARGETS.values()
    for name, scenario in scenarios().items()
    if target.plays(scenario)
]


_SECONDS = 240  # for those before it, too: they are played side by side, and again where the machine held one up


@pytest.mark.timeout(_SECONDS + 60)
@pytest.mark.parametrize(("scenario", "target"), PLAYED)
def test_scenario(scenario: str, target: str, runs: Callable[[str], Runs]) -> None:
    outcome = runs(target).outcome(scenario, target, timeout=_SECONDS)

    assert not outcome.problems, outcome.report()
    if outcome.from_stated is not None and not outcome.chance:
        assert outcome.from_java, f"{scenario} at {target} is as recorded now: take it out of the table"
