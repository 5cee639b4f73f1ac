"""The state machine is no decoration: each of these faults, planted into the ledger, is caught by it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.client.ledger.faulty_ledgers import FAULTS, IN_MODE
from tests.client.ledger.machine import LedgerMachine

from redelivery.client.ledger import Ledger
from redelivery.model.modes import AckMode

SETTINGS = settings(
    max_examples=5000,
    stateful_step_count=30,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],  # the first failure is enough, it need not be small
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)


# Found after thousands of steps; the others after some.
_LATE = (
    *("CheckedAfterLocalRedelivery", "ClosingConsumersAckLost", "DelayOfTheOldest", "ExpiredShown"),
    *("ForgottenMessagePutBack", "NonBlockingBatchAtTheHead", "SeenMessagesReleasedAsUnseen"),
    *("SomethingKeptAfterTheLoss", "WaitOverwrittenByTheNext"),
)


def _case(ledger: type[Ledger]) -> Any:
    late = ledger.__name__ in _LATE
    return pytest.param(ledger, id=ledger.__name__, marks=pytest.mark.long_form if late else ())


@pytest.mark.timeout(300)  # seconds of processor time at most, but a busy machine gives few of them
@pytest.mark.parametrize("ledger", [_case(each) for each in FAULTS])
def test_it_is_caught(ledger: type[Ledger]) -> None:
    class Faulty(LedgerMachine):
        make = ledger
        mode = IN_MODE.get(ledger, AckMode.TRANSACTED)

    with pytest.raises(AssertionError):
        run_state_machine_as_test(Faulty, settings=SETTINGS)
