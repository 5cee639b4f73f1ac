"""The demo on a terminal, in a log, or for a program."""

from __future__ import annotations

from time import monotonic
from typing import Final, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.syntax import Syntax
from rich.text import Text

from redelivery.cli.demo.story import StoryStep
from redelivery.cli.parts.shown import as_json as to_json
from redelivery.cli.parts.shown import visible

_SIGNS: Final = {
    "to come": ("·", "dim"),
    "sent": ("●", "dim"),
    "working": ("▸", "bold cyan"),
    "waiting": ("↻", "bold yellow"),
    "processed": ("✔", "green"),
    "dead": ("✘", "bold red"),
}


class View:
    """Shows steps; a context manager, which leaves the last picture behind.

    As a line of JSON each, as plain lines, or, where ``console`` is a terminal, as these above a live picture: every
    order with its state, and what goes on.
    """

    def __init__(self, console: Console, *, as_json: bool = False) -> None:
        self._console, self._as_json = console, as_json
        self._states: dict[str, str] = {}
        self._now: tuple[float, StoryStep] | None = None
        self._ends: list[RenderableType] = []
        self._live = Live(console=console, get_renderable=self._picture, refresh_per_second=12)

    def __call__(self, step: StoryStep) -> None:
        """Shows one step."""
        if self._as_json:
            print(to_json({"event": step.event, **step.fields}), flush=True)
        elif not self._console.is_terminal:
            if step.text:
                print(visible(step.text, lines=True), flush=True)
        else:
            self._draw(step)

    def _draw(self, step: StoryStep) -> None:
        text = Text(visible(step.text, lines=True), step.style)
        if step.title:
            code = Syntax(f"\n{step.code}", "python", theme="ansi_dark", background_color="default")
            panel = Panel(Group(text, code) if step.code else text, title=step.title, title_align="left")
            if self._live.is_started:
                self._ends.append(panel)
            else:
                self._console.print(panel)
        elif step.text:
            self._console.print(text, no_wrap=True, overflow="ellipsis")
        self._states.update(dict.fromkeys(step.fields.get("orders", ()), "to come"))
        if step.state:
            self._states[step.fields["order"]] = step.state
        if step.now:
            self._now = monotonic(), step
        self._live.start()
        self._live.refresh()

    def _picture(self) -> RenderableType:
        """The picture as it is now; asked on a thread of its own."""
        if self._now is None:
            return Group(*self._ends)
        since, step = self._now
        gone, seconds = monotonic() - since, step.seconds or 0.0
        board = Text("\n")
        for order, state in list(self._states.items()):  # a copy: the other thread changes it
            sign, style = _SIGNS[state]
            board.append(f"{order}\u00a0{sign}  ", style)
        now = Text(step.now.format(gone=gone, left=max(0.0, seconds - gone)), "cyan", no_wrap=True, overflow="ellipsis")
        return Group(board, now, ProgressBar(seconds, gone, width=30) if seconds else Text(), *self._ends)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._now = None
        self._live.stop()
