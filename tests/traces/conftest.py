"""The runs that the tests of this folder look at, made side by side and once for the whole test run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.traces.runner import Runs
from tests.traces.targets import TARGETS, Target


@pytest.fixture(scope="session")
def vm_runs(request: pytest.FixtureRequest) -> Iterator[Runs]:
    """The selected scenarios at embedded brokers."""
    with Runs(_selected(request.session, vm=True), None) as runs:
        yield runs


@pytest.fixture(scope="session")
def stomp_runs(request: pytest.FixtureRequest) -> Iterator[Runs]:
    """The selected scenarios at a real ActiveMQ Classic."""
    broker = request.getfixturevalue("activemq")
    with Runs(_selected(request.session, vm=False), broker.stomp_url) as runs:
        yield runs


def _selected(session: pytest.Session, *, vm: bool) -> list[tuple[str, Target]]:
    """What this run will ask for, in that order: a single scenario does not have to wait for all the others."""
    selected = []
    for item in session.items:
        params = getattr(getattr(item, "callspec", None), "params", {})
        if "scenario" in params and (params["target"] == "vm") is vm:
            selected.append((params["scenario"], TARGETS[params["target"]]))
    return selected
