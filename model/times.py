"""JMS's times: milliseconds since 1970 on the wire, aware datetimes for people."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

_FIRST_MS: Final = -62_135_596_800_000  # of the year 1
_LAST_MS: Final = 253_402_300_799_999  # of the year 9999


def from_epoch_ms(value: int) -> datetime | None:
    """A time from milliseconds since 1970; 0 is JMS's "not set".

    What Python cannot represent (Java's largest long is a common "never") becomes its first or last time.
    """
    if not value:
        return None
    return datetime.fromtimestamp(min(max(value, _FIRST_MS), _LAST_MS) / 1000, UTC)


def to_epoch_ms(value: datetime | None) -> int:
    """Milliseconds since 1970 of an aware time; 0 for None."""
    return round(value.timestamp() * 1000) if value else 0
