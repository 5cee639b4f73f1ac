"""`docs/conf.py`: the site loads nothing from another host, draws its diagrams, and breaks no word in a table."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "docs" / "images" / "mermaid"
DRAWINGS = re.findall(r"```mermaid\n(.*?)\n```", (ROOT / "DESIGN.md").read_text(encoding="utf-8"), re.DOTALL)


def picture(drawing: str) -> str:
    return f"{hashlib.sha256(drawing.encode()).hexdigest()[:12]}.svg"


def built(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    """A site of one page, as `make docs` builds that of this repository."""
    pytest.importorskip("sphinx", reason="needs the extra docs")
    docs = folder / "docs"
    docs.mkdir(exist_ok=True)
    (docs / "index.md").write_text(f"# A page\n\n{text}\n", encoding="utf-8")
    shutil.copytree(PICTURES, docs / "images" / "mermaid", dirs_exist_ok=True)
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-n",
        "-W",
        "-c",
        str(ROOT / "docs"),
        str(folder),
        str(folder / "out"),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)  # noqa: S603


def test_each_diagram_of_the_design_has_its_picture_and_no_other_is_kept() -> None:
    assert sorted(map(picture, DRAWINGS)) == sorted(file.name for file in PICTURES.iterdir()), (
        "scripts/mermaid-pictures"
    )


def test_a_diagram_is_a_picture_and_a_name_breaks_at_its_joints(tmp_path: Path) -> None:
    names = "| a | b |\n|---|---|\n| `createTextMessage(text)` | `redelivery_policy=` |"
    done = built(tmp_path, f"```mermaid\n{DRAWINGS[0]}\n```\n\n{names}\n\n[elsewhere](https://example.org/a)")
    assert (done.returncode, done.stderr) == (0, "")
    page = (tmp_path / "out" / "docs" / "index.html").read_text(encoding="utf-8")
    assert f'src="../_images/{picture(DRAWINGS[0])}"' in page
    assert "create<wbr>Text<wbr>Message<wbr>(text)" in page
    assert "redelivery_<wbr>policy=" in page
    assert 'href="https://example.org/a"' in page  # a link is not loaded


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "![a badge](https://example.org/a.svg)",
            "loaded from another host: {'docs/index.html': 'https://example.org/a.svg'}",
        ),
        (
            "```mermaid\nflowchart TD\n  new --> diagram\n```",
            "this diagram has no picture: run scripts/mermaid-pictures",
        ),
    ],
)
def test_what_a_browser_would_fetch_elsewhere_fails_the_build(tmp_path: Path, text: str, why: str) -> None:
    done = built(tmp_path, text)
    assert done.returncode != 0
    assert why in done.stderr
