"""The tables of options in docs/spark/options.md, written from redelivery.spark.options.table, which parsing reads."""

from __future__ import annotations

from typing import Final

from redelivery.spark.options.table import READ, READ_STREAM, WRITE, options_of

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
        parts.append(f"## {title}\n\n" + "\n".join(lines) + "\n")
    return "\n".join(parts)


def documentation(where: str) -> list[tuple[str, str, str]]:
    """Name, default (``required`` or ``none`` where there is none) and meaning of each option, for a table."""
    rows = []
    for option in options_of(where).values():
        default = (
            "required" if where in option.required else "none" if option.default is None else f"`{option.default}`"
        )
        name = f"`{option.name}`" + (f" (or `{option.alias}`)" if option.alias else "")
        meaning = f"`receiver={option.receiver}`: {option.meaning}" if option.receiver else option.meaning
        rows.append((name, default, meaning))
    return rows
