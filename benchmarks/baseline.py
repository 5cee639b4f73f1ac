"""The commit that this tree is compared with, where nobody names one."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

from benchmarks.results import BenchmarkError

NEEDED: Final = tuple(f"benchmarks/{name}.py" for name in ("cpu", "in_thread", "in_amqp"))
# what a commit has to have: the benchmark of this tree runs on its sources, and those of before it are too different


def of_last_week(tree: Path) -> tuple[str, str]:
    """The newest commit that is a week old or, in a younger repository, the oldest one that has the benchmark.

    Returns:
        The commit, and a line that says which it is and why.

    Raises:
        BenchmarkError: there is none but the present one.
    """
    found = _git(tree, "rev-list", "-1", "--before=1.week", "HEAD")
    if found and _measures(tree, found):
        return found, f"against {_said(tree, found)}: the newest that is a week old"
    first = next((each for each in _git(tree, "rev-list", "--reverse", "HEAD").split() if _measures(tree, each)), None)
    if first is None or first == _git(tree, "rev-parse", "HEAD"):
        raise BenchmarkError(
            "no commit to compare with: none that has the benchmark is a week old, nor older than HEAD "
            "(a shallow clone has no others); name one by --against"
        )
    return first, f"against {_said(tree, first)}: none that has the benchmark is a week old, and this is the first"


def _measures(tree: Path, commit: str) -> bool:
    return len(_git(tree, "ls-tree", "--name-only", commit, "--", *NEEDED).split()) == len(NEEDED)


def _said(tree: Path, commit: str) -> str:
    return _git(tree, "log", "-1", "--format=%h of %cs", commit)


def _git(tree: Path, *arguments: str) -> str:
    """What it writes. Raises BenchmarkError: this is no repository, or has no commit."""
    done = subprocess.run(["git", "-C", str(tree), *arguments], capture_output=True, text=True, check=False)  # noqa: S603, S607  # fixed words
    if done.returncode:
        raise BenchmarkError(f"no commit to compare with: {done.stderr.strip()}")
    return done.stdout.strip()
