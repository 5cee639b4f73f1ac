"""The gate on processor time per message: what it measures, and what it calls slower."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from benchmarks import cpu, cpu_page, quiet
from benchmarks.in_thread import CASES
from benchmarks.results import BenchmarkError

TREES = {"now": cpu.HERE, "one": Path("other"), "same": Path("other")}


@pytest.mark.parametrize("case", list(CASES))
def test_every_case_runs_and_takes_time(case: str) -> None:
    parts = cpu.run_once(cpu.HERE, case, 500)
    assert len(parts) == 5
    assert min(parts) > 0


def _takes(monkeypatch: pytest.MonkeyPatch, *now: float) -> list[str]:
    """The cases that count as slower, where this tree takes so much in each measurement, and the other one 10 µs."""
    times = iter(now)

    def take(trees: Mapping[str, Path], case: str, messages: int, rounds: int) -> cpu.Taken:  # noqa: ARG001
        return {"now": [next(times)], "one": [10.0], "same": [9.6]}

    monkeypatch.setattr(cpu, "take", take)
    return cpu.slower(TREES, ["auto"], 100, 1)


def test_what_is_slower_twice_fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert _takes(monkeypatch, 11.5, 11.2) == ["auto"]
    assert "the same code twice: x  0.96" in capsys.readouterr().out


@pytest.mark.parametrize("now", [(10.9,), (11.5, 10.9), (8.0,)])
def test_what_is_slower_once_or_within_the_limit_passes(
    monkeypatch: pytest.MonkeyPatch, now: tuple[float, ...]
) -> None:
    assert _takes(monkeypatch, *now) == []


def test_without_another_commit_nothing_is_slower(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "take", lambda *_: {"now": [99.0]})
    assert cpu.slower({"now": cpu.HERE}, ["auto"], 100, 1) == []


@pytest.mark.parametrize(("busy", "refused"), [(10, False), (50, True)])
def test_busy_processors_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, busy: int, refused: bool) -> None:
    stat = tmp_path / "stat"
    stat.write_text("cpu  100 0 0 1000 0 0 0 0 0 0\ncpu0 1 2 3\n")
    monkeypatch.setattr(quiet, "_STAT", stat)
    monkeypatch.setattr(time, "sleep", lambda _: stat.write_text(f"cpu  {100 + busy} 0 0 {1100 - busy} 0 0 0 0 0 0\n"))
    if refused:
        with pytest.raises(BenchmarkError, match="use 50% of the processors"):
            quiet.check()
    else:
        quiet.check()


def test_the_page_has_a_row_of_each_case() -> None:
    taken = {row: cpu_page.take(row, 300, 1) for row in cpu_page.ROWS}
    text = cpu_page.page(taken, {"cores": "2"}, 300, 1)
    assert [text.count(f"| {row.title} |") for row in cpu_page.ROWS] == [1] * len(cpu_page.ROWS)
    assert {row.case for row in cpu_page.ROWS} == set(CASES)
    assert min(value for found in taken.values() for value in found.values()) > 0
