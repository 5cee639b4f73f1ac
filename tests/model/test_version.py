"""The version: of the installed package, and of a source that is not installed."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import version
from pathlib import Path

import redelivery

ROOT = Path(__file__).parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


def test_it_is_pyprojects() -> None:
    assert redelivery.__version__ == version("redelivery") == VERSION
    assert f'_SOURCE: Final = "{VERSION}"' in (ROOT / "model/version.py").read_text()


def test_it_is_there_in_a_zip(tmp_path: Path) -> None:
    archive = tmp_path / "redelivery.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        packed.write(ROOT / "src/redelivery/__init__.py", "redelivery/__init__.py")
        for name in ("__init__.py", "version.py"):
            packed.write(ROOT / "model" / name, f"redelivery/model/{name}")
    code = f"import sys; sys.path[:0] = [{str(archive)!r}]; import redelivery; print(redelivery.__version__)"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, timeout=150)  # noqa: S603
    assert (done.stdout.strip(), done.stderr) == (VERSION, "")
