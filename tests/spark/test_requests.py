"""What a stream asks of an object store: few listings, and a driver that loads next to nothing of what tasks read."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest

pytest.importorskip("pyspark")

from benchmarks.spark_requests import Bucket, bucket, counted

_MISSING = [name for name in ("s3fs", "moto", "flask") if importlib.util.find_spec(name) is None]
pytestmark = [
    pytest.mark.together("S3"),  # one emulator
    pytest.mark.skipif(bool(_MISSING), reason=f"not installed: {', '.join(_MISSING)}"),
]


@pytest.fixture(scope="module")
def store() -> Iterator[Bucket]:
    with bucket() as made:
        yield made


@pytest.mark.parametrize("receiver", ["driver", "executor"])
def test_a_segment_takes_two_listings_at_most_from_the_start_to_the_last_commit(store: Bucket, receiver: str) -> None:
    found = counted(store, receiver)
    assert found["rows"] == 3000
    assert 3 <= found["segments"] <= 4, "the last batch of receiver=executor may be empty"
    assert found["LIST"] <= 2 * found["segments"]
    assert found["LIST"] + found["HEAD"] + found["GET"] + found["PUT"] <= 30 * found["segments"]
    assert found["driver_bytes"] <= 0.01 * found["segment_bytes"]
