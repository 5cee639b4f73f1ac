"""docs/seeds.md is what scripts/promises-table writes, and each promise that a test names exists."""

from __future__ import annotations

import runpy
from pathlib import Path

from tests.promises.promises import PROMISES

ROOT = Path(__file__).parents[2]
TABLE = runpy.run_path(str(ROOT / "scripts" / "promises-table"))


def test_each_promise_that_a_test_names_exists() -> None:
    assert set(TABLE["tests_of_promises"]()) <= set(PROMISES)


def test_the_page_is_up_to_date() -> None:
    assert (ROOT / "docs" / "seeds.md").read_text(encoding="utf-8") == TABLE["page"](), "run scripts/promises-table"
