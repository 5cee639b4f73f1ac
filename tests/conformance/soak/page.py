"""docs/soak.md: what the records of test_soak.py say."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from tests.conformance.measured import table, used
from tests.conformance.soak.tally import CAUSES

_Key: TypeAlias = tuple[str, str]  # pair, driver
_HOW: Final = re.compile(r"Up to \d+ ran at a time.*")
_ROW: Final = re.compile(r"\| (stomp|amqp)-[^|]+ \| (asyncio|threads) \|")
_NUMBERS: Final = ("reconnections", "confirmed", "in_doubt", "hidden", "lost", "twice")
_FAULTS: Final = {
    "reset": "reset, and refused for up to 0.3 s",
    "deaf": "the broker heard no more for 0.1 s, then reset",
    "stall": "everything passed on up to 0.8 s late",
    "half-open": "nothing passed on any more, until the heart-beat of 1 s noticed it",
}
_CAUSES: Final = {
    "in doubt": "the connection was lost between the commit and its answer (`InDoubt`); the broker had not taken it",
    "uncommitted": "the connection was lost before the commit (`Released`)",
    "rolled back": "the commit met the loss, or was refused, and the session rolled back (`RolledBack`)",
    "ack lost": "the acknowledgement, which nobody confirms on that pair, was lost with the connection",
}
_HEAD: Final = """# Minutes of lost connections

`scripts/soak-report` writes this page. On each pair of protocol and broker, and with each driver, a program sends
numbered messages, and a listener container of two workers receives them, while both connections have a fault about
every two seconds, one of four at random:

| fault | |
| --- | --- |
{faults}
The connections come back by `ReconnectPolicy`; where the broker knows duplicate ids, `deduplicate_sends` is on.
{how}

Lost: confirmed to the sender, and never handled. Hidden: the broker delivered it to nobody until it was started again
([Artemis](brokers/artemis.md)). In doubt: the sender was told so by `InDoubtError`.

| pair | driver | minutes | faults | {numbers} |
| --- | --- | --- | --- | {lines} |
{rows}
{sums}

## Handled twice

Twice: handled more than once. The events of the receiving connection say why, for each of them; a message that was
handled again after an acknowledgement that the broker had confirmed fails the test.

| cause | what happened |
| --- | --- |
{causes}
{why}
| pair | driver | behind | twice | {cause_names} | unexplained |
| --- | --- | --- | --- | {cause_lines} | --- |
{twice}
## Growth

Of the test's process: at the beginning → after half of the time → at the end. The slope is that of the second half,
the straight line nearest to what was measured with each fault; more than {steepest:g} MB a minute fails a test of four
minutes or more, and says little in a shorter one.

| pair | driver | memory, MB | slope, MB a minute | descriptors | threads |
| --- | --- | --- | --- | --- | --- |
{growth}"""
_WHY: Final = """\
A fault can find each of the two workers with one message, so it makes at most two of them twice; what is prefetched is
not handled yet. How many it makes depends on how often a fault finds a worker between its message and the answer to its
commit: always, where the queue is never empty because commits take longer than sends; seldom, where the workers wait
for messages. Behind: how many messages had been sent, and not been handled, when a fault began, in the median; those in
doubt that never arrived are among them.
"""


def page(lines: Iterable[str], together: int, steepest: float, kept: str = "") -> str:
    """From one line of JSON for each pair and driver; of two lines about the same the last counts.

    ``kept``: a page whose rows stay where there is no such line, and what it says of how they ran.
    """
    how = _HOW.search(kept)
    found = {(row["pair"], row["driver"]): row for row in map(json.loads, lines)}
    old = [_read(each) for each in kept.split("\n## ")] if kept else [{}, {}, {}]
    new = [{key: cells(row) for key, row in found.items()} for cells in (_run, _twice, _used)]
    first, second, third = ({**its, **fresh} for its, fresh in zip(old, new, strict=True))
    faults, confirmed, lost = (
        sum(int(cells[1 + place].replace(",", "")) for cells in first.values())
        for place in (0, 1 + _NUMBERS.index("confirmed"), 1 + _NUMBERS.index("lost"))
    )
    return _HEAD.format(
        faults=table(_FAULTS.items()),
        how=how[0] if how else f"Up to {together} ran at a time, each pair with a broker of its own.",
        numbers=" | ".join(name.replace("_", " ") for name in _NUMBERS),
        lines=" | ".join("---" for _ in _NUMBERS),
        rows=_rows(first),
        sums=f"{faults:,} faults, {confirmed:,} messages confirmed: {lost} lost.{_unfinished(first)}",
        causes=table(_CAUSES.items()),
        why=_WHY,
        cause_names=" | ".join(CAUSES),
        cause_lines=" | ".join("---" for _ in CAUSES),
        twice=_rows(second),
        steepest=steepest,
        growth=_rows(third),
    )


def _rows(cells: Mapping[_Key, Sequence[str]]) -> str:
    return table((*key, *cells[key]) for key in sorted(cells))


def _read(section: str) -> dict[_Key, Sequence[str]]:
    """The rows of its table of pairs."""
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if _ROW.match(line)]
    return {(row[0], row[1]): row[2:] for row in rows}


def _unfinished(found: Iterable[_Key]) -> str:
    """A pair that has no record of one driver."""
    pairs, drivers = ({key[place] for key in found} for place in (0, 1))
    missing = sorted({(pair, driver) for pair in pairs for driver in drivers} - set(found))
    names = ", ".join(f"{pair} ({driver})" for pair, driver in missing)
    return f" Ended before its time, by a failure of the test: {names}." if missing else ""


def _run(row: Mapping[str, Any]) -> list[str]:
    return [f"{row['minutes']:g}", f"{sum(row['faults'].values()):,}", *(f"{row[name]:,}" for name in _NUMBERS)]


def _twice(row: Mapping[str, Any]) -> list[str]:
    causes = [str(row["causes"][name]) for name in CAUSES]
    return [f"{row['behind']:.0f}", str(row["twice"]), *causes, str(row["unexplained"])]


def _used(row: Mapping[str, Any]) -> list[str]:
    memory, descriptors, threads = used(row)
    return [memory, f"{row['slope']:+.2f}", descriptors, threads]
