"""The pages of docs/brokers: each broker has its page, and each row names a test that exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "brokers"
PAGES = sorted(FOLDER.glob("*.md"))
UNTESTED = "seen, no test"
SERVICES = {"amazon-mq"}  # that run these brokers, and have no dialect of their own


@cache
def functions_of(path: str) -> frozenset[str]:
    functions = ast.parse((ROOT / path).read_text(encoding="utf-8")).body
    return frozenset(each.name for each in functions if isinstance(each, ast.FunctionDef))


def rows(page: Path) -> list[str]:
    """The last cell of each row, which names the tests."""
    lines = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    return [line.removesuffix(" |").rpartition(" | ")[2] for line in lines if not line.endswith(" | test |")]


def test_each_broker_that_has_a_dialect_has_its_page() -> None:
    dialects = {
        path.stem
        for path in (ROOT / "transports" / "dialects").glob("*.py")
        if re.search(r"^DIALECT\b", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert {page.stem for page in PAGES} - SERVICES == dialects - {"unknown"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_each_row_names_tests_that_exist(page: Path) -> None:
    assert rows(page)
    missing = []
    for cell in rows(page):
        named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", cell)
        assert named or cell == UNTESTED, cell
        missing += [f"{path}::{test}" for path, test in named if test not in functions_of(path)]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_page_is_linked_from_the_guide_and_the_explanation(page: Path) -> None:
    for where in ("guide/brokers.md", "explanation/brokers-in-short.md"):
        assert f"(../brokers/{page.name})" in (ROOT / "docs" / where).read_text(encoding="utf-8"), where
