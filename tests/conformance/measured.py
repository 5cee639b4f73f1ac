"""What the tables of docs/soak.md and docs/load.md have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tests.conformance.soak.memory import MEGABYTE


def used(row: Mapping[str, Any]) -> list[str]:
    """Cells: memory in MB, descriptors, threads, each as it was measured one time after the other."""
    units = {"memory": MEGABYTE, "descriptors": 1, "threads": 1}
    return [" → ".join(f"{each[kind] / unit:.0f}" for each in row["used"]) for kind, unit in units.items()]


def table(rows: Iterable[Sequence[object]]) -> str:
    """The rows of a table in Markdown."""
    return "".join(f"| {' | '.join(map(str, cells))} |\n" for cells in rows)
