"""Programs that use Spark, run in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.run import again

from redelivery.cli.demo.spark import missing

SECONDS = 400.0  # of a test
_TRIES = 3
_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # half the CPU time of a JVM that ends soon


def needs_spark() -> None:
    """Skip the test where it cannot run; one line says what is missing."""
    reason = missing()
    if reason is not None:
        pytest.skip(f"needs {reason}")


def output(program: Path, *arguments: str) -> list[str]:
    """What it prints, when it succeeds.

    Run again where Spark was too slow. The interpreter's folder is the first on the PATH, as in an activated virtual
    environment.
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for _ in again.spark_tries(_TRIES):
        done = subprocess.run(  # noqa: S603  # our own
            [sys.executable, "-W", "error", str(program), *arguments],
            capture_output=True,
            text=True,
            timeout=SECONDS - 20,
            env={**os.environ, "PATH": path, "JAVA_TOOL_OPTIONS": _SHORT_LIVED},
        )
        if done.returncode == 0 or again.TOO_SLOW not in done.stderr:
            break
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()
