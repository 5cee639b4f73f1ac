"""``python -m benchmarks.cpu``: processor time per message, and whether it has grown since another commit.

With ``--against COMMIT`` that commit runs twice, in turns with this tree: its two runs say how far the same code is
apart on this machine now. A case fails that is more than 10 % slower, is measured again, and is so once more.
``--against-last-week`` finds the commit; where there is none it fails.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks import baseline, in_amqp, quiet
from benchmarks.in_thread import CASES, OBSERVED
from benchmarks.results import BenchmarkError

HERE: Final = Path(__file__).resolve().parent.parent
LIMIT: Final = 1.10
MESSAGES: Final = 20_000
ROUNDS: Final = 5
_BOTH: Final = ("one", "same")  # the other commit, twice

Taken = Mapping[str, Sequence[float]]  # microseconds by tree


def run_once(tree: Path, case: str, messages: int) -> list[float]:
    """In a process of its own, with the sources of that tree and the benchmark of this one."""
    module = "in_amqp" if case in in_amqp.CASES else "in_thread"
    code = f"import json; from benchmarks.{module} import measure; print(json.dumps(measure({case!r}, {messages})))"
    path = os.pathsep.join((str(tree / "src"), str(HERE)))
    done = subprocess.run(  # noqa: S603  # ourselves
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": path},
        cwd=HERE,
        stdout=subprocess.PIPE,
        text=True,
        timeout=300,
        check=True,
    )
    found: list[float] = json.loads(done.stdout.splitlines()[-1])
    return found


def take(trees: Mapping[str, Path], case: str, messages: int, rounds: int) -> Taken:
    """Each tree in turn, the one that begins changing from round to round."""
    taken: dict[str, list[float]] = {name: [] for name in trees}
    names = list(trees)
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            taken[name] += run_once(trees[name], case, messages)
    return taken


def line(case: str, taken: Taken) -> str:
    """Least and median of this tree; beside another, how far from it, and how far that is from itself."""
    mine = taken["now"]
    text = f"{case:<20} {min(mine):7.2f} µs  median {median(mine):7.2f}"
    if "one" in taken:
        text += f"  x {growth(taken):5.2f}  the same code twice: x {min(taken['same']) / min(taken['one']):5.2f}"
    return text


def growth(taken: Taken) -> float:
    """How many times the processor time of the other commit this tree takes, by the slower of that one's two runs."""
    return min(taken["now"]) / max(min(taken[name]) for name in _BOTH)


def slower(trees: Mapping[str, Path], cases: Sequence[str], messages: int, rounds: int) -> list[str]:
    """The cases that are slower than allowed, twice; each is printed."""
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


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cpu", description=__doc__)
    other_one = parser.add_mutually_exclusive_group()
    other_one.add_argument("--against", metavar="COMMIT", help="compare with it, and fail where this tree is slower")
    other_one.add_argument(
        "--against-last-week", action="store_true", help="the same with the newest commit that is a week old"
    )
    parser.add_argument(
        "--only", action="append", choices=[*CASES, *in_amqp.CASES, *OBSERVED], help="only this case; repeatable"
    )
    parser.add_argument("--messages", type=int, default=MESSAGES, help=f"of one run ({MESSAGES})")
    parser.add_argument("--busy", action="store_true", help="compare though other programs use the processors")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"runs of each ({ROUNDS})")
    options = parser.parse_args()
    cases = options.only or [*CASES, *in_amqp.CASES]
    trees = {"now": HERE}
    against = options.against
    try:
        if options.against_last_week:
            against, which = baseline.of_last_week(HERE)
            print(which, flush=True)
        if against is not None and not options.busy:
            quiet.check()
    except BenchmarkError as error:
        sys.exit(f"benchmarks: {error}")
    if against is None:
        slower(trees, cases, options.messages, options.rounds)
        return
    with tempfile.TemporaryDirectory() as place:
        other = Path(place) / "other"
        git = ["git", "-C", str(HERE), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(other), against], check=True)  # noqa: S603
        try:
            found = slower({**trees, **dict.fromkeys(_BOTH, other)}, cases, options.messages, options.rounds)
        finally:
            subprocess.run([*git, "remove", "--force", str(other)], check=True)  # noqa: S603
    if found:
        sys.exit(f"benchmarks: more than {LIMIT - 1:.0%} slower than {against}, twice: {', '.join(found)}")


if __name__ == "__main__":
    main()
