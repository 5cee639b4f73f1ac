"""A simulation as a picture: lines for a terminal, PNG or SVG by matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from redelivery.model.errors import ConfigError
from redelivery.operate.simulate import Simulation

KINDS: Final = (".png", ".svg")
_SHOWN: Final = 40  # attempts of a picture
_COLOURS: Final = {"first": "#555555", "client": "#1f77b4", "broker": "#d62728"}


def as_text(simulated: Simulation, width: int = 60) -> str:
    """One line for each attempt: a dot where it is, dashes where collision avoidance can move it."""
    attempts = simulated.attempts[:_SHOWN]
    end = max(attempts[-1].most, 0.001)

    def column(seconds: float) -> int:
        return min(round(seconds / end * (width - 1)), width - 1)

    lines = [f"{simulated.rules.destination} ({simulated.rules.broker}), 0 to {end:.6g} s"]
    for each in attempts:
        row = [" "] * width
        for at in range(column(each.least), column(each.most) + 1):
            row[at] = "-"
        row[column(each.at)] = {"first": "o", "client": "c", "broker": "B"}[each.by]
        lines.append(f"{each.number:>4} |{''.join(row)}| {each.at:.6g} s")
    more = simulated.total is None or simulated.total > len(attempts)
    lines.append("     (and so on)" if more else f"     then {simulated.ends}")
    lines.append("     o first delivery, c redelivered by the client, B redelivered by the broker")
    return "\n".join(lines)


def save(simulated: Simulation, path: Path) -> None:
    """Write the picture. An SVG is the same for the same simulation, and has the drawing in lines as its description.

    Raises:
        ConfigError: the name ends neither in .png nor in .svg, matplotlib is not installed, or it cannot be written.
    """
    if path.suffix.lower() not in KINDS:
        raise ConfigError(f"{path}: the name of a picture ends in {' or '.join(KINDS)}")
    try:
        from matplotlib import rc_context
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ConfigError("a picture needs matplotlib: pip install matplotlib; the terminal needs nothing") from error
    figure = Figure(figsize=(9, 0.3 * min(len(simulated.attempts), _SHOWN) + 1.5))
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for each in simulated.attempts[:_SHOWN]:
        axes.hlines(each.number, each.least, each.most, colors=_COLOURS[each.by], alpha=0.4, linewidth=6)
        axes.plot(each.at, each.number, "o", color=_COLOURS[each.by])
    axes.invert_yaxis()
    axes.set_xlabel("seconds after the first delivery")
    axes.set_ylabel("attempt")
    axes.set_title(f"{simulated.rules.destination} ({simulated.rules.broker}), then {simulated.ends}", fontsize=9)
    shown = {each.by for each in simulated.attempts[:_SHOWN]}
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
