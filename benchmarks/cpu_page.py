"""``python -m benchmarks.cpu_page``: processor time per message of each case, as a page: docs/cpu.md.

Beside the main thread, another thread and asyncio stands a loop over a bare socket that does the least, in Python, with
the same peer: what is left over it is ours. The targets were set on another machine, so they are shown for this one
too: times the median of what the same bare loops take here and took there.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import textwrap
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from benchmarks import quiet
from benchmarks.cpu import HERE
from benchmarks.results import BenchmarkError
from benchmarks.runner import machine

PAGE: Final = HERE / "docs" / "cpu.md"
MESSAGES: Final = 20_000
ROUNDS: Final = 5


class Row(NamedTuple):
    """A case, its target (µs on the machine where that was set), and the bare loop that is its floor."""

    title: str
    case: str
    target: float | None
    floor: str | None


ROWS: Final = (
    Row("AUTO", "auto", 8.5, "an ACK each"),
    Row("INDIVIDUAL, acknowledge() each", "individual", 5.5, "ACKs together"),
    Row("DUPS_OK", "dups-ok", 5.0, "no ACK"),
    Row("TRANSACTED, commit every 100", "commit-100", 5.5, None),
    Row("TRANSACTED, commit every 10", "commit-10", 8.0, None),
    Row("TRANSACTED, commit each", "commit-1", 24.0, None),
    Row("send_async, window 100", "send-100", 4.5, "send, window 100"),
    Row("send_async, window 100, two properties", "send-100-properties", 7.5, None),
    Row("send, one by one", "send", 14.0, "send, one by one"),
)
THERE: Final = {  # µs of the bare loops on the machine where the targets were set
    "an ACK each": 5.2,
    "ACKs together": 1.6,
    "no ACK": 1.2,
    "send, window 100": 0.4,
    "send, one by one": 8.6,
}
_TEXT: Final = """
    Microseconds of processor per message of 1 KiB over STOMP, its id and body read: the least of {rounds} runs of
    {messages:,} messages, each in five parts. The peer acts in the client's own thread, less its own time, so no
    scheduler is in the numbers. *Again* is the same measurement as *main thread*: how far the two are apart says what
    a difference means. The *bare loop* is a socket and no client: the least that Python can do for the same bytes. The
    targets were set on another machine: the bare loops take this one {slower:.2f} times as long (median), and *target
    here* is the target times that. The main thread lets another thread do what Ctrl-C must not tear (a commit); a
    thread that is not the main one does it itself.
"""
_LOOP: Final = ("auto", "individual", "dups-ok", "commit-100", "commit-10", "commit-1", "send")
_HOW: Final = {
    "main": "from benchmarks.in_thread import measure as run",
    "again": "from benchmarks.in_thread import measure as run",
    "thread": "from benchmarks.in_thread import measure_in_thread as run",
    "asyncio": "from benchmarks.in_loop import measure_loop as run",
    "bare": "from benchmarks.floor import floor as run",
}


def once(how: str, what: str, messages: int) -> list[float]:
    """In a process of its own."""
    code = f"import json; {_HOW[how]}; print(json.dumps(run({what!r}, {messages})))"
    done = subprocess.run(  # noqa: S603  # ourselves
        [sys.executable, "-c", code], cwd=HERE, stdout=subprocess.PIPE, text=True, timeout=300, check=True
    )
    found: list[float] = json.loads(done.stdout.splitlines()[-1])
    return found


def take(row: Row, messages: int, rounds: int) -> dict[str, float]:
    """The least µs of each way to run it, which take turns."""
    ways = {"main": row.case, "thread": row.case, "again": row.case}
    if row.case in _LOOP:
        ways["asyncio"] = row.case
    if row.floor is not None:
        ways["bare"] = row.floor
    found: dict[str, list[float]] = {how: [] for how in ways}
    for _ in range(rounds):
        for how, what in ways.items():
            found[how] += once(how, what, messages)
    return {how: min(each) for how, each in found.items()}


def page(taken: dict[Row, dict[str, float]], facts: dict[str, str], messages: int, rounds: int) -> str:
    """The whole page, in Markdown."""
    slower = median(found["bare"] / THERE[row.floor] for row, found in taken.items() if row.floor and "bare" in found)
    lines = [
        "# Processor time of a message",
        "",
        "Written by `python -m benchmarks.cpu_page`. Do not edit.",
        "",
        *textwrap.wrap(" ".join(_TEXT.split()).format(rounds=rounds, messages=messages, slower=slower), 120),
        "",
        f"Machine: {', '.join(f'{name} {value}' for name, value in facts.items())}.",
        "",
        "| case | main thread | again | another thread | asyncio | asyncio / main | bare loop | target | target here |"
        " reached |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row, found in taken.items():
        loop, bare = found.get("asyncio"), found.get("bare")
        cells = [
            row.title,
            *(f"{found[how]:.1f}" for how in ("main", "again", "thread")),
            "" if loop is None else f"{loop:.1f}",
            "" if loop is None else f"{loop / found['main']:.2f}",
            "" if bare is None else f"{bare:.1f}",
            *(("", "", "") if row.target is None else _reached(row.target, slower, found["main"])),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _reached(target: float, slower: float, took: float) -> tuple[str, str, str]:
    here = target * slower
    return f"{target:g}", f"{here:.1f}", "yes" if took <= here else "**no**"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cpu_page", description=__doc__)
    parser.add_argument("--to", metavar="FILE", type=Path, default=PAGE, help="the page; docs/cpu.md")
    parser.add_argument("--messages", type=int, default=MESSAGES, help=f"of one run ({MESSAGES})")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"runs of each ({ROUNDS})")
    parser.add_argument("--busy", action="store_true", help="measure though other programs use the processors")
    options = parser.parse_args()
    if not options.busy:
        try:
            quiet.check()
        except BenchmarkError as error:
            sys.exit(f"benchmarks: {error}")
    taken = {}
    for row in ROWS:
        taken[row] = take(row, options.messages, options.rounds)
        print(row.title, {how: round(value, 2) for how, value in taken[row].items()}, flush=True)
    options.to.write_text(page(taken, machine(), options.messages, options.rounds), encoding="utf-8")


if __name__ == "__main__":
    main()
