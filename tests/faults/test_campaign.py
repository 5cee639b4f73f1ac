"""The programs of a campaign."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conformance.pairs import KINDS, Pair
from tests.faults import campaign
from tests.faults.campaign import Run, Victim

STANDS = """
import faulthandler, threading
faulthandler.enable()

def stand_still():
    threading.Event().wait()

print("0.0 got m1", flush=True)
stand_still()
"""


@pytest.fixture
def victim_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Victim]:
    def start(text: str) -> Victim:
        script = tmp_path / "script.py"
        script.write_text(text, encoding="utf-8")
        monkeypatch.setattr(campaign, "_SCRIPT", script)
        run = Run(Pair(KINDS["stomp-stored"], "stomp://nowhere"), "client", "auto", "queue", random.Random(1))  # noqa: S311  # no secret
        return Victim(run, stays=False)

    return start


def test_one_that_stands_still_is_killed_and_says_where(
    victim_of: Callable[[str], Victim], capfd: pytest.CaptureFixture[str]
) -> None:
    with victim_of(STANDS) as victim:
        victim.wait_for(1, "got")
        victim.end(patience=0.05)
        assert not victim.ended_well
    assert "in stand_still" in capfd.readouterr().err
