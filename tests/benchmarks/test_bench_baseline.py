"""The commit with which a night compares the processor time of a message."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from benchmarks import baseline, cpu
from benchmarks.results import BenchmarkError


def git(tree: Path, *arguments: str, days: float = 0) -> str:
    """``days``: so long ago."""
    date = f"{datetime.now(UTC) - timedelta(days=days):%Y-%m-%dT%H:%M:%S+00:00}"
    names = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **names, "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    command = ["git", "-C", str(tree), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=150, check=True)  # noqa: S603  # fixed words
    return done.stdout.strip()


def commit(tree: Path, days: float, *files: str) -> str:
    """With these files, and what was there."""
    for name in files:
        (tree / name).parent.mkdir(exist_ok=True)
        (tree / name).write_text(f"{days}")
    git(tree, "add", ".")
    git(tree, "commit", "--allow-empty", "-m", "x", days=days)
    return git(tree, "rev-parse", "HEAD")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet")
    return tmp_path


def test_the_newest_commit_that_is_a_week_old_is_taken(tree: Path) -> None:
    commit(tree, 9, *baseline.NEEDED)
    wanted = commit(tree, 8)
    commit(tree, 6)
    found, line = baseline.of_last_week(tree)
    assert found == wanted
    assert wanted[:7] in line
    assert "the newest that is a week old" in line


@pytest.mark.parametrize("first", [3, 30], ids=["younger than a week", "a week old, without the benchmark"])
def test_where_none_is_old_enough_it_is_the_first_that_has_the_benchmark(tree: Path, first: float) -> None:
    commit(tree, first, baseline.NEEDED[0])
    wanted = commit(tree, 2, *baseline.NEEDED)
    commit(tree, 1)
    found, line = baseline.of_last_week(tree)
    assert found == wanted
    assert "this is the first" in line


@pytest.mark.parametrize("files", [(), baseline.NEEDED], ids=["none has the benchmark", "only HEAD"])
def test_where_there_is_none_it_says_so_and_fails(
    tree: Path, files: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(tree, 2)
    commit(tree, 1, *files)
    with pytest.raises(BenchmarkError, match=r"no commit to compare with.*--against"):
        baseline.of_last_week(tree)
    monkeypatch.setattr(cpu, "HERE", tree)
    monkeypatch.setattr(sys, "argv", ["cpu", "--against-last-week", "--busy"])
    with pytest.raises(SystemExit, match="no commit to compare with"):
        cpu.main()


def test_a_folder_that_is_not_a_repository_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(BenchmarkError, match="no commit to compare with"):
        baseline.of_last_week(tmp_path)


def test_the_commit_that_was_found_is_checked_out_and_compared(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(tree, 2, *baseline.NEEDED)
    commit(tree, 1, *baseline.NEEDED)
    seen = []

    def take(trees: dict[str, Path], *_: object) -> cpu.Taken:
        seen.append({name: (path / baseline.NEEDED[0]).read_text() for name, path in trees.items()})
        return {name: [20.0 if name == "now" else 10.0] for name in trees}

    monkeypatch.setattr(cpu, "HERE", tree)
    monkeypatch.setattr(cpu, "take", take)
    monkeypatch.setattr(sys, "argv", ["cpu", "--against-last-week", "--busy", "--only", "auto"])
    with pytest.raises(SystemExit, match=r"slower than .* twice: auto"):
        cpu.main()
    assert seen == [{"now": "1", "one": "2", "same": "2"}] * 2
    assert capsys.readouterr().out.startswith("against ")
