"""Every recorded scenario, played here: the same as the Java client, or different as `differences` says."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.run import forms
from tests.traces.runner import Runs
from tests.traces.scenario import scenarios
from tests.traces.targets import TARGETS

_SECONDS = 240  # for those before it, too: they are played side by side, and again where the machine held one up


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    targets = forms.kinds(metafunc.config, metafunc.definition, list(TARGETS.values()))
    playing = {name: [each.name for each in targets if each.plays(scenario)] for name, scenario in scenarios().items()}
    played = [
        (name, each)
        for name, found in playing.items()
        if found
        for each in forms.in_turns(metafunc.config, found, name)
    ]
    metafunc.parametrize(("scenario", "target"), played, ids=[f"{target}-{name}" for name, target in played])


@pytest.mark.timeout(_SECONDS + 60)
def test_scenario(scenario: str, target: str, runs: Callable[[str], Runs]) -> None:
    outcome = runs(target).outcome(scenario, target, timeout=_SECONDS)

    assert not outcome.problems, outcome.report()
    if outcome.from_stated is not None and not outcome.chance:
        assert outcome.from_java, f"{scenario} at {target} is as recorded now: take it out of the table"
