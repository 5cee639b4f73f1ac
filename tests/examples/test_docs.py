"""Every Python block of the README and the guides runs as written, on the embedded broker, and prints what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.examples.snippets import ROOT, Section, sections
from tests.examples.with_spark import SECONDS, needs_spark, output

PAGES = ("README.md", "docs/guide.md", "docs/spark.md")
SECTIONS = [section for page in PAGES for section in sections(page)]
_LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def named(section: Section) -> str:
    return f"{section.page}: {section.title}"


@pytest.mark.parametrize("section", [section for section in SECTIONS if not section.needs_spark], ids=named)
def test_section_runs_as_written(section: Section, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in section.blocks:
        if block.is_test:
            passes(block.code, tmp_path)
            continue
        block.run(namespace)
        assert capsys.readouterr().out.splitlines() == block.shown, f"{block.page}:{block.line}"


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize("section", [section for section in SECTIONS if section.needs_spark], ids=named)
def test_section_with_spark_runs_as_written(section: Section, tmp_path: Path) -> None:
    needs_spark()
    path = tmp_path / "section.py"
    path.write_text(section.program, encoding="utf-8")
    assert output(path) == [shown for block in section.blocks for shown in block.shown]


def passes(code: str, folder: Path) -> None:
    """A block that is a test file: pytest runs it by itself."""
    path = folder / "test_block.py"
    path.write_text(code, encoding="utf-8")
    run = subprocess.run(  # noqa: S603  # our own page
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", str(path)],
        capture_output=True,
        text=True,
        timeout=50,
        cwd=folder,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert re.search(r"\d+ passed", run.stdout), run.stdout


@pytest.mark.parametrize("page", [*PAGES, "CONTRIBUTING.md", "CHANGELOG.md"])
def test_links_lead_somewhere(page: str) -> None:
    path = ROOT / page
    missing = [link for link in _LINK.findall(path.read_text(encoding="utf-8")) if not (path.parent / link).exists()]
    assert missing == []


def test_the_pages_have_sections_to_run() -> None:
    assert {section.page for section in SECTIONS} == set(PAGES)


def test_the_example_of_the_readme_has_about_twenty_lines() -> None:
    first = next(section for section in SECTIONS if section.page == "README.md").blocks[0]
    assert len(first.code.splitlines()) <= 25
