"""The runs that the tests of this folder look at, made side by side and once for the whole test run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from tests.traces.runner import Runs
from tests.traces.targets import TARGETS, Target

from redelivery.testing.brokers.real import RealBroker


@pytest.fixture(scope="session")
def runs(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Runs]]:
    """By the name of a target: the selected scenarios there. The first call plays them all, side by side."""
    with ExitStack() as stack:
        played: dict[str, Runs] = {}

        def at(target: str) -> Runs:
            if target not in played:
                if TARGETS[target].protocol == "amqp":
                    pytest.importorskip("proton")
                broker = TARGETS[target].broker
                real: RealBroker | None = request.getfixturevalue(broker) if broker else None
                urls = {} if real is None else {target: getattr(real, f"{TARGETS[target].protocol}_url")}
                played[target] = stack.enter_context(Runs(_selected(request.session, target), urls))
            return played[target]

        yield at


def _selected(session: pytest.Session, target: str) -> list[tuple[str, Target]]:
    """What this run will ask for, in that order: a single scenario does not have to wait for all the others."""
    selected = []
    for item in session.items:
        params = getattr(getattr(item, "callspec", None), "params", {})
        if params.get("target") == target and "scenario" in params:
            selected.append((params["scenario"], TARGETS[target]))
    return selected
