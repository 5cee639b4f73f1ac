"""Segments that are gone, cut off or empty while the query still needs them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.spark.faults.cases import Case, Play, add
from tests.spark.faults.queries import fails_in_its_second_batch
from tests.spark.faults.stage import Stage, summary

_DAMAGES: dict[str, Callable[[Path], Any]] = {
    "gone": Path.unlink,
    "cut off": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "empty": lambda path: path.write_bytes(b""),
}
_PLACES = {"the first": 0, "one in the middle": 1, "the last": -1}
_SHORT = {
    ("driver", "gone", "one in the middle"),
    ("driver", "cut off", "the first"),
    ("driver", "empty", "the last"),
    ("executor", "gone", "the first"),
    ("executor", "cut off", "the last"),
}


def damaged(damage: Callable[[Path], Any], place: int) -> Play:
    """The query refuses to go on and names the file; when it is set to, it goes on with all but that file's rows."""

    def play(stage: Stage) -> str:
        first = fails_in_its_second_batch(stage)
        unread = _unread(stage)
        assert len(unread) >= 2, f"only {len(unread)} segments pend"
        path, rows = unread[place]
        damage(path)
        second = stage.run()
        assert second.cause.startswith("DataLossError: "), second.error
        assert path.name in second.cause, second.cause
        assert "failOnDataLoss=false" in second.cause, second.cause
        stage.options["failOnDataLoss"] = "false"
        stage.gives_up = True
        third = stage.complete(stage.run())
        missing = set(stage.sent) - set(stage.rows())
        assert missing == rows, f"{len(missing)} messages are missing, and {path.name} had {len(rows)}"
        return summary([first, second, *third])

    return play


def _unread(stage: Stage) -> list[tuple[Path, set[str]]]:
    """The segments whose rows are not in the table, in order, with those."""
    seen = set(stage.rows())
    found = [(path, _bodies(path)) for path in stage.wal_file("seg/*.arrow")]
    return [(path, rows) for path, rows in found if rows and not rows & seen]


def _bodies(path: Path) -> set[str]:
    if not path.stat().st_size:
        return set()
    table = pa.ipc.open_file(pa.BufferReader(path.read_bytes())).read_all()
    return {body.decode() for body in table.column("body").to_pylist()}


for _name, _damage in _DAMAGES.items():
    for _place, _number in _PLACES.items():
        for _receiver in ("driver", "executor"):
            if _receiver == "executor" and _place == "one in the middle":
                continue  # a batch has two parts
            add(
                Case(
                    f"{_receiver}: a segment that pends is {_name}: {_place}",
                    _receiver,
                    damaged(_damage, _number),
                    short=(_receiver, _name, _place) in _SHORT,
                )
            )
