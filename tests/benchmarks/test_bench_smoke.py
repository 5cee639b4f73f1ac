"""The benchmarks run, and write what they measured. No time is asserted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_case_runs_and_its_ratios_are_written(tmp_path: Path) -> None:
    out = tmp_path / "results.json"
    command = [sys.executable, "-m", "benchmarks", "--short", "--rounds", "1", "--scale", "0.01", "--json", str(out)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=55, check=False)  # noqa: S603  fixed words
    assert run.returncode == 0, run.stderr
    results = json.loads(out.read_text(encoding="utf-8"))
    ratios = {each["key"]: each["ratios"] for each in results["comparisons"]}
    assert set(ratios) == {"auto", "individual", "dups-ok", "commit-1", "commit-100", "send", "send-100"}
    assert all(ratio > 0 for each in ratios.values() for ratio in each.values())
    measured = {each["key"] for each in results["measures"]}
    assert {"body-text", "ledger-transacted", "lateness", "idle-stomp", "memory", "peer-delivers"} <= measured
    assert "commit every 100" in run.stdout
