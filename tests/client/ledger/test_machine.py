"""The ledger against a model of the rules, in every mode, with several consumers, failures and clocks."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.client.ledger.machine import LedgerMachine
from tests.run import forms

from redelivery.model.modes import AckMode


@pytest.mark.parametrize("ack_mode", list(AckMode), ids=lambda mode: mode.name)
def test_the_ledger_does_what_the_rules_say(ack_mode: AckMode) -> None:
    class Machine(LedgerMachine):
        mode = ack_mode

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=forms.examples(60),
            stateful_step_count=50,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
        ),
    )
