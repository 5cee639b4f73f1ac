"""Options, runs of tests and pages of the scripts that write pages: a page is written, or only checked.

`--check` writes nothing: the exit code is 1 where a page of docs/ is not what its script makes of the code and, if it
is a record of a run, of the numbers that stand there. `make check` checks every page.
"""

from __future__ import annotations

import argparse
import difflib
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

HOME: Final = Path(__file__).resolve().parents[1]
DOCS: Final = HOME / "docs"
SHOWN: Final = 12  # lines of a difference
sys.path.insert(0, str(HOME))  # scripts import tests.… and benchmarks.… of this checkout


def options(text: str | None, output: Path | None = None) -> argparse.ArgumentParser:
    """`--check`, and `--output` where there is one page."""
    parser = argparse.ArgumentParser(description=(text or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 where the page is another")
    if output is not None:
        parser.add_argument("--output", type=Path, default=output)
    return parser


def deliver(pages: Mapping[Path, str], *, check: bool = False) -> int:
    """Write the pages that have changed, or say which have; the exit code."""
    code = 0
    for path, text in pages.items():
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        if not check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"{path} written")
        elif old != text:
            code = 1
            lines = difflib.unified_diff(
                old.splitlines(), text.splitlines(), str(path), "what is written", "", "", 0, ""
            )
            print(f"{path} is not what {sys.argv[0]} writes:", *list(lines)[:SHOWN], sep="\n", file=sys.stderr)
    return code


def between(page: str, begin: str, end: str, text: str) -> str:
    """The page with this text between its two marks. Raises ValueError: they are not there."""
    before, first, rest = page.partition(begin)
    _, last, after = rest.partition(end)
    if not first or not last:
        raise ValueError(f"there is no {begin.strip()} followed by {end.strip()}")
    return f"{before}{begin}{text}{end}{after}"


def passes(*arguments: str, environment: Mapping[str, str], quiet: bool = False) -> bool:
    """Return True: pytest passes with these arguments. ``quiet``: the end of what it prints is enough."""
    command = [sys.executable, "-m", "pytest", *arguments]
    variables = {**os.environ, "REDELIVERY_FORM": "all", **environment}
    done = subprocess.run(command, cwd=HOME, env=variables, check=False, capture_output=quiet, text=True)  # noqa: S603  # our own tests
    if quiet:
        name = variables.get("REDELIVERY_PAIRS", arguments[-1])
        print(f"== {name}: exit code {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-2000:]}", flush=True)
    return done.returncode == 0


def on_pairs(pairs: Iterable[str]) -> dict[str, str]:
    """The environment in which tests run on these pairs only, and fail without their brokers."""
    from tests.conformance.pairs import KINDS

    pairs = list(pairs)
    brokers = {KINDS[pair].broker for pair in pairs} - {None}
    return {"REDELIVERY_PAIRS": ",".join(pairs), "REDELIVERY_REQUIRE_BROKERS": ",".join(sorted(map(str, brokers)))}


def each_pair(
    test: str,
    pairs: Iterable[str],
    variable: str,
    records: Path | None,
    environment: Mapping[str, str],
    together: int = 1,
) -> tuple[bool, list[str]]:
    """Run a file of tests on each pair in a process of its own; whether all passed, and the lines that they recorded.

    ``variable``: names them the file of records: ``records``, of which all lines count, or a temporary one.
    """
    with TemporaryDirectory() as folder:
        file = (records or Path(folder) / "records").resolve()

        def run(pair: str) -> bool:
            given = {**environment, **on_pairs([pair]), variable: str(file)}
            # Without `no:logging` pytest keeps what is logged.
            return passes("-q", "-n", "0", "-p", "no:logging", test, environment=given, quiet=True)

        with ThreadPoolExecutor(together) as pool:
            good = all(list(pool.map(run, pairs)))
        return good, file.read_text(encoding="utf-8").splitlines() if file.exists() else []
