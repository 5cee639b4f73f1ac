"""The machine that is measured on: its facts, whether it is quiet, and measurements in processes of their own."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).resolve().parents[1]
DATE: Final = "date"  # the only fact in which two runs may differ
MOST: Final = 0.15  # of all processors, that other programs may use
_STAT: Final = Path("/proc/stat")
_PACKAGES: Final = {"stomp.py": "stomp.py", "proton": "python-qpid-proton", "pyspark": "pyspark", "pyarrow": "pyarrow"}


class BenchmarkError(Exception):
    """A run that did not do its work: its time means nothing."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds by the wall, and of this process's processors; None: it ran elsewhere."""

    seconds: float
    cpu: float | None


class Stopwatch:
    """Runs from the moment it is made."""

    def __init__(self) -> None:
        self._cpu = time.process_time()
        self._start = time.perf_counter()

    def stop(self) -> Spent:
        """Return what was spent so far."""
        seconds = time.perf_counter() - self._start
        return Spent(seconds, time.process_time() - self._cpu)


def facts() -> dict[str, str]:
    """Return what the numbers depend on, and the date."""
    found = {
        "cores": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
    }
    for name, package in _PACKAGES.items():
        with suppress(PackageNotFoundError):
            found[name] = version(package)
    return {**found, DATE: f"{datetime.now(UTC):%Y-%m-%d}"}


def check_same(then: Mapping[str, object], now: Mapping[str, object]) -> None:
    """Raise BenchmarkError where numbers of two machines, or of longer and shorter runs, would be on one page."""
    for fact in sorted((then.keys() & now.keys()) - {DATE}):
        if then[fact] != now[fact]:
            raise BenchmarkError(
                f"the complete run was with {fact} {then[fact]}, this one is with {now[fact]}: "
                "their numbers do not belong on one page"
            )


def check_quiet(seconds: float = 2.0) -> None:
    """Raise BenchmarkError where other programs are at work; where the system does not say, nothing happens."""
    if not _STAT.exists():
        return
    idle, whole = _ticks()
    time.sleep(seconds)
    then_idle, then_whole = _ticks()
    used = 1 - (then_idle - idle) / max(1, then_whole - whole)
    if used > MOST:
        raise BenchmarkError(
            f"other programs use {used:.0%} of the processors, and up to {MOST:.0%} is free enough: "
            "stop them, or pass --busy and believe the ratios only"
        )


def _ticks() -> tuple[int, int]:
    """Return the idle ticks of all processors together, and all ticks, since the system began (proc(5))."""
    numbers = [int(each) for each in _STAT.read_text().split("\n", 1)[0].split()[1:9]]
    return numbers[3] + numbers[4], sum(numbers)


def in_process(call: str, *, tree: Path = HERE, timeout: float = 300) -> Any:
    """Return what ``module.function(arguments)`` of this folder does, in a process of its own with the tree's sources.

    Raises:
        BenchmarkError: it failed.
    """
    module = call.partition("(")[0].rpartition(".")[0]
    done = subprocess.run(  # noqa: S603  # ourselves
        [sys.executable, "-c", f"import json, benchmarks.{module}; print(json.dumps(benchmarks.{call}))"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(tree / "src"), str(HERE)))},
        cwd=HERE,
        stdout=subprocess.PIPE,
        text=True,
        timeout=timeout,
        check=False,
    )
    if done.returncode:
        raise BenchmarkError(f"{call} ended with {done.returncode}")
    return json.loads(done.stdout.splitlines()[-1])
