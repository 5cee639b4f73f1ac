"""docs/traces.md: the outcome of every scenario at every target, and why it differs where it does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from tests.traces.differences import FAULTS, REASONS, difference, missing
from tests.traces.scenario import Scenario, scenarios
from tests.traces.targets import TARGETS

PAGE = Path(__file__).parents[2] / "docs" / "traces.md"
EQUAL, DIFFERENT, EITHER, NOT_SHOWN = "=", "≠", "±", ""

_HEAD = """\
# What the Java clients do, and what we do

{recorded} scenarios were recorded with real Java clients (`tests/traces/data`); {played} of them can be expressed here.
Each is played at every target that has what it needs and compared with its recording: the order of events, what was
received, JMSRedelivered, JMSXDeliveryCount, delays, failing calls, and the messages left in the queues, dead letters
included (`tests/traces/compare.py`). Delays: never earlier than recorded minus 10 ms, later by at most 50 ms (at a real
broker, with its store, 250 ms) or 25 %.

Those of ActiveMQ's own client (OpenWire) are played over every protocol and broker; those of Qpid JMS (AMQP 1.0) over
AMQP on the broker that they were recorded on. Qpid JMS knows no delay and no limit of its own, so they are played
without a delay, and without a limit unless the scenario asks for one; outcomes of Qpid JMS for a message over the limit
are our dead-letter strategies.

This page is written by `.venv/bin/python scripts/trace-table` from a run; the tests hold every line of it.
`=` equal, `≠` different, `±` by chance either, empty: not played there.

"""
_NOTES = """
Over STOMP, and AMQP on RabbitMQ, the count of a message left in a queue cannot be read, only whether it was delivered
before. The own dead letters of ActiveMQ Classic and of the embedded broker (a NACK) carry no cause over STOMP; the
copies of a `SharedDeadLetterStrategy` do, so on Classic the scenarios with dead letters are played once more with it.
At the other targets dead letters are copies, in a queue of the scenario's own.
"""
_FAULTS = """
## Faults of the Java client that are not copied

The rule: order kept, nothing lost, nothing acknowledged that the application did not acknowledge, time-outs kept.
Each has a test of its own under the same number (`tests/traces/test_not_copied.py`).

| | the Java client | here |
|---|---|---|
"""


def stated(scenario: Scenario, target: str) -> str:
    """The cell that the table of differences claims."""
    if not TARGETS[target].plays(scenario):
        return NOT_SHOWN
    entry = difference(scenario, target)
    if entry is None:
        return EQUAL
    return EITHER if entry.chance else DIFFERENT


def page(cells: Mapping[tuple[str, str], str]) -> str:
    """The page for these outcomes, by scenario and target."""
    targets = TARGETS.values()
    played = [each for each in scenarios().values() if any(target.plays(each) for target in targets)]
    return "".join(
        (
            _HEAD.format(recorded=len(scenarios()), played=len(played)),
            _summary(cells),
            _NOTES,
            _faults(),
            _scenarios(played, cells),
            _left_out(),
        )
    )


def _summary(cells: Mapping[tuple[str, str], str]) -> str:
    lines = ["| target | equal | by chance either | different | not played |", "|---|---|---|---|---|"]
    for name, target in TARGETS.items():
        seen = Counter(cells[each, name] for each in scenarios())
        lines.append(f"| {target.title} | {seen[EQUAL]} | {seen[EITHER]} | {seen[DIFFERENT]} | {seen[NOT_SHOWN]} |")
    lines += ["", f"| reason of a difference | {' | '.join(TARGETS)} |", f"|---|{'---|' * len(TARGETS)}"]
    for why, text in REASONS.items():
        counts = " | ".join(str(_count(cells, target, why)) for target in TARGETS)
        lines.append(f"| {why}: {text} | {counts} |")
    return "\n".join(lines) + "\n"


def _count(cells: Mapping[tuple[str, str], str], target: str, why: str) -> int:
    entries = (difference(each, target) for each in scenarios().values() if cells[each.id, target] == DIFFERENT)
    return sum(entry is not None and entry.why == why for entry in entries)


def _faults() -> str:
    lines = [f"| {number} | {java} | {ours} |" for number, (java, ours) in FAULTS.items()]
    return _FAULTS + "\n".join(lines) + "\n"


def _scenarios(played: list[Scenario], cells: Mapping[tuple[str, str], str]) -> str:
    lines = [
        "",
        "## Scenarios",
        "",
        f"| scenario | {' | '.join(TARGETS)} | why, and what happens instead |",
        f"|---|{'---|' * len(TARGETS)}---|",
    ]
    for scenario in played:
        results = " | ".join(cells[scenario.id, target] for target in TARGETS)
        lines.append(f"| `{scenario.id}`: {_escaped(scenario.title)} | {results} | {_reasons(scenario)} |")
    return "\n".join(lines) + "\n"


def _reasons(scenario: Scenario) -> str:
    reasons: dict[str, list[str]] = {}
    for target in TARGETS:
        entry = difference(scenario, target) if TARGETS[target].plays(scenario) else None
        if entry is not None:
            why = f"fault {entry.fault}" if entry.fault else entry.why
            reasons.setdefault(f"{why}: {entry.instead}", []).append(target)
    shown = sum(TARGETS[target].plays(scenario) for target in TARGETS)
    return "; ".join(
        text if len(targets) == shown else f"{', '.join(targets)}: {text}" for text, targets in reasons.items()
    )


def _left_out() -> str:
    everywhere: dict[str, list[str]] = {}
    here: dict[tuple[str, str], list[str]] = {}
    for scenario in scenarios().values():
        why = missing(scenario)
        if why is not None:
            everywhere.setdefault(why, []).append(f"`{scenario.id}`")
            continue
        for name, target in TARGETS.items():
            needed = next((need for need in scenario.needs if need in target.cannot), None)
            if needed is not None:
                here.setdefault((name, target.cannot[needed]), []).append(f"`{scenario.id}`")
    lines = ["", "## Not played", "", "| at | because of | scenarios |", "|---|---|---|"]
    lines += [f"| all | {why} | {', '.join(names)} |" for why, names in everywhere.items()]
    lines += [f"| {name} | {why} | {', '.join(names)} |" for (name, why), names in here.items()]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "\\<")
