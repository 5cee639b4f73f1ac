"""Pyright sees the types of bodies as mypy does, which `make check` runs. In CI it must be there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BODIES = Path(__file__).with_name("bodies.py")


@pytest.mark.timeout(170)
def test_bodies_have_the_types_that_users_see() -> None:
    pyright = shutil.which("pyright", path=str(Path(sys.executable).parent)) or shutil.which("pyright")
    if pyright is None or shutil.which("node") is None:
        missing = "needs pyright, which the extra dev has, and Node.js"
        if os.environ.get("CI", "").lower() in {"1", "true"}:
            pytest.fail(missing)
        pytest.skip(missing)
    command = [pyright, "--pythonpath", sys.executable, str(BODIES)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=160, check=False)  # noqa: S603
    assert "0 errors" in done.stdout, done.stdout + done.stderr
