"""The end of a run: what was skipped, in one line or by reason, and what was tried again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest
from tests.run import again

_SHOWN = 3  # reasons
_NOTES = pytest.StashKey[Counter[str]]()


def counted(config: pytest.Config) -> Counter[str]:
    """What was tried again up to now, in all processes."""
    return config.stash.setdefault(_NOTES, Counter())


def skipped(reports: Iterable[object]) -> list[str]:
    """One line for each reason, the most frequent first."""
    return [f"{number:5} skipped: {reason}" for reason, number in _reasons(reports)]


def in_a_line(reports: Iterable[object]) -> str:
    """How many tests were skipped, and the most frequent reasons."""
    reasons = _reasons(reports)
    shown = "; ".join(f"{reason} ({number})" for reason, number in reasons[:_SHOWN])
    more = f"; {len(reasons) - _SHOWN} other reasons, which -rs shows" if reasons[_SHOWN:] else ""
    return f"{sum(number for _, number in reasons)} skipped: {shown}{more}"


def _reasons(reports: Iterable[object]) -> list[tuple[str, int]]:
    return Counter(map(_reason, reports)).most_common()


def _reason(report: object) -> str:
    reported = getattr(report, "longrepr", None)
    lines = (reported[2] if isinstance(reported, tuple) else str(reported)).removeprefix("Skipped: ").splitlines()
    return " ".join(lines[:1] + lines[1:][-1:])  # of a broker that did not start the last word of its log


def write(terminal: pytest.TerminalReporter, config: pytest.Config, *, at_length: bool) -> None:
    """What was skipped is shown before pytest's own short summary; ``at_length``: with a line for each reason."""
    reports = terminal.stats.get("skipped", ())
    if reports and not at_length:
        terminal.line(in_a_line(reports))
    elif reports:
        terminal.section("what was skipped, and why")
        for line in skipped(reports):
            terminal.line(line)
    found = counted(config)
    if found:
        terminal.section("what was tried again")
        for kind, number in found.most_common():
            terminal.line(f"{number:5} {kind} (at most {again.BUDGET[kind]})")
        for line in again.too_many(found):
            terminal.line(line, red=True)
