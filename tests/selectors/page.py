"""docs/selectors.md: where brokers differ from JMS's rules of selectors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from tests.selectors.comparing import MESSAGES, Comparison
from tests.selectors.departures import ALL, DEPARTURES, STOMP

PAGE: Final = Path(__file__).parents[2] / "docs" / "selectors.md"
TITLES: Final = {"activemq": "Classic", "artemis": "Artemis", "qpid": "Broker-J", STOMP: "Classic by STOMP"}
_HEAD: Final = """\
# Where brokers differ from JMS's rules of selectors

Written by `scripts/selectors-table`, which `make nightly` runs: 2,000 selectors are generated; by each a
queue of {messages} messages is browsed over AMQP, and what is shown is compared with what JMS 3.1 §3.8.1 says. The
embedded broker follows JMS everywhere (`tests/selectors/test_judges.py`). HornetQ, which has STOMP only, was not
compared.

Over STOMP, where every property arrives as a string, Classic and the embedded broker compare one with a number or a
boolean as what it looks like. There Classic was asked what cannot be an error for it: it tells nothing of one, and the
browser waits until its `request_timeout`. Its rules are those of Classic over AMQP that strings can show, and the rows
of its own.

{counts}

A verdict is of one selector and one message. The tests fail where a difference has none of these reasons.

"""
_COUNTS: Final = "| broker | selectors | verdicts | differ from JMS | decided by no rule of the table, and all by JMS |"
_FOOT: Final = """
An error at the broker means no match; a browser is then not shown messages behind it either. On ActiveMQ Classic an
error in a subscriber's selector also makes a *send* to that topic fail, for every producer: a selector that subtracts
from a property needs messages in which it is a number.
"""


def page(rows: Iterable[str]) -> str:
    """The page with these rows of the first table."""
    lines = (_COUNTS, "|---|---|---|---|---|", *rows)
    return _HEAD.format(messages=MESSAGES, counts="\n".join(lines)) + table() + _FOOT


def row(found: Comparison) -> str:
    """The row of one broker."""
    part = f"{found.departed} ({100 * found.departed / found.verdicts:.1f} %)"
    return f"| {TITLES[found.broker]} | {found.selectors} | {found.verdicts} | {part} | {found.sure} |"


def counts(page: str) -> Sequence[str]:
    """The rows of the first table of a page."""
    return page.partition(f"{_COUNTS}\n")[2].partition("\n\n")[0].splitlines()[1:]


def table() -> str:
    """One row for each departure."""
    rows = ["| what | by JMS | instead | at | example |", "|---|---|---|---|---|"]
    for each in DEPARTURES:
        where = "all three" if each.brokers == ALL else ", ".join(TITLES[broker] for broker in each.brokers)
        rows.append(f"| {each.rule} | {each.by_jms} | {each.instead} | {where} | `{each.example}` |")
    return "\n".join(rows) + "\n"
