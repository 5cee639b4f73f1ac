"""The version: one place says it, also for a source that is not installed."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import redelivery
from redelivery.model.version import VERSION

ROOT = Path(__file__).parents[2]


def test_it_is_said_in_one_place() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "redelivery.model.version.VERSION"}
    assert redelivery.__version__ == VERSION
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", VERSION)


def test_it_is_there_in_a_zip(tmp_path: Path) -> None:
    archive = tmp_path / "redelivery.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.write(ROOT / "src/redelivery/__init__.py", "redelivery/__init__.py")
        for name in ("__init__.py", "version.py"):
            packed.write(ROOT / "model" / name, f"redelivery/model/{name}")
    code = f"import sys; sys.path[:0] = [{str(archive)!r}]; import redelivery; print(redelivery.__version__)"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, timeout=150)  # noqa: S603
    assert (done.stdout.strip(), done.stderr) == (VERSION, "")
