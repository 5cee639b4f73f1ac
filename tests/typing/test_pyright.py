"""Pyright sees the types of bodies as mypy does, which `make check` runs."""

from __future__ import annotations

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
        pytest.skip("needs pyright and Node.js: pip install pyright")
    command = [pyright, "--pythonpath", sys.executable, str(BODIES)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=160, check=False)  # noqa: S603
    assert "0 errors" in done.stdout, done.stdout + done.stderr
