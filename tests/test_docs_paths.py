"""Every file and folder of this repository that a document names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Records of runs: they name files as they were called then, and nobody edits them by hand.
MEASURED = {ROOT / f"docs/{name}.md" for name in ("benchmarks", "conformance", "faults", "spark-faults", "traces")}
MEASURED |= set((ROOT / "docs" / "traces").glob("*.md"))
PAGES = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")} - MEASURED)
FOLDERS = "|".join(sorted(path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")))
# A file by its ending, a folder by its slash: `client/core.py`, `docs/brokers/`.
NAMED = re.compile(rf"(?<![\w./:*-])((?:{FOLDERS})/(?:[\w-]+/)*(?:[\w-]+\.(?:py|md|txt|csv)\b|(?![\w.*<…-])))")
LONGEST = 120  # lines of DESIGN.md


def named(text: str) -> set[str]:
    return set(NAMED.findall(text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_path_exists(page: Path) -> None:
    assert [path for path in sorted(named(page.read_text(encoding="utf-8"))) if not (ROOT / path).exists()] == []


def test_paths_are_found_where_they_are() -> None:
    text = 'A rule is in `client/ledger/`, a fact in ["transports/x/y.py<br>more"], see [x](docs/spark.md), `s3://docs/a.py`.'
    assert named(text) == {"client/ledger/", "transports/x/y.py", "docs/spark.md"}


def test_the_design_stays_short() -> None:
    assert len((ROOT / "DESIGN.md").read_text(encoding="utf-8").splitlines()) <= LONGEST
