"""The end of a run in few lines: what was skipped, by reason, and what was tried again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest
from tests.run import again

_NOTES = pytest.StashKey[Counter[str]]()


def counted(config: pytest.Config) -> Counter[str]:
    """What was tried again up to now, in all processes."""
    return config.stash.setdefault(_NOTES, Counter())


def skipped(reports: Iterable[object]) -> list[str]:
    """One line for each reason, the most frequent first."""
    reasons = Counter(_reason(report) for report in reports)
    return [f"{number:5} skipped: {reason}" for reason, number in reasons.most_common()]


def _reason(report: object) -> str:
    reported = getattr(report, "longrepr", None)
    text = reported[2] if isinstance(reported, tuple) else str(reported)
    return text.removeprefix("Skipped: ").replace("\n", " ")


def write(terminal: pytest.TerminalReporter, config: pytest.Config) -> None:
    """What was skipped is shown before pytest's own short summary of what failed."""
    lines = skipped(terminal.stats.get("skipped", ()))
    if lines:
        terminal.section("what was skipped, and why")
        for line in lines:
            terminal.line(line)
    found = counted(config)
    if found:
        terminal.section("what was tried again")
        for kind, number in found.most_common():
            terminal.line(f"{number:5} {kind} (at most {again.BUDGET[kind]})")
        for line in again.too_many(found):
            terminal.line(line, red=True)
