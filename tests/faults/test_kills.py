"""kill -9 of programs and of brokers at random moments, on every pair: nothing lost, every duplicate explained.

See `campaign` for what runs, `victim` for the program, `account` for what is counted.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.conformance.pairs import PAIRS, Kind
from tests.faults.account import Killed
from tests.faults.campaign import KILLS, STORED_KILLS, Run
from tests.faults.promises import MODES, PROMISES, QUORUM, promise_of

PAIRED = [pytest.param(kind, "", id=kind.name) for kind in PAIRS.values() if kind.name in PROMISES]
MODED = [
    pytest.param(kind, mode, id=f"{kind.name}-{mode}", marks=pytest.mark.long_form)
    for kind in PAIRS.values()
    if kind.stored and kind.name in PROMISES
    for mode in MODES
]
QUORUMS = [pytest.param(kind, QUORUM, id=f"{kind.name}-{QUORUM}") for kind in PAIRS.values() if kind.brief]


@pytest.mark.timeout(120 + 60 * max(KILLS, STORED_KILLS))
@pytest.mark.parametrize("killed", ["client", "broker"])
@pytest.mark.parametrize(("kind", "mode"), [*PAIRED, *MODED, *QUORUMS])
def test_nothing_is_lost_and_every_duplicate_is_explained(
    kind: Kind, mode: str, killed: Killed, killed_run: Callable[[Kind, str, Killed], Run]
) -> None:
    run = killed_run(kind, mode, killed)
    assert run.verdict.lost == []
    assert run.verdict.unexplained == []
    assert run.verdict.messages == len(run.sent) > 0
    promise = promise_of(kind, mode)
    assert run.verdict.duplicates.keys() <= {promise.window, promise.behind} - {None}
