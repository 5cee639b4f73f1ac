"""What both views of the demo have: a picture that lives below what was printed, and the last word of a summary."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich import box
from rich.console import Console, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.text import Text


class Picture(ABC):
    """Draws on ``console``; a context manager, which leaves the last picture behind.

    It is drawn as soon as this is made, so that a view makes its own part first.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._ended = False
        self._live = Live(console=console, get_renderable=self._picture, refresh_per_second=12)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended = True
        self._live.stop()

    @abstractmethod
    def _picture(self) -> RenderableType:
        """What it is now; asked on a thread of its own."""


def panel(inside: RenderableType, title: str, style: str) -> Panel:
    """It in a frame."""
    return Panel(inside, title=title, title_align="left", box=box.ROUNDED, border_style=style)


def summary_panel(text: Text, problems: Sequence[str], fine: str, seconds: float) -> Panel:
    """The counts in ``text``, and whether they add up; ``fine``: what that means."""
    if problems:
        text.append("✘ it does not add up:", "bold red")
        for problem in problems:
            text.append(f"\n  {problem}", "red")
    else:
        text.append(f"✔ it adds up: {fine}", "bold green")
        text.append(f"   {seconds:.1f} s", "dim")
    return panel(text, "summary", "red" if problems else "green")
