"""Offsets: a fixed text, read back, and every foreign one refused with what to do."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redelivery import ConfigError
from redelivery.spark.read.offsets import DriverOffset, ExecutorOffset, parse_offset

NUMBERS = st.integers(0, 2**53)


@given(wal=st.text(), seq=NUMBERS, parts=NUMBERS, most=NUMBERS)
def test_read_back_what_was_written(wal: str, seq: int, parts: int, most: int) -> None:
    driver, executor = DriverOffset(wal, seq), ExecutorOffset(wal, seq, parts, most)
    assert parse_offset(json.loads(json.dumps(driver.json())), "driver") == driver
    assert parse_offset(json.loads(json.dumps(executor.json())), "executor") == executor


def test_the_text_is_fixed() -> None:
    """Spark compares offsets as texts: another order of keys would be another offset."""
    assert json.dumps(DriverOffset("w", 3).json()) == '{"v": 1, "wal": "w", "seq": 3}'
    assert json.dumps(ExecutorOffset("w", 3, 2, 9).json()) == '{"v": 1, "wal": "w", "seq": 3, "parts": 2, "max": 9}'


@pytest.mark.parametrize(("written", "read"), [("driver", "executor"), ("executor", "driver")])
def test_the_other_receivers(written: str, read: Any) -> None:
    offset = DriverOffset("w", 3) if written == "driver" else ExecutorOffset("w", 3, 2, 9)
    with pytest.raises(ConfigError, match=f"receiver={written}.* receiver={read}.*new walLocation"):
        parse_offset(offset.json(), read)


def test_a_newer_version_is_not_guessed_at() -> None:
    with pytest.raises(ConfigError, match="offset version 2, this one reads 1"):
        parse_offset({"v": 2, "wal": "w", "seq": 3, "something": "new"}, "driver")


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"offset": 5},
        {"v": 1, "wal": "w"},
        {"v": 1, "wal": None, "seq": 1},
        {"v": 1, "wal": "w", "seq": "1"},
        {"v": 1, "wal": "w", "seq": True},
        {"v": 1, "wal": "w", "seq": -1},
        {"v": 1, "wal": "w", "seq": 1, "parts": 2},
        {"v": "1", "wal": "w", "seq": 1},
        {"v": True, "wal": "w", "seq": 1},
        {"v": 0, "wal": "w", "seq": 1},
    ],
)
@pytest.mark.parametrize("receiver", ["driver", "executor"])
def test_a_foreign_one(value: dict[str, Any], receiver: Any) -> None:
    with pytest.raises(ConfigError, match=r"not of this source: .*checkpointLocation of its own"):
        parse_offset(value, receiver)
