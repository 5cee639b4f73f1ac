"""How long a test that was late waits for the machine before it is played again."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import pytest
from tests.run import calm


class Machine:
    """Naps take the given times, one after the other."""

    def __init__(self, naps: Iterable[float]) -> None:
        self._naps = iter(naps)
        self.now = 0.0

    def sleep(self, _: float) -> None:
        self.now += next(self._naps)

    def wait(self) -> bool:
        return calm.wait(self.sleep, lambda: self.now)


@pytest.mark.parametrize(
    ("naps", "calm_after"),
    [([0.010] * 10, 0.1), ([0.050, *[0.010] * 10], 0.15), ([*[0.010] * 9, 0.050, *[0.010] * 10], 0.24)],
)
def test_it_takes_ten_naps_in_a_row(naps: list[float], calm_after: float) -> None:
    machine = Machine(naps)
    assert machine.wait()
    assert machine.now == pytest.approx(calm_after)


def test_a_machine_that_is_never_calm_is_not_waited_for_any_longer() -> None:
    machine = Machine(itertools.repeat(0.030))
    assert not machine.wait()
    assert 10 <= machine.now < 10.1
