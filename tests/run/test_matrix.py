"""scripts/matrix: which interpreters and which oldest dependencies it takes."""

from __future__ import annotations

import runpy
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "matrix"


@pytest.fixture
def matrix() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


def test_the_oldest_dependencies_are_the_lower_bounds_of_the_library_not_of_its_tools(matrix: dict[str, Any]) -> None:
    oldest = list(matrix["oldest"]())
    assert "stomp.py==9" in oldest
    assert "python-qpid-proton==0.40" in oldest
    assert not any(each.startswith(("ruff", "mypy", "hypothesis", "moto")) for each in oldest)


def test_every_python_of_the_classifiers_is_in_the_matrix(matrix: dict[str, Any]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    stated = {each.rpartition(" ")[2] for each in project["classifiers"] if "Python :: 3." in each}
    assert stated <= set(matrix["PYTHONS"])


def test_a_python_that_is_not_there_is_said_and_fails_where_all_are_asked_for(
    matrix: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(matrix["main"].__globals__, "interpreter", lambda _: None)
    for arguments, code in (([], 0), (["--all-pythons"], 1)):
        monkeypatch.setattr(sys, "argv", ["matrix", "--python", "3.14", *arguments])
        assert matrix["main"]() == code
        assert "3.14: not found" in capsys.readouterr().out
