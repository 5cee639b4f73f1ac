"""kill -9 of programs and of brokers at random moments, on every pair: nothing lost, every duplicate explained.

See `campaign` for what runs, `victim` for the program, `account` for what is counted.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.conformance.pairs import PAIRS, Kind
from tests.faults.account import Killed
from tests.faults.campaign import KILLS, Run
from tests.faults.promises import PROMISES


@pytest.mark.timeout(120 + 60 * KILLS)
@pytest.mark.parametrize("killed", ["client", "broker"])
@pytest.mark.parametrize("kind", [kind for kind in PAIRS.values() if kind.name in PROMISES], ids=lambda kind: kind.name)
def test_nothing_is_lost_and_every_duplicate_is_explained(
    kind: Kind, killed: Killed, killed_run: Callable[[Kind, Killed], Run]
) -> None:
    run = killed_run(kind, killed)
    assert run.verdict.lost == []
    assert run.verdict.unexplained == []
    assert run.verdict.messages == len(run.sent) > 0
    promise = PROMISES[kind.name]
    assert run.verdict.duplicates.keys() <= {promise.window, promise.behind} - {None}
