"""docs/traces: the outcome of every scenario at every target as data, and by broker what differs, and why."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.traces.differences import ELSEWHERE, FAULTS, REASONS, Difference, differences, missing
from tests.traces.scenario import Scenario, scenarios
from tests.traces.targets import TARGETS

from redelivery.testing.brokers.specs import SPECS

FOLDER = Path(__file__).parents[2] / "docs"
EQUAL, DIFFERENT, EITHER, NOT_PLAYED = "equal", "different", "either", "not played"
Cells = Mapping[tuple[str, str], str]  # outcomes by scenario and target

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

[traces.csv](traces.csv) has one line for each scenario and target, and one for each further reason where an outcome has
several. The pages of the brokers tell what differs there and why. All of it is written by `make nightly`
(`.venv/bin/python scripts/trace-table`) from a run; the tests hold every line of it.

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
Scenarios hold them, which stand under the same number on the brokers' pages, and where none shows one, other tests: {}.

| | the Java client | here |
|---|---|---|
"""


def stated(scenario: Scenario, target: str) -> str:
    """The outcome that the table of differences claims."""
    if not TARGETS[target].plays(scenario):
        return NOT_PLAYED
    entries = differences(scenario, target)
    if not entries:
        return EQUAL
    return EITHER if entries[0].chance else DIFFERENT


def files(cells: Cells) -> Mapping[Path, str]:
    """Every file of the documentation for these outcomes."""
    pages = {FOLDER / "traces" / f"{broker}.md": _page(broker, cells) for broker in _brokers()}
    return {FOLDER / "traces.md": _index(cells), FOLDER / "traces.csv": _data(cells), **pages}


def _index(cells: Cells) -> str:
    played = [each for each in scenarios().values() if any(target.plays(each) for target in TARGETS.values())]
    lines = ["| target | equal | randomly either | different | not played |", "|---|---|---|---|---|"]
    for name, target in TARGETS.items():
        seen = Counter(cells[each, name] for each in scenarios())
        numbers = " | ".join(str(seen[outcome]) for outcome in (EQUAL, EITHER, DIFFERENT, NOT_PLAYED))
        lines.append(f"| [{target.title}](traces/{_broker(name)}.md) | {numbers} |")
    elsewhere = ", ".join(f"{number} `{path}`" for number, path in ELSEWHERE.items())
    faults = [f"| {number} | {java} | {ours} |" for number, (java, ours) in FAULTS.items()]
    head = _HEAD.format(recorded=len(scenarios()), played=len(played))
    return "".join((head, _text(lines), _NOTES, _FAULTS.format(elsewhere), _text(faults), _left_out_everywhere()))


def _data(cells: Cells) -> str:
    """One line for each outcome, and for each further reason of it."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("scenario", "title", "target", "outcome", "reason", "what happens instead"))
    for scenario in scenarios().values():
        for target in TARGETS:
            outcome = cells[scenario.id, target]
            reasons = [(_label(each), each.instead) for each in differences(scenario, target)]
            if outcome == NOT_PLAYED:
                reasons = [("not played", _why_not_played(scenario, target))]
            for reason in reasons or [("", "")]:
                writer.writerow((scenario.id, scenario.title, target, outcome, *reason))
    return text.getvalue()


def _page(broker: str, cells: Cells) -> str:
    """What differs at the targets of a broker, by reason; and what is not played there."""
    targets = [name for name in TARGETS if _broker(name) == broker]
    title = SPECS[broker].title if broker in SPECS else "The embedded broker"
    lines = [
        f"# {title}: where scenarios differ from the Java client, and why",
        "",
        "Written by `make nightly`; [traces.md](../traces.md) tells how scenarios are played and compared, and numbers",
        "the faults. Where an outcome has several reasons, the scenario stands under each of them.",
        "",
    ]
    for why, text in REASONS.items():
        rows = [row for row in _rows(targets, cells) if row[0] == why]
        if rows:
            lines += [f"## {why[0].upper()}{why[1:]}: {text}", "", "| what happens instead | at | scenarios |"]
            lines += ["|---|---|---|"]
            lines += [f"| {_escaped(instead)} | {at} | {names} |" for _, instead, at, names in rows]
            lines += [""]
    return _text(lines) + _left_out(targets)


def _rows(targets: list[str], cells: Cells) -> Iterator[tuple[str, str, str, str]]:
    """Why, what happens instead, at which targets, and in which scenarios."""
    groups: dict[tuple[str, str], dict[str, list[str]]] = {}
    for scenario in scenarios().values():
        for target in targets:
            outcome = cells[scenario.id, target]
            for each in differences(scenario, target) if outcome != NOT_PLAYED else ():
                number = f"fault {each.fault}: " if each.fault else ""
                by_chance = " (randomly)" if outcome == EITHER else ""
                group = groups.setdefault((each.why, f"{number}{each.instead}"), {})
                group.setdefault(f"`{scenario.id}`{by_chance}", []).append(target)
    for (why, instead), found in groups.items():
        same: dict[str, list[str]] = {}
        for name, where in found.items():
            same.setdefault(", ".join(f"`{target}`" for target in where), []).append(name)
        for at, names in same.items():
            yield why, instead, at, ", ".join(names)


def _left_out_everywhere() -> str:
    found: dict[str, list[str]] = {}
    for scenario in scenarios().values():
        why = missing(scenario)
        if why is not None:
            found.setdefault(why, []).append(f"`{scenario.id}`")
    lines = ["", "## Not played anywhere", "", "| because of | scenarios |", "|---|---|"]
    return _text([*lines, *(f"| {why} | {', '.join(names)} |" for why, names in found.items())])


def _left_out(targets: list[str]) -> str:
    found: dict[tuple[str, str], list[str]] = {}
    for scenario in scenarios().values():
        for target in targets:
            if missing(scenario) is None and any(need in TARGETS[target].cannot for need in scenario.needs):
                found.setdefault((target, _why_not_played(scenario, target)), []).append(f"`{scenario.id}`")
    if not found:
        return ""
    lines = ["## Not played", "", "| at | because of | scenarios |", "|---|---|---|"]
    return _text([*lines, *(f"| `{name}` | {why} | {', '.join(names)} |" for (name, why), names in found.items())])


def _why_not_played(scenario: Scenario, target: str) -> str:
    found = missing(scenario)
    if found is not None:
        return found
    cannot = TARGETS[target].cannot
    return next((cannot[need] for need in scenario.needs if need in cannot), "not one of this target's scenarios")


def _label(entry: Difference) -> str:
    return f"fault {entry.fault}" if entry.fault else entry.why


def _broker(target: str) -> str:
    return TARGETS[target].broker or "embedded"


def _brokers() -> list[str]:
    return list(dict.fromkeys(map(_broker, TARGETS)))


def _text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "\\<")
