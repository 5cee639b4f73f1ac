"""What docs/soak.md and docs/load.md have in common: runs of one pair in a process of its own, and their tables."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tests.conformance.pairs import KINDS
from tests.conformance.soak.memory import MEGABYTE

_HOME: Final = Path(__file__).parents[2]


def run(test: str, pair: str, **environment: str) -> bool:
    """Whether this file of tests passes on the pair. It prints how the run ended."""
    variables = {
        **os.environ,
        **environment,
        "REDELIVERY_PAIRS": pair,
        "REDELIVERY_REQUIRE_BROKERS": str(KINDS[pair].broker or ""),
    }
    # Without `no:logging` pytest keeps what is logged.
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:logging", test]
    done = subprocess.run(command, cwd=_HOME, env=variables, check=False, capture_output=True, text=True)  # noqa: S603  # our own tests
    print(f"== {pair}: exit code {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-2000:]}", flush=True)
    return done.returncode == 0


def used(row: Mapping[str, Any]) -> list[str]:
    """Cells: memory in MB, descriptors, threads, each as it was measured one time after the other."""
    units = {"memory": MEGABYTE, "descriptors": 1, "threads": 1}
    return [" → ".join(f"{each[kind] / unit:.0f}" for each in row["used"]) for kind, unit in units.items()]


def table(rows: Iterable[Sequence[object]]) -> str:
    """The rows of a table in Markdown."""
    return "".join(f"| {' | '.join(map(str, cells))} |\n" for cells in rows)
