"""docs/soak.md: what the records of test_soak.py say."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

MEGABYTE: Final = 1 << 20
_NUMBERS: Final = ("faults", "reconnections", "confirmed", "in_doubt", "hidden", "lost", "twice")
_HEAD: Final = """# Minutes of lost connections

`scripts/soak-report` writes this page. On each pair of protocol and broker a program sends numbered messages, and a
listener container of two workers receives them, while both connections are lost about every two seconds: reset, refused
for up to 0.3 s, or first deaf and then reset. The connections come back by `ReconnectPolicy`; where the broker knows
duplicate ids, `deduplicate_sends` is on. {how}

Lost: confirmed to the sender, and never handled. Hidden: the broker delivered it to nobody until it was started again
([Artemis](brokers/artemis.md)). In doubt: the sender was told so by `InDoubtError`. Twice: handled more than once, as a
commit or an acknowledgement was lost with its connection. Memory (of the test's process), descriptors and threads: at
the beginning → after half of the time → at the end.

"""
_HEADS: Final = (
    "pair",
    "minutes",
    *(name.replace("_", " ") for name in _NUMBERS),
    "memory, MB",
    "descriptors",
    "threads",
)


def page(lines: Iterable[str], together: int) -> str:
    """From one line of JSON for each pair; of two lines about the same pair the last counts."""
    rows = {row["pair"]: row for row in map(json.loads, lines)}
    ordered = sorted(rows.values(), key=lambda row: str(row["pair"]))
    how = f"Up to {together} pairs ran at a time, each with a broker of its own."
    faults, confirmed, lost = (sum(row[name] for row in ordered) for name in ("faults", "confirmed", "lost"))
    sums = f"\n{faults:,} faults, {confirmed:,} messages confirmed: {lost} lost.\n"
    heads = _line(_HEADS) + _line(["---"] * len(_HEADS))
    return _HEAD.format(how=how) + heads + "".join(map(_row, ordered)) + sums


def _row(row: Mapping[str, Any]) -> str:
    cells = [row["pair"], f"{row['minutes']:g}", *(f"{row[name]:,}" for name in _NUMBERS)]
    for kind, unit in (("memory", MEGABYTE), ("descriptors", 1), ("threads", 1)):
        cells.append(" → ".join(f"{used[kind] / unit:.0f}" for used in row["used"]))
    return _line(cells)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n"
