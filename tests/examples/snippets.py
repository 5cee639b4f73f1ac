"""Reads the Python blocks of a Markdown page.

Conventions of our pages, held by test_docs.py:

- Each section (``##``) is one program: its blocks run in order in one namespace, and a section needs no other one.
- ``print(…)  # -> text`` shows what it prints, as written there; ``…`` stands for what differs from run to run.
- A block with ``def test_`` is a file for pytest.
- A section that imports pyspark runs on the Spark of all tests, in the long form in a process of its own.
- A block may begin with ```` ```python activemq ````: the words behind ``python`` say what the section needs, which a
  fixture of test_docs.py provides. ``file=examples/x.py``: the block is that file, which its own test runs.
- A block that begins with ```` ```console ````, and what it needs, has commands behind ``$`` and what they print; it is
  run between the others of its section (console.py).
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
    needs: str = ""
    language: str = "python"

    @property
    def is_console(self) -> bool:
        return self.language == "console"

    @property
    def is_test(self) -> bool:
        return re.search(r"^def test_", self.code, re.MULTILINE) is not None

    @property
    def shown(self) -> list[str]:
        """What the page says that it prints."""
        return [text.strip() for text in _SHOWN.findall(self.code)]

    @property
    def file(self) -> str | None:
        """The file that it shows, from the root."""
        return self.needs.removeprefix("file=") if self.needs.startswith("file=") else None

    def is_shown(self, printed: list[str]) -> bool:
        """Whether this is what it prints, line by line."""
        return shows(self.shown, printed)

    def run(self, namespace: dict[str, object]) -> None:
        """Execute it; a traceback names the page and its line."""
        exec(compile("\n" * (self.line - 1) + self.code, self.page, "exec", dont_inherit=True), namespace)  # noqa: S102  # our own page


def shows(texts: list[str], printed: list[str]) -> bool:
    """Whether these lines, in which ``…`` stands for anything, are what is printed."""
    patterns = [".*".join(re.escape(part) for part in text.split("…")) for text in texts]
    return len(patterns) == len(printed) and all(
        re.fullmatch(pattern, line.rstrip()) for pattern, line in zip(patterns, printed, strict=True)
    )


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
    def needs(self) -> str:
        """What must be provided for it to run; empty for nothing."""
        needs = {block.needs for block in self.blocks if not block.file} - {""}
        assert len(needs) <= 1, f"{self.page}, {self.title}: a section needs one thing, not {sorted(needs)}"
        return needs.pop() if needs else ""

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
    title, blocks, code, start, needs, language = "top", list[Block](), list[str](), 0, "", ""
    for number, line in enumerate((ROOT / page).read_text(encoding="utf-8").splitlines(), 1):
        if start:
            if line.startswith("```"):
                blocks.append(Block(page, start, "\n".join(code) + "\n", needs, language))
                start = 0
            else:
                code.append(line)
        elif line.partition(" ")[0] in ("```python", "```console"):
            code, start, needs = [], number + 1, line.partition(" ")[2].strip()
            language = line.partition(" ")[0].removeprefix("```")
        elif line.startswith("## "):
            if blocks:
                yield Section(page, title, tuple(blocks))
            title, blocks = line[3:].strip(), []
    assert not start, f"{page}:{start}: this block has no end"
    if blocks:
        yield Section(page, title, tuple(blocks))
