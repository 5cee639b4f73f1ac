"""``python -m benchmarks.cpu_page``: processor time per message of each case, as a page: docs/cpu.md.

Beside the main thread, another thread and asyncio stands a loop over a bare socket that does the least, in Python, with
the same peer: what is left over it is ours. The targets were set on another machine, so they are shown for this one
too: times the median of what the same bare loops take here and took there. The numbers are kept in docs/cpu.json:
``--only CASE`` measures some rows again, and ``--judge`` none: it writes the page with the targets of today.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple, TypeAlias

from benchmarks import cpu_record, in_amqp, in_loop, quiet, where
from benchmarks.cpu import HERE
from benchmarks.cpu_record import DATE, Record
from benchmarks.results import BenchmarkError
from benchmarks.runner import machine
from benchmarks.why import OF_PROCESSOR

PAGE: Final = HERE / "docs" / "cpu.md"
RECORD: Final = PAGE.with_suffix(".json")
APART: Final = 0.10  # of the lesser: two measurements of the same code that are further apart are none
MESSAGES: Final = 20_000
ROUNDS: Final = 5


class Row(NamedTuple):
    """A case, its target (µs on the machine where that was set), and the bare loop that is its floor.

    ``beyond``: a case; then the target is of what this one takes more than that one.
    """

    title: str
    case: str
    target: float | None
    floor: str | None
    beyond: str | None = None


ROWS: Final = (
    Row("AUTO", "auto", 8.5, "an ACK each"),
    Row("AUTO, receive_many(100)", "auto-many", 5.5, "ACKs together"),
    Row("INDIVIDUAL, acknowledge() each", "individual", 5.5, "ACKs together"),
    Row("DUPS_OK", "dups-ok", 5.0, "no ACK"),
    Row("TRANSACTED, commit every 100", "commit-100", 5.5, None),
    Row("TRANSACTED, commit every 10", "commit-10", 8.0, None),
    Row("TRANSACTED, commit each", "commit-1", 24.0, None),
    Row("send_async, window 100", "send-100", 4.5, "send, window 100"),
    Row("send_async, window 100, two properties", "send-100-properties", 3.0, None, "send-100"),
    Row("send, one by one", "send", 14.0, "send, one by one"),
    Row("AMQP: AUTO", "amqp-auto", 12.0, None),
    Row("AMQP: INDIVIDUAL, acknowledge() each", "amqp-individual", 9.0, None),
    Row("AMQP: send_async, window 100", "amqp-send-100", 13.0, None),
    Row("AMQP: send, one by one", "amqp-send", 45.0, None),
    Row("AMQP, peer in the thread: AUTO", "amqp-auto-in-thread", None, None),
    Row("AMQP, peer in the thread: INDIVIDUAL, acknowledge() each", "amqp-individual-in-thread", None, None),
    Row("AMQP, peer in the thread: send_async, window 100", "amqp-send-100-in-thread", None, None),
    Row("AMQP, peer in the thread: send, one by one", "amqp-send-in-thread", None, None),
)
Taken: TypeAlias = Mapping[Row, Mapping[str, float]]  # µs, by the way to run it
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
    scheduler is in the numbers. *Again* is the same measurement as *main thread*: how far the two are apart says what a
    difference means, as does the *spread*, by which the median is above the least; where they are more than {apart:.0%}
    apart, the row is *not a measurement*. The *bare loop* is a socket and no client: the least that Python can do for
    the same bytes. The targets were set on another machine: the bare loops take this one {slower:.2f} times as long
    (median), and *target here* is the target times that; one with a plus is of what the row takes more than the same
    without properties. asyncio is compared with the main thread, over AMQP with another thread; it has no `send_async`,
    and so no window of sends. The main thread lets another thread do what Ctrl-C must not tear; a thread that is not
    the main one does it itself. Over AMQP the targets were set with a peer in another process, so a scheduler is in the
    numbers: it decides how many messages one answer is for, and which thread reads it. There the main thread hands over
    what it reads. What counts for AMQP is *another thread*.
"""
_IN_THREAD: Final = " With the *peer in the thread* the client alone is measured over AMQP too."
_WHERE: Final = """
    Of each case that misses its target, or is not a measurement, or misses the 1.3 times that asyncio may take, the
    functions that take most of the processor time, under a profiler, in a thread that is not the main one: the calls of
    a message, and after each function its share and its own calls of a message. A profiler makes calls dearer than they
    are: the shares say where to look. Before them stands, in a sentence for each, what the time is spent on and which
    promise it pays for.
"""
_WHY_LOOP: Final = """each call is a coroutine, made and run though it need not wait: cancelled at any of its awaits,
    it puts the message back"""
_WHY_TURN: Final = """an answer that is waited for takes a turn of asyncio's loop (a look at all sockets, the callback
    that reads, the step of the task), where a thread reads for itself: so one thread can serve all sessions"""
_ANSWERED: Final = ("commit-10", "commit-1", "send", "amqp-send")
_LEFT_OUT: Final = """
    A cutter of STOMP's frames in C (an optional extension of about 60 lines in Cython: cut, id, ack, test of the text)
    was tried when the targets were set: INDIVIDUAL, DUPS_OK and a commit every 100 became 1.5 to 1.65 times as fast. It
    is left out, and nothing compiled of ours is installed. Today one wheel, `py3-none-any`, serves every Python and
    system, and an archive, git and an sdist install without a compiler. With the extension each release would need a
    wheel for each of them, or the user's machine, by its compiler and headers, would decide which code runs, and a
    fault that one user sees would not be there for another. In AUTO and with commits of a few messages, where a message
    costs most, the write and the answer are what it costs, and the cutter saves little.
"""
LOOP_LIMIT: Final = 1.3  # asyncio may take so many times as long as threads
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
    if row.case in in_loop.CASES:
        ways["asyncio"] = row.case
    if row.floor is not None:
        ways["bare"] = row.floor
    found: dict[str, list[float]] = {how: [] for how in ways}
    for _ in range(rounds):
        for how, what in ways.items():
            found[how] += once(how, what, messages)
    spread = median(found["main"]) / min(found["main"]) - 1
    return {"spread": spread, **{how: min(each) for how, each in found.items()}}


def slower_here(taken: Taken) -> float:
    """How many times as long the bare loops take here as where the targets were set."""
    return median(found["bare"] / THERE[row.floor] for row, found in taken.items() if row.floor and "bare" in found)


def apart(found: Mapping[str, float]) -> float:
    """How far the two measurements of the same code are apart, of the lesser one."""
    one, other = found["main"], found["again"]
    return max(one, other) / min(one, other) - 1


def threads(row: Row, found: Mapping[str, float]) -> float:
    """Its µs with threads, by the way that counts."""
    return found["thread" if row.case in in_amqp.CASES else "main"]


def counted(row: Row, taken: Taken) -> float:
    """The µs that its target is of."""
    less = next((threads(row, found) for each, found in taken.items() if each.case == row.beyond), 0.0)
    return threads(row, taken[row]) - less


def reached(row: Row, taken: Taken, slower: float) -> bool | None:
    """Whether its target is; None where there is none, and where what it is of is not a measurement."""
    needed = [found for each, found in taken.items() if each == row or each.case == row.beyond]
    if row.target is None or any(apart(found) > APART for found in needed):
        return None
    return counted(row, taken) <= row.target * slower


def verdict(row: Row, taken: Taken, slower: float) -> str:
    """For a reader."""
    if apart(taken[row]) > APART:
        return f"not a measurement: main thread and again are {apart(taken[row]):.0%} apart"
    more = "" if row.beyond is None else f" (+{counted(row, taken):.1f})"
    return {None: "", True: f"yes{more}", False: f"**no**{more}"}[reached(row, taken, slower)]


def page(
    record: Record,
) -> str:
    """The whole page, in Markdown."""
    taken = {row: record.taken[row.case] for row in ROWS if row.case in record.taken}
    slower = slower_here(taken)
    words = {"rounds": record.rounds, "messages": record.messages, "slower": slower, "apart": APART}
    text = _TEXT + (_IN_THREAD if any(row.case.endswith("-in-thread") for row in taken) else "")
    later = ", ".join(f"{case} ({date})" for case, date in record.again.items())
    lines = [
        "# Processor time of a message",
        "",
        "Written by `python -m benchmarks.cpu_page`. Do not edit.",
        "",
        *textwrap.wrap(" ".join(text.split()).format(**words), 120),
        "",
        f"Machine: {', '.join(f'{name} {value}' for name, value in record.machine.items())}.",
        "",
        *(
            [f"Measured again later, so that these numbers are of another run than the others: {later}.", ""]
            if later
            else []
        ),
        "| case | main thread | again | spread | another thread | asyncio | asyncio / threads | bare loop | target |"
        " target here | reached |",
        f"|{' --- |' * 11}",
    ]
    for row, found in taken.items():
        loop, bare, plus = found.get("asyncio"), found.get("bare"), "" if row.beyond is None else "+"
        cells = [
            row.title,
            *(f"{found[how]:.1f}" for how in ("main", "again")),
            f"{found['spread']:.0%}",
            f"{found['thread']:.1f}",
            "" if loop is None else f"{loop:.1f}",
            "" if loop is None else f"{loop / threads(row, found):.2f}",
            "" if bare is None else f"{bare:.1f}",
            "" if row.target is None else f"{plus}{row.target:g}",
            "" if row.target is None else f"{plus}{row.target * slower:.1f}",
            verdict(row, taken, slower),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    profiles = {title: record.profiles[title] for title, *_ in slow(taken) if title in record.profiles}
    if profiles:
        lines += ["", "## Where the time goes", "", *textwrap.wrap(" ".join(_WHERE.split()), 120), ""]
        lines += [why(title, case, record.taken[case], loop=loop) for title, case, loop in slow(taken)]
        lines += ["", "| case | calls | functions |", "| --- | --- | --- |"]
        for title, each in profiles.items():
            functions = ", ".join(f"`{name}` {share:.0%} ({calls:.1f})" for name, calls, share in each.functions)
            lines.append(f"| {title} | {each.calls:.0f} | {functions} |")
    lines += ["", "## Left out", "", *textwrap.wrap(" ".join(_LEFT_OUT.split()), 120)]
    return "\n".join([*lines, ""])


def why(title: str, case: str, found: Mapping[str, float], *, loop: bool) -> str:
    """The sentence of one that takes too long, as an item of a list."""
    because = (_WHY_TURN if case in _ANSWERED else _WHY_LOOP) if loop else OF_PROCESSOR[case.removesuffix("-in-thread")]
    if "bare" in found and not loop:
        because += f" (the bare loop takes {found['bare'] / found['main']:.0%} of the time)"
    return textwrap.fill(f"- {title}: {' '.join(because.split())}.", 120, subsequent_indent="  ")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cpu_page", description=__doc__)
    parser.add_argument("--to", metavar="FILE", type=Path, default=PAGE, help="the page; docs/cpu.md")
    parser.add_argument("--messages", type=int, default=MESSAGES, help=f"of one run ({MESSAGES})")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"runs of each ({ROUNDS})")
    parser.add_argument("--only", action="append", choices=[row.case for row in ROWS], help="only this row again")
    parser.add_argument("--judge", action="store_true", help="measure nothing: apply the targets of today")
    parser.add_argument("--record", metavar="FILE", type=Path, default=RECORD, help="the numbers; docs/cpu.json")
    parser.add_argument("--busy", action="store_true", help="measure though other programs use the processors")
    options = parser.parse_args()
    try:
        if not (options.busy or options.judge):
            quiet.check()
        record = Record(machine(), options.messages, options.rounds)
        if options.only or options.judge:
            record = cpu_record.read(options.record)
        if options.only:
            record.check(machine(), options.messages, options.rounds)
            record.again |= dict.fromkeys(options.only, machine()[DATE])
    except BenchmarkError as error:
        sys.exit(f"benchmarks: {error}")
    if not options.judge:
        measure(record, options.only or [row.case for row in ROWS])
    record.write(options.record)
    options.to.write_text(page(record), encoding="utf-8")


def measure(record: Record, cases: Sequence[str]) -> None:
    """Into the record, these cases and the profiles that the page then shows of them."""
    for row in ROWS:
        if row.case in cases:
            record.taken[row.case] = take(row, record.messages, record.rounds)
            print(row.title, {how: round(value, 2) for how, value in record.taken[row.case].items()}, flush=True)
    for title, case, loop in slow({row: record.taken[row.case] for row in ROWS if row.case in record.taken}):
        if case in cases:
            record.profiles[title] = where.take(case, record.messages // 4, loop=loop)


def slow(taken: Taken) -> Iterator[tuple[str, str, bool]]:
    """Title, case, and whether it is asyncio's, of all that takes too long, or may: where its time goes is shown."""
    slower = slower_here(taken)
    for row, found in taken.items():
        if reached(row, taken, slower) is False or apart(found) > APART:
            yield row.title, row.case, False
    for row, found in taken.items():
        if found.get("asyncio", 0) > LOOP_LIMIT * threads(row, found):
            yield f"{row.title}, asyncio", row.case, True


if __name__ == "__main__":
    main()
