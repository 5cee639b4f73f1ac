"""What tests of the transports need from the rest of the process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.traces import runner


@pytest.fixture
def alone() -> Iterator[None]:
    """No trace is played in this process meanwhile: its connections have threads, and take time, of their own."""
    with runner.alone():
        yield
