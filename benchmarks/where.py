"""Where the processor time of a message goes: the functions of one case that take most of it, under a profiler.

The profiler makes a call dearer than what it does, so the shares say where to look, and `benchmarks.cpu` whether it
helped. What the peer of `in_thread` does, which acts in the same thread, is left out, and so are waits.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from cProfile import Profile
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks import in_amqp, in_loop, in_thread
from benchmarks.profiling import named, waits

ROWS: Final = 8  # functions of a case
_HERE: Final = Path(__file__).resolve().parent


class Where(NamedTuple):
    """``calls``: of any function, a message; ``functions``: name, calls a message, and share of the own time."""

    calls: float
    functions: list[tuple[str, float, float]]


def take(case: str, messages: int, *, loop: bool = False) -> Where:
    """In a process of its own. ``loop``: with asyncio."""
    call = f"profiled({case!r}, {messages}, loop={loop})"
    code = f"import json; from benchmarks.where import profiled; print(json.dumps({call}))"
    done = subprocess.run(  # noqa: S603  # ourselves
        [sys.executable, "-c", code], cwd=_HERE.parent, stdout=subprocess.PIPE, text=True, timeout=300, check=True
    )
    calls, functions = json.loads(done.stdout.splitlines()[-1])
    return Where(calls, [tuple(each) for each in functions])


def profiled(case: str, messages: int, *, loop: bool = False) -> Where:
    """In a thread, which hands nothing over to another: the profiler sees its own thread only."""
    profiler = Profile()
    threads = in_amqp.measure if case in in_amqp.CASES else in_thread.measure
    runs = messages // in_thread.PARTS * in_thread.PARTS
    thread = threading.Thread(target=in_loop.measure_loop if loop else threads, args=(case, runs, profiler))
    thread.start()
    thread.join()
    profiler.create_stats()
    found = {where: _ours(where[0], *numbers[1:3], numbers[4]) for where, numbers in profiler.stats.items()}
    for where in [where for where in found if waits(where[2]) or _beside(where[0])]:
        del found[where]
    total = sum(own for _, own in found.values())
    largest = sorted(found, key=lambda where: -found[where][1])[:ROWS]
    functions = [(named(where), found[where][0] / runs, found[where][1] / total) for where in largest]
    return Where(sum(count for count, _ in found.values()) / runs, functions)


def _ours(
    file: str, calls: int, own: float, callers: Mapping[tuple[str, int, str], Sequence[float]]
) -> tuple[float, float]:
    """Calls and own time, without what the peer has a built-in function do."""
    theirs = [numbers for caller, numbers in callers.items() if file == "~" and _beside(caller[0])]
    return calls - sum(each[1] for each in theirs), own - sum(each[2] for each in theirs)


def _beside(file: str) -> bool:
    """Whether it is the benchmark's own."""
    return Path(file).is_relative_to(_HERE)
