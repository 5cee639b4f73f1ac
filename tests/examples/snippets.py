"""Reads the Python blocks of a Markdown page.

Conventions of our pages, held by test_docs.py:

- Each section (``##``) is one program: its blocks run in order in one namespace, and a section needs no other one.
- ``print(…)  # -> text`` shows what it prints, as written there.
- A block with ``def test_`` is a file for pytest.
- A section that imports pyspark runs in a process of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_SHOWN = re.compile(r"# -> (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """One fenced block; ``line`` is where its first line stands in the page, counted from 1."""

    page: str
    line: int
    code: str

    @property
    def is_test(self) -> bool:
        return re.search(r"^def test_", self.code, re.MULTILINE) is not None

    @property
    def shown(self) -> list[str]:
        """What the page says that it prints."""
        return [text.strip() for text in _SHOWN.findall(self.code)]

    def run(self, namespace: dict[str, object]) -> None:
        """Execute it; a traceback names the page and its line."""
        exec(compile("\n" * (self.line - 1) + self.code, self.page, "exec"), namespace)  # noqa: S102  # our own page


@dataclass(frozen=True)
class Section:
    """What stands below one heading."""

    page: str
    title: str
    blocks: tuple[Block, ...]

    @property
    def needs_spark(self) -> bool:
        return any("pyspark" in block.code for block in self.blocks)

    @property
    def program(self) -> str:
        """All blocks, each line where it stands in the page."""
        lines: list[str] = []
        for block in self.blocks:
            lines += [""] * (block.line - 1 - len(lines))
            lines += block.code.splitlines()
        return "\n".join(lines) + "\n"


def sections(page: str) -> Iterator[Section]:
    """The sections of a page (path from the root) that have Python blocks."""
    title, blocks, code, start = "top", list[Block](), list[str](), 0
    for number, line in enumerate((ROOT / page).read_text(encoding="utf-8").splitlines(), 1):
        if start:
            if line.startswith("```"):
                blocks.append(Block(page, start, "\n".join(code) + "\n"))
                start = 0
            else:
                code.append(line)
        elif line == "```python":
            code, start = [], number + 1
        elif line.startswith("## "):
            if blocks:
                yield Section(page, title, tuple(blocks))
            title, blocks = line[3:].strip(), []
    assert not start, f"{page}:{start}: this block has no end"
    if blocks:
        yield Section(page, title, tuple(blocks))
