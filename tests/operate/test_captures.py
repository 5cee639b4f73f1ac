"""What docs/guide/configuration.md shows is what the commands print."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.long_form
def test_the_captures_are_what_the_commands_print() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "policy-captures"))
    page = (ROOT / "docs" / "guide" / "configuration.md").read_text(encoding="utf-8")
    assert page == script["page"](), "run scripts/policy-captures"
