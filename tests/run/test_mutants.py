"""Planting a fault: what is planted runs, for one test only, and what cannot be planted says why."""

from __future__ import annotations

import pytest
from tests.run.mutants import Fault, caught, planted

from redelivery.client.containers.outcomes import Retry
from redelivery.client.containers.running import StopRequests

OLD = '        self.after = None if after is None else seconds("after", after)'


def says_none() -> None:
    assert Retry().after is None


def fault(old: str = OLD, new: str = "        self.after = 7.0", module: str = "client.containers.outcomes") -> Fault:
    return Fault(module, old, new, says_none)


def test_it_runs_wherever_it_was_imported_and_no_longer_than_that() -> None:
    with planted(fault()):
        assert Retry(after=3).after == 7.0
    assert Retry(after=3).after == 3


def test_it_is_gone_after_a_failure_too() -> None:
    with pytest.raises(ZeroDivisionError), planted(fault()):
        raise ZeroDivisionError
    assert Retry().after is None


def test_a_property_can_have_one() -> None:
    with planted(
        fault("        return 128 + self.number", "        return 127 + self.number", "client.containers.running")
    ):
        assert StopRequests(1.0).exit_code == 127
    assert StopRequests(1.0).exit_code == 128


def test_one_that_is_noticed_passes(request: pytest.FixtureRequest) -> None:
    caught(fault(), request)


def test_one_that_nobody_notices_fails(request: pytest.FixtureRequest) -> None:
    with pytest.raises(pytest.fail.Exception, match=r"does not notice 'self\.after = None' in client\.containers"):
        caught(fault(new="        self.after = None"), request)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("no such text", "x", "has this text 0 times: 'no such text'.*plant the same fault into what stands there now"),
        ("class ", "klass ", "has this text [0-9]+ times"),
        ("    DROPPED = ", "    DROPPED =  ", "changes no function of outcomes.py"),
        (
            '    def __init__(self, reason: str = "", *, after',
            '    def init(self, reason: str = "", *, after',
            "changes no function",
        ),
    ],
)
def test_what_cannot_be_planted_says_why(old: str, new: str, says: str) -> None:
    with pytest.raises(AssertionError, match=says), planted(fault(old, new)):
        pass
