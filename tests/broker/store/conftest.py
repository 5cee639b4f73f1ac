from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.broker.store.turns import Turns


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Turns]:
    """An engine with a store, called in turns, each of which reads a page at most."""
    bench = Turns(tmp_path / "shop.db")
    yield bench
    bench.store.close()
