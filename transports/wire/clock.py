"""The only place that asks what time it is; decisions get it as an argument."""

from __future__ import annotations

import time
from datetime import UTC, datetime

monotonic = time.monotonic


def epoch_ms() -> int:
    """Milliseconds since 1970, of the wall clock."""
    return time.time_ns() // 1_000_000


def utc_now() -> datetime:
    """The wall clock's time, aware."""
    return datetime.now(UTC)
