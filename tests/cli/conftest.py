from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def receipts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where commands write their receipts: not below the home of a developer."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "redelivery" / "receipts"


@pytest.fixture(autouse=True)
def levels() -> Iterator[None]:
    """As they were: `redelivery run` sets the level of the library's loggers for its process, which is the tests'."""
    log = logging.getLogger("redelivery")
    level = log.level
    yield
    log.setLevel(level)
