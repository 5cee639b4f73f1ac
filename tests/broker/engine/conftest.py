"""The engine's bench, one for each test."""

from __future__ import annotations

import pytest
from tests.broker.engine.bench import Bench


@pytest.fixture
def bench() -> Bench:
    return Bench()
