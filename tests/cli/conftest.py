from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def receipts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where commands write their receipts: not below the home of a developer."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "redelivery" / "receipts"
