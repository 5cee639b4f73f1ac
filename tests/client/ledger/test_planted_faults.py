"""The state machine is no decoration: each of these faults, planted into the ledger, is caught by it."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.client.ledger.faulty_ledgers import FAULTS, IN_MODE
from tests.client.ledger.machine import LedgerMachine

from redelivery.client.ledger import Ledger
from redelivery.model.modes import AckMode

SETTINGS = settings(
    max_examples=1000,
    stateful_step_count=30,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],  # the first failure is enough, it need not be small
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("ledger", FAULTS, ids=lambda ledger: ledger.__name__)
def test_it_is_caught(ledger: type[Ledger]) -> None:
    class Faulty(LedgerMachine):
        make = ledger
        mode = IN_MODE.get(ledger, AckMode.TRANSACTED)

    with pytest.raises(AssertionError):
        run_state_machine_as_test(Faulty, settings=SETTINGS)
