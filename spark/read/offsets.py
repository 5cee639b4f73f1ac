"""Offsets that Spark keeps in its checkpoint for a stream: the number of the last segment, or the plan of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import redelivery

VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class DriverOffset:
    """receiver=driver: all segments up to ``seq`` of the log ``wal``."""

    wal: str
    seq: int

    def json(self) -> dict[str, Any]:
        """As Spark stores it; equal offsets give equal JSON."""
        return {"v": VERSION, "wal": self.wal, "seq": self.seq}


@dataclass(frozen=True, slots=True)
class ExecutorOffset:
    """receiver=executor: batch ``seq`` is received by ``parts`` tasks, at most ``max`` messages together.

    The plan travels in the offset, so a restart with other options forms the same batch again.
    """

    wal: str
    seq: int
    parts: int
    max: int

    def json(self) -> dict[str, Any]:
        """As Spark stores it; equal offsets give equal JSON."""
        return {"v": VERSION, "wal": self.wal, "seq": self.seq, "parts": self.parts, "max": self.max}


def parse_offset(value: Mapping[str, Any], receiver: Literal["driver", "executor"]) -> DriverOffset | ExecutorOffset:
    """The offset in a checkpoint.

    Raises:
        ConfigError: it is of another source, another version or the other receiver.
    """
    version = value.get("v")
    if isinstance(version, int) and version > VERSION:
        raise redelivery.ConfigError(
            f"the checkpoint was written by a newer redelivery (offset version {version}, this one reads {VERSION}): "
            "install that version, or start with a new checkpointLocation"
        )
    driver, executor = {"v", "wal", "seq"}, {"v", "wal", "seq", "parts", "max"}
    keys = set(value)
    numbers = [value.get(key) for key in keys - {"v", "wal"}]
    if (
        type(version) is not int
        or version != VERSION
        or keys not in (driver, executor)
        or not isinstance(value["wal"], str)
        or not all(type(number) is int and number >= 0 for number in numbers)
    ):
        raise redelivery.ConfigError(
            f"the checkpoint holds an offset that is not of this source: {dict(value)!r}. "
            "Each query needs a checkpointLocation of its own"
        )
    written_by = "driver" if keys == driver else "executor"
    if written_by != receiver:
        raise redelivery.ConfigError(
            f"the checkpoint was written with receiver={written_by}, but the option says receiver={receiver}: "
            f"go back to {written_by}, or start with a new checkpointLocation and a new walLocation"
        )
    return DriverOffset(value["wal"], value["seq"]) if receiver == "driver" else ExecutorOffset(**_plan(value))


def _plan(value: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value[key] for key in ("wal", "seq", "parts", "max")}
