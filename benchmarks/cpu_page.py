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
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from benchmarks import in_amqp, quiet, where
from benchmarks.cpu import HERE
from benchmarks.results import BenchmarkError
from benchmarks.runner import machine
from benchmarks.where import Where

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
    Row("AUTO, receive_many(100)", "auto-many", 5.5, "ACKs together"),
    Row("INDIVIDUAL, acknowledge() each", "individual", 5.5, "ACKs together"),
    Row("DUPS_OK", "dups-ok", 5.0, "no ACK"),
    Row("TRANSACTED, commit every 100", "commit-100", 5.5, None),
    Row("TRANSACTED, commit every 10", "commit-10", 8.0, None),
    Row("TRANSACTED, commit each", "commit-1", 24.0, None),
    Row("send_async, window 100", "send-100", 4.5, "send, window 100"),
    Row("send_async, window 100, two properties", "send-100-properties", 7.5, None),
    Row("send, one by one", "send", 14.0, "send, one by one"),
    Row("AMQP: AUTO", "amqp-auto", 12.0, None),
    Row("AMQP: INDIVIDUAL, acknowledge() each", "amqp-individual", 9.0, None),
    Row("AMQP: send_async, window 100", "amqp-send-100", 13.0, None),
    Row("AMQP: send, one by one", "amqp-send", 45.0, None),
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
    a difference means, as does the *spread*, by which the median is above the least. The *bare loop* is a socket and
    no client: the least that Python can do for the same bytes. The targets were set on another machine: the bare loops
    take this one {slower:.2f} times as long (median), and *target here* is the target times that. The main thread lets
    another thread do what Ctrl-C must not tear; a thread that is not the main one does it itself. Over AMQP the peer
    is another process, and a scheduler is in the numbers; there the main thread hands over what it reads. What counts
    for AMQP is *another thread*.
"""
_WHERE: Final = """
    Of each case that misses its target, or the 1.3 times that asyncio may take, the functions that take most of the
    processor time, under a profiler, in a thread that is not the main one: the calls of a message, and after each
    function its share and its own calls of a message. A profiler makes calls dearer than they are: the shares say where
    to look.
"""
LOOP_LIMIT: Final = 1.3  # asyncio may take so many times as long as the main thread
_LOOP: Final = ("auto", "individual", "dups-ok", "commit-100", "commit-10", "commit-1", "send")
_HOW: Final = {
    "main": "from benchmarks.{module} import measure as run",
    "again": "from benchmarks.{module} import measure as run",
    "thread": "from benchmarks.{module} import measure_in_thread as run",
    "asyncio": "from benchmarks.in_loop import measure_loop as run",
    "bare": "from benchmarks.floor import floor as run",
}


def once(how: str, what: str, messages: int) -> list[float]:
    """In a process of its own."""
    module = "in_amqp" if what in in_amqp.CASES else "in_thread"
    code = f"import json; {_HOW[how].format(module=module)}; print(json.dumps(run({what!r}, {messages})))"
    done = subprocess.run(  # noqa: S603  # ourselves
        [sys.executable, "-c", code], cwd=HERE, stdout=subprocess.PIPE, text=True, timeout=300, check=True
    )
    found: list[float] = json.loads(done.stdout.splitlines()[-1])
    return found


def take(row: Row, messages: int, rounds: int) -> dict[str, float]:
    """The least µs of each way to run it, which take turns; and by what part the median of the first is above it."""
    ways = {"main": row.case, "thread": row.case, "again": row.case}
    if row.case in _LOOP:
        ways["asyncio"] = row.case
    if row.floor is not None:
        ways["bare"] = row.floor
    found: dict[str, list[float]] = {how: [] for how in ways}
    for _ in range(rounds):
        for how, what in ways.items():
            found[how] += once(how, what, messages)
    spread = median(found["main"]) / min(found["main"]) - 1
    return {"spread": spread, **{how: min(each) for how, each in found.items()}}


def slower_here(taken: Mapping[Row, Mapping[str, float]]) -> float:
    """How many times as long the bare loops take here as where the targets were set."""
    return median(found["bare"] / THERE[row.floor] for row, found in taken.items() if row.floor and "bare" in found)


def reached(row: Row, found: Mapping[str, float], slower: float) -> bool | None:
    """Whether a target is; None where there is none."""
    counts = found["thread" if row.case in in_amqp.CASES else "main"]
    return None if row.target is None else counts <= row.target * slower


def page(
    taken: Mapping[Row, Mapping[str, float]],
    profiles: Mapping[str, Where],
    facts: Mapping[str, str],
    messages: int,
    rounds: int,
) -> str:
    """The whole page, in Markdown; ``profiles``: of what is missed, by title."""
    slower = slower_here(taken)
    lines = [
        "# Processor time of a message",
        "",
        "Written by `python -m benchmarks.cpu_page`. Do not edit.",
        "",
        *textwrap.wrap(" ".join(_TEXT.split()).format(rounds=rounds, messages=messages, slower=slower), 120),
        "",
        f"Machine: {', '.join(f'{name} {value}' for name, value in facts.items())}.",
        "",
        "| case | main thread | again | spread | another thread | asyncio | asyncio / main | bare loop | target |"
        " target here | reached |",
        f"|{' --- |' * 11}",
    ]
    for row, found in taken.items():
        loop, bare = found.get("asyncio"), found.get("bare")
        cells = [
            row.title,
            *(f"{found[how]:.1f}" for how in ("main", "again")),
            f"{found['spread']:.0%}",
            f"{found['thread']:.1f}",
            "" if loop is None else f"{loop:.1f}",
            "" if loop is None else f"{loop / found['main']:.2f}",
            "" if bare is None else f"{bare:.1f}",
            "" if row.target is None else f"{row.target:g}",
            "" if row.target is None else f"{row.target * slower:.1f}",
            {None: "", True: "yes", False: "**no**"}[reached(row, found, slower)],
        ]
        lines.append(f"| {' | '.join(cells)} |")
    if profiles:
        lines += ["", "## Where the time goes", "", *textwrap.wrap(" ".join(_WHERE.split()), 120), ""]
        lines += ["| case | calls | functions |", "| --- | --- | --- |"]
        for title, each in profiles.items():
            functions = ", ".join(f"`{name}` {share:.0%} ({calls:.1f})" for name, calls, share in each.functions)
            lines.append(f"| {title} | {each.calls:.0f} | {functions} |")
    return "\n".join([*lines, ""])


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
    slower = slower_here(taken)
    missed = [row for row, found in taken.items() if reached(row, found, slower) is False]
    slow = [row for row, found in taken.items() if found.get("asyncio", 0) > LOOP_LIMIT * found["main"]]
    profiles = {row.title: where.take(row.case, options.messages // 4) for row in missed}
    profiles |= {f"{row.title}, asyncio": where.take(row.case, options.messages // 4, loop=True) for row in slow}
    text = page(taken, profiles, machine(), options.messages, options.rounds)
    options.to.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
