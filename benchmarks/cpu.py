"""``python -m benchmarks.cpu``: processor time per message, and whether it has grown since another commit.

With ``--against COMMIT`` that commit runs twice, in turns with this tree: its two runs say how far the same code is
apart on this machine now. A case fails that is more than 10 % slower, is measured again, and is so once more.
``--against-last-week`` finds the commit; where there is none it fails.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.machine import HERE, BenchmarkError, check_quiet, in_process
from benchmarks.targets import MESSAGE

LIMIT: Final = 1.10
MESSAGES: Final = 20_000
ROUNDS: Final = 5
NEEDED: Final = "benchmarks/acting.py"  # a commit before it is too different for the benchmark of this tree
_BOTH: Final = ("one", "same")  # the other commit, twice

Taken = Mapping[str, Sequence[float]]  # microseconds by tree


def take(trees: Mapping[str, Path], case: str, messages: int, rounds: int) -> Taken:
    """Run each tree in turn, the one that begins changing from round to round."""
    taken: dict[str, list[float]] = {name: [] for name in trees}
    names = list(trees)
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            taken[name] += in_process(f"acting.measure({case!r}, {messages})", tree=trees[name])
    return taken


def line(case: str, taken: Taken) -> str:
    """Return least and median of this tree; beside another, how far from it, and how far that is from itself."""
    mine = taken["now"]
    text = f"{case:<24} {min(mine):7.2f} µs  median {median(mine):7.2f}"
    if "one" in taken:
        text += f"  x {growth(taken):5.2f}  the same code twice: x {min(taken['same']) / min(taken['one']):5.2f}"
    return text


def growth(taken: Taken) -> float:
    """Return how many times the time of the other commit this tree takes, by the slower of that one's two runs."""
    return min(taken["now"]) / max(min(taken[name]) for name in _BOTH)


def slower(trees: Mapping[str, Path], cases: Sequence[str], messages: int, rounds: int) -> list[str]:
    """Return the cases that are slower than allowed, twice; each is printed."""
    found = []
    for case in cases:
        for _ in range(2):
            taken = take(trees, case, messages, rounds)
            print(line(case, taken), flush=True)
            if "one" not in taken or growth(taken) <= LIMIT:
                break
        else:
            found.append(case)
    return found


def of_last_week(tree: Path) -> str:
    """Return the newest commit that is a week old or, where that has no such benchmark, the oldest one that has it.

    Raises:
        BenchmarkError: there is none but the present one.
    """
    measures = [line.split() for line in _git(tree, "log", "--format=%H", "--reverse", "--", NEEDED).splitlines()]
    week = _git(tree, "rev-list", "-1", "--before=1.week", "HEAD")
    if week and _git(tree, "ls-tree", "--name-only", week, "--", NEEDED):
        return week
    if not measures or measures[0][0] == _git(tree, "rev-parse", "HEAD"):
        raise BenchmarkError(
            "no commit to compare with: none that has the benchmark is a week old, nor older than HEAD "
            "(a shallow clone has no others); name one by --against"
        )
    return measures[0][0]


def _git(tree: Path, *arguments: str) -> str:
    """Return what it writes. Raises BenchmarkError: this is no repository, or has no commit."""
    done = subprocess.run(["git", "-C", str(tree), *arguments], capture_output=True, text=True, check=False)  # noqa: S603, S607  # fixed words
    if done.returncode:
        raise BenchmarkError(f"no commit to compare with: {done.stderr.strip()}")
    return done.stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cpu", description=__doc__)
    other_one = parser.add_mutually_exclusive_group()
    other_one.add_argument("--against", metavar="COMMIT", help="compare with it, and fail where this tree is slower")
    other_one.add_argument(
        "--against-last-week", action="store_true", help="the same with the newest commit that is a week old"
    )
    parser.add_argument("--only", action="append", choices=list(MESSAGE), help="only this case; repeatable")
    parser.add_argument("--messages", type=int, default=MESSAGES, help=f"of one run ({MESSAGES})")
    parser.add_argument("--busy", action="store_true", help="compare though other programs use the processors")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"runs of each ({ROUNDS})")
    options = parser.parse_args()
    cases = options.only or list(MESSAGE)
    against = options.against
    try:
        if options.against_last_week:
            against = of_last_week(HERE)
            print("against", _git(HERE, "log", "-1", "--format=%h of %cs", against), flush=True)
        if against is None:
            slower({"now": HERE}, cases, options.messages, options.rounds)
            return
        if not options.busy:
            check_quiet()
        with tempfile.TemporaryDirectory() as place:
            other = Path(place) / "other"
            _git(HERE, "worktree", "add", "--quiet", "--detach", str(other), against)
            try:
                trees = {"now": HERE, **dict.fromkeys(_BOTH, other)}
                found = slower(trees, cases, options.messages, options.rounds)
            finally:
                _git(HERE, "worktree", "remove", "--force", str(other))
    except BenchmarkError as error:
        sys.exit(f"benchmarks: {error}")
    if found:
        sys.exit(f"benchmarks: more than {LIMIT - 1:.0%} slower than {against}, twice: {', '.join(found)}")


if __name__ == "__main__":
    main()
