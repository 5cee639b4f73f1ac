"""The results of a run, a line of JSON each in a file that several processes may add to, and the page made of them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.spark.faults.account import Verdict

_DIFFERS = (
    r"(?<=killing://)/[^\s;]*(?=/wal|/other)",
    r"(?<=127\.0\.0\.1:)\d+",
    r"(?<=\()[^(]+, process \d+, since [^)]+(?=\))",
    r"\b[0-9a-f]{32}\b",
    r"(?<=after )\d+(?= tries)",
)
RUN = "REDELIVERY_SPARK_FAULT_RUN"  # the environment's name of when the run began
FILE = "REDELIVERY_SPARK_FAULT_RESULTS"  # the environment's name of the file; a case that is in it is not played again


@dataclass(frozen=True, slots=True)
class Result:
    """One case on one pair.

    ``seen``: in words; ``problem``: why it failed, empty if it did not; ``run``: when the run began.
    """

    pair: str
    case: str
    sent: int
    rows: int
    lost: int
    twice: int
    dead: int
    given_up: int
    repeated: int
    seen: str
    problem: str = ""
    run: str = ""

    @classmethod
    def of(cls, pair: str, case: str, verdict: Verdict, seen: str) -> Result:
        lost, twice = len(verdict.lost), len(verdict.twice)
        numbers = (verdict.sent, verdict.rows, lost, twice, verdict.dead, verdict.given_up, verdict.repeated)
        return cls(pair, case, *numbers, plain(seen), run=os.environ.get(RUN, ""))

    @classmethod
    def failed(cls, pair: str, case: str, error: BaseException) -> Result:
        return cls(pair, case, 0, 0, 0, 0, 0, 0, 0, "", problem=f"{type(error).__name__}: {error}")


def plain(text: str) -> str:
    """Without what differs from run to run: folders, ports, ids, processes, times."""
    for pattern in _DIFFERS:
        text = re.sub(pattern, "…", text)
    return text


def add(result: Result) -> None:
    """To the file, if there is to be one."""
    path = os.environ.get(FILE)
    if path:
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(result)) + "\n")


def results() -> list[Result]:
    """All of the file; of a case that was played again, the last time."""
    path = Path(os.environ.get(FILE, ""))
    if not path.is_file():
        return []
    found = [Result(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    return list({(each.pair, each.case): each for each in found}.values())


_HEAD = """\
# Spark streams under faults: what was lost, what was there twice

Streams of `format("jms")` run on real Spark. Their processes are killed (kill -9) or held back until another one has
done their work; their broker dies; their disk is full, broken, read-only or slow; segments that they still need are
deleted, cut off or emptied. Then they are started again until all is there, and every message is looked for in the
table, which `foreachBatch` writes and whose files are named after the batchId.

{origin}

Each process is killed at each step of the protocol: a file system below `walLocation` kills it before or after the
operation that is next to the step, and fails in the same way. Driver: the application's Python and its JVM; runner:
the process that receives with `receiver=driver` and plans batches; worker: a task's Python process; all: everything
at once.

- **lost**: neither in the table nor on the queue nor among the dead letters.
- **twice**: further rows of one message in the table.
- **repeated batches**: how often Spark handed a batch to the application that it had handed to it before. That is how
  Spark makes up for a failure; a sink that only appends would have the rows of such a batch twice.
- **given up**: what the query itself was told to leave out, by `limit()` or `failOnDataLoss=false`.

"""


_SHORT = """\
That is the short form: each kind of fault, on the embedded broker. The long form, without `--short`, plays every case
on four pairs of protocol and real broker, the broker's own death among them; it is a part of `make nightly`."""


def origin(results: Sequence[Result], command: str) -> str:
    """From which run, or runs, the page was written, and with which command."""
    runs = sorted({each.run or "an unknown time" for each in results})
    began = f"one run, begun {runs[0]}" if len(runs) == 1 else f"{len(runs)} runs, begun {', '.join(runs)}"
    said = f"This page was written from {began}, by `{command}`."
    if all(each.pair.endswith("-embedded") for each in results):
        said += f"\n{_SHORT}"
    return said


def page(results: Sequence[Result], command: str) -> str:
    """In Markdown: where it comes from, the sums by pair, then each case over all pairs."""
    results = sorted(results, key=lambda each: (each.pair, each.case))
    pairs = list(dict.fromkeys(each.pair for each in results))
    lines = [
        _row(("pair", "cases", "messages", "rows", "lost", "twice", "repeated batches", "dead letters", "given up"))
    ]
    lines.append(_row("---" for _ in range(9)))
    lines += [_sums(pair, [each for each in results if each.pair == pair]) for pair in pairs]
    parts = [_HEAD.format(origin=origin(results, command)), _text(lines)]
    for receiver in ("driver", "executor"):
        parts.append(
            f"\n## receiver={receiver}\n\nFor each pair, rows: lost / twice (repeated batches); and what was seen.\n\n"
        )
        parts.append(_text([_row(("case", *pairs, "seen")), _row("---" for _ in range(len(pairs) + 2))]))
        cases = dict.fromkeys(each.case for each in results if each.case.startswith(f"{receiver}: "))
        parts.append(_text(_case(case, pairs, [each for each in results if each.case == case]) for case in cases))
    return "".join(parts)


def with_words(page: str) -> str:
    """The page with the head as it is now, and with the origin and numbers that stand there."""
    origin = page[page.index("This page was written from") :].partition("\n\n")[0]
    return _HEAD.format(origin=origin) + page[page.index("| pair |") :]


def _sums(pair: str, results: Sequence[Result]) -> str:
    numbers = [len(results)]
    for field in ("sent", "rows", "lost", "twice", "repeated", "dead", "given_up"):
        numbers.append(sum(getattr(each, field) for each in results))
    return _row((pair, *map(str, numbers)))


def _case(case: str, pairs: Sequence[str], results: Sequence[Result]) -> str:
    cells = []
    for pair in pairs:
        found = [each for each in results if each.pair == pair]
        cells.append(", ".join(f"{each.rows}: {each.lost} / {each.twice} ({each.repeated})" for each in found) or "-")
    seen = dict.fromkeys(each.seen for each in results)
    return _row((case.partition(": ")[2], *cells, "; or: ".join(seen).replace("|", "\\|")))


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
