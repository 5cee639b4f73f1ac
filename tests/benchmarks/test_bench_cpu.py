"""The gate on processor time per message: what it measures, and what it calls slower."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from benchmarks import cpu, cpu_page, in_amqp, large, quiet, where
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


def test_the_page_has_a_row_of_each_case_and_says_where_the_time_of_a_missed_one_goes() -> None:
    taken = {row: {"main": 90.0, "again": 90.0, "spread": 0.1, "thread": 9.0} for row in cpu_page.ROWS}
    first, last = cpu_page.ROWS[0], cpu_page.ROWS[-1]
    taken[first] = cpu_page.take(first, 300, 1)
    profiles = {row.title: where.take(row.case, 300) for row in (first, last)}
    profiles[f"{first.title}, asyncio"] = where.take(first.case, 300, loop=True)
    text = cpu_page.page(taken, profiles, {"cores": "2"}, 300, 1)
    head, _, goes = text.partition("## Where the time goes")
    assert [head.count(f"| {row.title} |") for row in cpu_page.ROWS] == [1] * len(cpu_page.ROWS)
    assert {row.case for row in cpu_page.ROWS} == {*CASES, *in_amqp.CASES}
    assert min(taken[first][how] for how in ("main", "again", "thread", "asyncio", "bare")) > 0
    assert [goes.count(f"| {title} |") for title in profiles] == [1, 1, 1]
    assert all(0 < sum(share for _, _, share in each.functions) <= 1 for each in profiles.values())
    assert ".py:" in goes
    assert "benchmarks" not in goes


def test_over_amqp_what_a_thread_takes_counts() -> None:
    row = next(row for row in cpu_page.ROWS if row.case == "amqp-send")
    found = {"main": 90.0, "again": 90.0, "thread": 44.0}
    assert (cpu_page.reached(row, found, 1.0), cpu_page.reached(row, found, 0.9)) == (True, False)


@pytest.mark.parametrize("case", list(in_amqp.CASES))
def test_every_case_over_amqp_runs_and_takes_time(case: str) -> None:
    assert min(in_amqp.measure(case, 500)) > 0


@pytest.mark.parametrize("way", large.WAYS.values())
def test_a_large_body_comes_whole(way: Callable[[socket.socket, int], object]) -> None:
    assert large.rate(lambda sock, size: _sized(way(sock, size), size), 1, 1) > 0


def _sized(body: object, size: int) -> None:
    assert len(body) == size  # type: ignore[arg-type]  # of any kind of body
