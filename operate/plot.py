"""A simulation as a picture: lines for a terminal, PNG or SVG by matplotlib."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Final

from redelivery.model.errors import ConfigError
from redelivery.operate.simulate import Simulation
from redelivery.policies.files.durations import time_text, time_unit

KINDS: Final = (".png", ".svg")
_SHOWN: Final = 40  # attempts of a picture
_COLOURS: Final = {"first": "#555555", "client": "#1f77b4", "broker": "#d62728"}


def as_text(simulated: Simulation, width: int = 60) -> str:
    """One line for each attempt: a dot where it is, dashes where collision avoidance can move it."""
    attempts = simulated.attempts[:_SHOWN]
    end = max(attempts[-1].most, 0.001)

    def column(seconds: float) -> int:
        return min(round(seconds / end * (width - 1)), width - 1)

    lines = [f"{simulated.rules.destination} ({simulated.rules.broker}), 0 to {time_text(end)}"]
    for each in attempts:
        row = [" "] * width
        for at in range(column(each.least), column(each.most) + 1):
            row[at] = "-"
        row[column(each.at)] = {"first": "o", "client": "c", "broker": "B"}[each.by]
        lines.append(f"{each.number:>4} |{''.join(row)}| {time_text(each.at)}")
    lines.append(f"     {_end(simulated)}")
    lines.append("     o first delivery, c redelivered by the client, B redelivered by the broker")
    return "\n".join(lines)


def _end(simulated: Simulation) -> str:
    """Say what comes behind the attempts that are drawn."""
    if simulated.total is None:
        return "and so on, without an end"
    more = simulated.total - len(simulated.attempts[:_SHOWN])
    if not more:
        return f"then {simulated.ends}"
    last = simulated.attempts[-1]
    when = f", the last after {time_text(last.at)}" if last.number == simulated.total else ""
    return f"and {more} more attempts that are not drawn{when}; then {simulated.ends}"


def save(simulated: Simulation, path: str | PathLike[str]) -> None:
    """Write the picture. An SVG is the same for the same simulation, and has the drawing in lines as its description.

    Raises:
        ConfigError: the name ends neither in .png nor in .svg, matplotlib is not installed, or it cannot be written.
    """
    path = Path(path)
    if path.suffix.lower() not in KINDS:
        raise ConfigError(f"{path}: the name of a picture ends in {' or '.join(KINDS)}")
    try:
        from matplotlib import rc_context
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ConfigError("a picture needs matplotlib: pip install matplotlib; the terminal needs nothing") from error
    drawn = simulated.attempts[:_SHOWN]
    figure = Figure(figsize=(9, 0.3 * len(drawn) + 1.5))
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    size, unit = time_unit(drawn[-1].most)
    for each in drawn:
        axes.hlines(each.number, each.least / size, each.most / size, colors=_COLOURS[each.by], alpha=0.4, linewidth=6)
        axes.plot(each.at / size, each.number, "o", color=_COLOURS[each.by])
    axes.set_ylim(len(drawn) + 0.5, 0.5)  # from top to bottom
    axes.set_yticks(range(1, len(drawn) + 1))
    axes.set_xlabel(f"{'seconds' if unit == 's' else unit} after the first delivery")
    axes.set_ylabel("attempt")
    title = f"{simulated.rules.destination} ({simulated.rules.broker}), {_end(simulated)}"
    axes.set_title(title, fontsize=9, wrap=True)
    shown = {each.by for each in drawn}
    for by, colour in ((by, colour) for by, colour in _COLOURS.items() if by in shown):
        axes.plot([], [], "o", color=colour, label="first delivery" if by == "first" else f"redelivered by the {by}")
    axes.legend(fontsize=8)
    figure.tight_layout()
    # Without the date, and with names of its parts that are not drawn at random.
    metadata = {"Description": as_text(simulated), "Date": None} if path.suffix.lower() == ".svg" else None
    try:
        with rc_context({"svg.hashsalt": "redelivery"}):
            figure.savefig(path, metadata=metadata)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from error
