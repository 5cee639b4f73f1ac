"""The benchmarks run, and write what they measured. No time is asserted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("proton")

ROOT = Path(__file__).parents[2]
SHORTEST = ("--rounds", "1", "--scale", "0.01")


def bench(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", "--busy", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=150, check=False)  # noqa: S603  fixed words


def results_of(tmp_path: Path, *only: str) -> tuple[dict[str, Any], str]:
    """The JSON that was written, and the tables."""
    out = tmp_path / "results.json"
    chosen = [word for text in only for word in ("--only", text)]
    run = bench("--short", "--fake-only", *SHORTEST, *chosen, "--json", str(out))
    assert run.returncode == 0, run.stderr
    results: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return results, run.stdout


@pytest.mark.long_form
@pytest.mark.parametrize(("protocol", "own"), [("stomp", {"commit-10", "send-100"}), ("amqp", {"unread", "send-500"})])
def test_every_case_runs_and_its_ratios_are_written(tmp_path: Path, protocol: str, own: set[str]) -> None:
    results, tables = results_of(tmp_path, f"{protocol}/fake/")
    ratios = {each["key"]: each["ratios"] for each in results["comparisons"]}
    assert set(ratios) == {"auto", "individual", "dups-ok", "commit-1", "commit-100", "send"} | own
    assert {each["place"] for each in results["comparisons"]} == {f"{protocol}/fake"}
    assert all(ratio > 0 for each in ratios.values() for ratio in each.values())
    assert all(each["mine"]["cpu"] > 0 for each in results["comparisons"])
    assert not results["measures"]
    assert "commit every 100" in tables


@pytest.mark.long_form
def test_what_has_a_limit_of_its_own_is_measured(tmp_path: Path) -> None:
    results, tables = results_of(tmp_path, "peer", "body", "ledger", "timers")
    measured = {each["key"] for each in results["measures"]}
    assert {"stomp-body-text", "amqp-body-nul", "ledger-transacted", "lateness", "idle-amqp"} <= measured
    assert {"memory-stomp", "memory-amqp", "stomp-delivers", "amqp-confirms"} <= measured
    assert not results["comparisons"]
    assert "MB/s" in tables


def test_a_profile_names_our_functions_and_an_unknown_case_the_known_ones() -> None:
    run = bench("--scale", "0.02", "--profile", "amqp/auto")
    assert run.returncode == 0, run.stderr
    assert "receive" in run.stdout
    assert "µs per message without the profiler" in run.stdout
    unknown = bench("--profile", "amqp/nothing")
    assert unknown.returncode != 0
    assert "stomp/commit-100" in unknown.stderr
