"""The options in docs/spark.md are those that parsing knows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.spark.option_page import BEGIN, END, PAGE, page, tables

from redelivery.spark.options.table import OPTIONS

SCRIPT = Path(__file__).parents[2] / "scripts" / "spark-options"


def test_the_page_is_as_the_script_writes_it() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page(text) == text, "run .venv/bin/python scripts/spark-options"


def test_every_option_stands_in_the_tables_with_its_default_and_meaning() -> None:
    text = tables()
    for option in OPTIONS:
        rows = [line for line in text.splitlines() if line.startswith(f"| `{option.name}`")]
        assert any(option.meaning in row for row in rows), option.name
        assert option.default is None or any(f"| `{option.default}` |" in row for row in rows), option.name


def test_what_stands_around_the_tables_is_kept() -> None:
    assert page(f"before\n{BEGIN}\nold\n{END}\nafter\n") == f"before\n{BEGIN}\n\n{tables()}\n{END}\nafter\n"


def test_a_page_without_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no <!-- options"):
        page(f"{END} {BEGIN}")


def test_the_script_writes_the_page(tmp_path: Path) -> None:
    output = tmp_path / "spark.md"
    done = subprocess.run(  # noqa: S603  # our own
        [sys.executable, str(SCRIPT), "--output", str(output)], capture_output=True, text=True, timeout=150
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert output.read_text(encoding="utf-8") == PAGE.read_text(encoding="utf-8")
