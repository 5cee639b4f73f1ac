"""Where the tests interrupt: in all that a call of the product runs, and not in what the tests themselves do."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.client import interrupts


@pytest.mark.parametrize("above", ["/srv", "/srv/tests", "/srv/tests/tests"])
def test_it_does_not_depend_on_where_the_clone_is(above: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clone = Path(above) / "clone"
    monkeypatch.setattr(interrupts, "_ROOT", clone)
    monkeypatch.setattr(interrupts, "_TESTS", clone / "tests")
    ours = interrupts._ours.__wrapped__
    assert ours(compile("0", str(clone / "client" / "session.py"), "exec"))
    assert not ours(compile("0", str(clone / "tests" / "client" / "interrupts.py"), "exec"))
