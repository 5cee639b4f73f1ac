"""The tables of options in docs/spark.md, written from redelivery.spark.options.table, which parsing reads."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from redelivery.spark.options.table import READ, READ_STREAM, WRITE, documentation

PAGE: Final = Path(__file__).parents[2] / "docs" / "spark.md"
BEGIN: Final = "<!-- options: written by scripts/spark-options -->"
END: Final = "<!-- end of the options -->"
_TITLES: Final = {
    READ_STREAM: "`spark.readStream`: consume",
    READ: "`spark.read`: browse",
    WRITE: "`df.write` and `df.writeStream`: send",
}


def tables() -> str:
    """All three, each below a heading."""
    parts = []
    for where, title in _TITLES.items():
        rows = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in documentation(where)]
        lines = ["| option | default | means |", "|---|---|---|", *(f"| {row} |" for row in rows)]
        parts.append(f"### {title}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def page(text: str) -> str:
    """The page with its tables as they should be. Raises ValueError: the markers are not there."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"there is no {BEGIN} followed by {END}")
    return f"{before}{begin}\n\n{tables()}\n{end}{after}"
