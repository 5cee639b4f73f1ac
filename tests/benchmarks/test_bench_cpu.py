"""The gate on processor time per message: what it measures, and what it calls slower."""

from __future__ import annotations

import re
import socket
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

pytest.importorskip("proton")

from benchmarks import cpu, cpu_page, cpu_record, in_amqp, in_loop, large, quiet, where
from benchmarks.cpu_record import Record
from benchmarks.in_thread import CASES
from benchmarks.results import BenchmarkError

LONG = pytest.mark.long_form
TREES = {"now": cpu.HERE, "one": Path("other"), "same": Path("other")}


@pytest.mark.parametrize("case", ["auto", *(pytest.param(each, marks=LONG) for each in list(CASES)[1:])])
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


def _record(**taken: Mapping[str, float]) -> Record:
    """Of all cases; a key has ``_`` for ``-``."""
    usual = {"main": 90.0, "again": 90.0, "spread": 0.1, "thread": 9.0, "bare": 5.2}
    found = {row.case: usual for row in cpu_page.ROWS}
    return Record({"cores": "2"}, 300, 1, found | {case.replace("_", "-"): each for case, each in taken.items()})


def _row(record: Record, case: str) -> list[str]:
    """Its cells on the page."""
    (title,) = (row.title for row in cpu_page.ROWS if row.case == case)
    (line,) = (each for each in cpu_page.page(record).splitlines() if each.startswith(f"| {title} |"))
    return [cell.strip() for cell in line.strip("|").split("|")]


@pytest.mark.long_form
def test_the_page_has_a_row_of_each_case_and_says_where_the_time_of_a_missed_one_goes() -> None:
    first = cpu_page.ROWS[0]
    (last,) = (row for row in cpu_page.ROWS if row.case == "amqp-send")
    found = cpu_page.take(first, 300, 1)
    record = _record(auto={**found, "asyncio": 2 * found["main"]}, amqp_send={**found, "thread": 1e6})
    record.profiles = {row.title: where.take(row.case, 300) for row in (first, last)}
    record.profiles[f"{first.title}, asyncio"] = where.take(first.case, 300, loop=True)
    head, _, goes = cpu_page.page(record).partition("## Where the time goes")
    assert [head.count(f"| {row.title} |") for row in cpu_page.ROWS] == [1] * len(cpu_page.ROWS)
    assert {row.case for row in cpu_page.ROWS} == {*CASES, *in_amqp.CASES}
    assert min(found[how] for how in ("main", "again", "thread", "asyncio", "bare")) > 0
    assert [goes.count(f"| {title} |") for title in (last.title, f"{first.title}, asyncio")] == [1, 1]
    assert all(0 < sum(share for _, _, share in each.functions) <= 1 for each in record.profiles.values())
    assert ".py:" in goes
    assert "benchmarks" not in goes


def test_each_row_that_misses_says_why() -> None:
    late = {"main": 9e5, "again": 9e5, "spread": 0.0, "thread": 9e5, "asyncio": 9e6}
    record = _record(**{row.case: late for row in cpu_page.ROWS})
    for row in cpu_page.ROWS:
        if row.floor is not None:
            record.taken[row.case] = {**record.taken[row.case], "bare": cpu_page.THERE[row.floor]}
    slow = list(cpu_page.slow({row: record.taken[row.case] for row in cpu_page.ROWS}))
    judged = [row for row in cpu_page.ROWS if row.target is not None]
    assert len(slow) == len(judged) + len(cpu_page.ROWS) - 1  # what properties add is not too much here
    record.profiles = {title: where.Where(3.0, [("a.py:b", 1.0, 0.5)]) for title, *_ in slow}
    page = cpu_page.page(record)
    for title, *_ in slow:
        (sentence,) = re.findall(rf"^- {re.escape(title)}: (.*?)\.\n(?! )", page, re.M | re.S)
        assert len(sentence.split()) > 10


LOOPS_OVER_AMQP = [pytest.param(case, marks=pytest.mark.long_form) for case in in_loop.CASES if "amqp" in case]


@pytest.mark.parametrize("case", ["auto-many", *LOOPS_OVER_AMQP])
def test_with_asyncio_lists_and_amqp_are_measured_too(case: str) -> None:
    assert min(in_loop.measure_loop(case, 100)) > 0


@pytest.mark.parametrize(("thread", "verdict"), [(44.0, "yes"), (46.0, "**no**")])
def test_over_amqp_what_a_thread_takes_counts(thread: float, verdict: str) -> None:
    record = _record(amqp_send={"main": 90.0, "again": 90.0, "spread": 0.1, "thread": thread})
    for row in cpu_page.ROWS:  # the bare loops take as long as where the targets were set
        if row.floor is not None:
            record.taken[row.case] = {**record.taken[row.case], "bare": cpu_page.THERE[row.floor]}
    assert _row(record, "amqp-send")[-1] == verdict


@pytest.mark.parametrize(("main", "verdict"), [(92.9, "yes (+2.9)"), (93.2, "**no** (+3.2)")])
def test_the_target_of_two_properties_is_of_what_they_add(main: float, verdict: str) -> None:
    record = _record(send_100_properties={"main": main, "again": main, "spread": 0.0, "thread": main})
    for row in cpu_page.ROWS:
        if row.floor is not None:
            record.taken[row.case] = {**record.taken[row.case], "bare": cpu_page.THERE[row.floor]}
    assert _row(record, "send-100-properties")[-3:] == ["+3", "+3.0", verdict]


@pytest.mark.parametrize(
    ("again", "verdict"), [(23.0, "not a measurement: main thread and again are 15% apart"), (20.0, "yes")]
)
def test_what_is_far_from_the_same_measurement_says_nothing_of_its_target(again: float, verdict: str) -> None:
    record = _record(commit_1={"main": 20.0, "again": again, "spread": 0.0, "thread": 20.0})
    assert _row(record, "commit-1")[-1] == verdict


def test_what_was_measured_is_read_again_and_judged_by_the_targets_of_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, page = tmp_path / "cpu.json", tmp_path / "cpu.md"
    record = _record()
    record.profiles[cpu_page.ROWS[0].title] = where.Where(3.0, [("a.py:b", 1.0, 0.5)])
    record.again["auto"] = "2026-01-02"
    record.write(file)
    assert cpu_record.read(file) == record
    monkeypatch.setattr(sys, "argv", ["cpu_page", "--judge", "--record", str(file), "--to", str(page)])
    cpu_page.main()
    assert page.read_text() == cpu_page.page(record)
    assert "auto (2026-01-02)" in page.read_text()
    assert cpu_record.read(file) == record


def test_a_row_that_is_measured_elsewhere_does_not_belong_on_the_page() -> None:
    with pytest.raises(BenchmarkError, match="with cores 2, this one is with 4"):
        _record().check({"cores": "4"}, 300, 1)


@pytest.mark.parametrize("case", ["amqp-auto", *(pytest.param(each, marks=LONG) for each in list(in_amqp.CASES)[1:])])
def test_every_case_over_amqp_runs_and_takes_time(case: str) -> None:
    assert min(in_amqp.measure(case, 500)) > 0


@pytest.mark.parametrize("way", large.WAYS.values())
def test_a_large_body_comes_whole(way: Callable[[socket.socket, int], object]) -> None:
    assert large.rate(lambda sock, size: _sized(way(sock, size), size), 1, 1) > 0


def _sized(body: object, size: int) -> None:
    assert len(body) == size  # type: ignore[arg-type]  # of any kind of body
