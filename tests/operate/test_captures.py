"""What docs/guide/configuration.md shows is what the commands print and draw."""

from __future__ import annotations

import runpy
from html import unescape
from pathlib import Path

from redelivery.operate import plot

ROOT = Path(__file__).parents[2]


def test_the_captures_are_what_the_commands_print() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "policy-captures"))
    page = (ROOT / "docs" / "guide" / "configuration.md").read_text(encoding="utf-8")
    assert page == script["page"](), "run scripts/policy-captures"


def test_the_picture_is_of_what_is_simulated_now() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "policy-captures"))
    picture = unescape(script["PICTURE"].read_text(encoding="utf-8"))
    assert plot.as_text(script["pictured"]()) in picture, "run scripts/policy-captures"
    page = (ROOT / "docs" / "guide" / "configuration.md").read_text(encoding="utf-8")
    assert f"(files/{script['PICTURE'].name})" in page
