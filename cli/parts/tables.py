"""Columns: at a terminal as wide as it is, in a pipe as wide as what is in them, so that a name is never broken."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from redelivery.cli.parts.shown import CUT, visible


def print_table(
    names: Sequence[str], rows: Sequence[Sequence[object]], narrow: Sequence[str] = (), *, numbers: int = 1
) -> None:
    """Print rows under the names of their columns; so many of them, from the first on, are numbers.

    ``narrow``: columns that a terminal of fewer than 120 columns leaves out, and that are not broken.
    """
    texts = [[visible(each, CUT) for each in row] for row in rows]
    if not sys.stdout.isatty():
        lines = [list(names), *texts]
        widths = [max(cell_len(row[at]) for row in lines) for at in range(len(names))]
        for row in lines:
            padded = [_padded(each, widths[at], right=at < numbers) for at, each in enumerate(row)]
            print("  ".join(padded).rstrip())
        return
    console = Console()
    shown = [at for at, name in enumerate(names) if console.width >= 120 or name not in narrow]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for at in shown:
        whole = at < numbers or names[at] in narrow
        table.add_column(names[at], justify="right" if at < numbers else "left", overflow="fold", no_wrap=whole)
    for row in texts:
        table.add_row(*(Text(row[at]) for at in shown))  # not markup: others wrote it
    console.print(table)


def _padded(text: str, width: int, *, right: bool) -> str:
    gap = " " * (width - cell_len(text))
    return gap + text if right else text + gap
