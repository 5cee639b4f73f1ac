"""What a run of the suite leaves for `scripts/conformance-table`: one line of JSON for each test.

Written when REDELIVERY_CONFORMANCE_RECORD names a file, which is appended to: one file may hold several runs, and each
process of pytest-xdist may write to it. A later outcome of the same test and pair replaces an earlier one.

What a test measured, it records by ``record_property``, as a dict. When REDELIVERY_ROWS_RECORD names a file, each of
them is a line there, for the script that writes docs/load.md.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.pairs import ON

VARIABLE = "REDELIVERY_CONFORMANCE_RECORD"
ROWS = "REDELIVERY_ROWS_RECORD"
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
ASYNCIO = "test_asyncio.py"  # the suite once more, with the other driver
AWAITED = "with asyncio each send is awaited"  # why one of its tests has nothing to look at; so are these:
ELSEWHERE = (
    AWAITED,
    AMQP_HAS_THEM := "AMQP has them",
    READABLE := "over STOMP each body can be read",
    RABBITMQS := "RabbitMQ has such clients, and shows over STOMP what they write",
    ALONE := "within one process nobody else writes",
    SHARED := "so many queues would stay on a broker that is shared",
)
REFUSED = "refused"  # passed: what the pair cannot do was refused by the error that the test names


@dataclass(frozen=True, slots=True)
class Line:
    """One test on one pair.

    ``pair``: the title of its kind; "" for a test that concerns no pair. ``test``: ``test_rollback.py::test_name[…]``.
    ``reason``: why it was skipped, or refused by the pair; "" otherwise.
    """

    pair: str
    test: str
    outcome: str
    reason: str

    @property
    def kind(self) -> str:
        """The name of the pair's kind, whatever the version of its broker."""
        return self.pair.partition(ON)[0]

    @property
    def module(self) -> str:
        """The name of its file."""
        return self.test.partition("::")[0]


_REFUSED = pytest.StashKey[str]()


def refused(item: pytest.Item, reason: str) -> bool:
    """Note why the pair cannot do what the test asks for. True, since the test has passed by the refusal."""
    item.stash[_REFUSED] = reason
    return True


def keep(item: pytest.Item, report: pytest.TestReport) -> None:
    """Write the line of a test that has run, was skipped, or failed outside its body; else do nothing."""
    path = os.environ.get(VARIABLE)
    if path is None or not (report.when == "call" or report.failed or report.skipped):
        return
    cannot = item.stash.get(_REFUSED, None) if report.passed else None
    reason = report.longrepr[2].removeprefix("Skipped: ") if isinstance(report.longrepr, tuple) else ""
    line = Line(
        pair=_pair(item),
        test=f"{item.path.name}::{item.name}",
        outcome=report.outcome if cannot is None else REFUSED,
        reason=reason if cannot is None else cannot,
    )
    with Path(path).open("a", encoding="utf-8") as record:
        record.write(f"{json.dumps(asdict(line))}\n")  # one write: the lines of several processes do not mix


def keep_rows(item: pytest.Item, report: pytest.TestReport) -> None:
    """Write what a test has measured, also where it failed."""
    path = os.environ.get(ROWS)
    measured = [(name, row) for name, row in report.user_properties if isinstance(row, dict)]
    if path is None or report.when != "call" or not measured:
        return
    test = {"pair": _pair(item), "test": item.name, "outcome": report.outcome}
    with Path(path).open("a", encoding="utf-8") as record:
        record.write("".join(f"{json.dumps({'of': name, **test, **row})}\n" for name, row in measured))


def _pair(item: pytest.Item) -> str:
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    pair = parameters.get("pair")
    return str(getattr(getattr(pair, "kind", pair), "title", ""))


def rows(lines: Iterable[str], of: str) -> list[dict[str, Any]]:
    """What was measured under this name; of two about the same test and pair the last, in a fixed order."""
    found = {(row["pair"], row["test"]): row for row in map(json.loads, lines) if row["of"] == of}
    return [found[key] for key in sorted(found)]


def read(paths: Iterable[Path]) -> list[Line]:
    """The last line of each test and pair, in a fixed order.

    Raises:
        ValueError: a line is none of ours.
    """
    lines: dict[tuple[str, str], Line] = {}
    for path in paths:
        for text in path.read_text(encoding="utf-8").splitlines():
            try:
                line = Line(**json.loads(text))
            except TypeError as error:
                raise ValueError(f"{path}: no line of a record of this suite: {text!r}") from error
            lines[line.pair, line.test] = line
    return [lines[key] for key in sorted(lines)]
