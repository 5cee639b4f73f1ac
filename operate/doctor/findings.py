"""The findings of the doctor."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, TypeAlias

from redelivery.operate.shown import number_of, visible
from redelivery.policies.brokers.rules import DestinationRules
from redelivery.policies.files.places import Unread

LOST: Final = "messages that fail are lost without a trace"
Level: TypeAlias = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong or risky.

    ``level``: an ``error`` loses messages or stops the work; a ``warning`` may. ``check``: its name. ``what``: the
    fact; ``why``: how it hurts, in a sentence; ``do``: what to do.
    """

    level: Level
    check: str
    what: str
    why: str
    do: str

    def __str__(self) -> str:
        return f"{self.level}: {self.what}\n  why: {self.why}\n  do:  {self.do}"


@dataclass(frozen=True, slots=True)
class Report:
    """``broker``: what was reached, or "". ``findings``: errors first. ``unchecked``: what was not, and why.

    ``config``: the file, where nothing but that was asked for. ``not_read``: what of it decides, and is not modelled.
    """

    broker: str
    findings: tuple[Finding, ...]
    unchecked: tuple[str, ...] = field(default=())
    config: str = ""
    not_read: tuple[Unread, ...] = ()

    @property
    def failed(self) -> bool:
        """True: a finding is an error."""
        return any(each.level == "error" for each in self.findings)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "broker": self.broker or None,
            "config": self.config or None,
            "findings": [asdict(each) for each in self.findings],
            "unchecked": list(self.unchecked),
            "not_read": [each.as_dict() for each in self.not_read],
            "failed": self.failed,
        }

    def __str__(self) -> str:
        errors = sum(each.level == "error" for each in self.findings)
        numbers = f"{number_of(errors, 'error')}, {number_of(len(self.findings) - errors, 'warning')}"
        lines = [f"{self.broker or self.config or 'no broker'}: {numbers}"]
        reasons: dict[tuple[Level, str, str], list[Finding]] = {}  # many queues, one reason
        for each in self.findings:
            reasons.setdefault((each.level, each.why, each.do), []).append(each)
        for (level, why, do), alike in reasons.items():
            lines += [*(f"{level}: {each.what}" for each in alike), f"  why: {why}", f"  do:  {do}"]
        unchecked = (f"not checked: {each}" for each in self.unchecked)
        found = (*lines, *unchecked, *(each.line for each in self.not_read))
        return "\n".join(map(visible, found))  # a name of a queue can have ends of lines


def without_limit(title: str, do: str) -> Finding:
    """Return the finding that a message is redelivered for ever."""
    what = f"{title}: a message is redelivered without a limit"
    why = "one message that can never be processed is tried for ever, and what comes after it may wait"
    return Finding("warning", "no-limit", what, why, do)


def removed(title: str, rules: DestinationRules, given_up: str, do: str) -> Finding:
    """Return the finding that a message that failed is removed; ``given_up``: when, where clients alone give up."""
    when = given_up if rules.counts == "give-ups" else f"after {rules.maximum} {rules.counts}"
    what = f"{title}: a message is removed {when} ({rules.removed_because})"
    return Finding("error", "removed", what, LOST, do)


def in_order(findings: list[Finding]) -> tuple[Finding, ...]:
    """Errors first, each once."""
    return tuple(sorted(dict.fromkeys(findings), key=lambda each: each.level))
