"""Profiles of our side of a case: for the pages, and for a reader of the terminal.

A profiler makes calls dearer than they are: the shares say where to look, and `benchmarks.cpu` whether it helped. The
benchmark's own functions, the peer in its thread among them, are left out, and so are waits.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from cProfile import Profile
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.acting import PARTS, measure
from benchmarks.machine import in_process

_WAITS: Final = ("poll", "acquire", "select")  # calls that spend no processor time
_HERE: Final = Path(__file__).resolve().parent


class Function(NamedTuple):
    """``calls``: of a message; ``share``: of the own time of all functions."""

    name: str
    calls: float
    share: float


class Where(NamedTuple):
    """``calls``: of any function, a message; ``functions``: largest first."""

    calls: float
    functions: list[Function]


def take(case: str, messages: int, *, loop: bool = False) -> Where:
    """Profile a case of `benchmarks.acting` in a process of its own. ``loop``: with asyncio."""
    calls, functions = in_process(f"profiles.profiled({case!r}, {messages}, loop={loop})")
    return Where(calls, [Function(*each) for each in functions])


def profiled(case: str, messages: int, *, loop: bool = False) -> Where:
    """Profile a case, in a thread that is not the main one."""
    profiler = Profile()
    runs = messages // PARTS * PARTS
    arguments = (case, runs, "asyncio" if loop else "main", profiler)
    thread = threading.Thread(target=measure, args=arguments)
    thread.start()
    thread.join()
    return functions_of(profiler, runs, 8)


def functions_of(profiler: Profile, runs: int, most: int) -> Where:
    """Return the functions that took most of the time."""
    profiler.create_stats()
    stats: Mapping[tuple[str, int, str], tuple[int, int, float, float, Mapping[tuple[str, int, str], Sequence[float]]]]
    stats = profiler.stats
    found = {}
    for where, (_, calls, own, _, callers) in stats.items():
        if not _beside(where[0]) and not _waits(where[2]):
            theirs = [numbers for caller, numbers in callers.items() if where[0] == "~" and _beside(caller[0])]
            found[where] = (calls - sum(each[1] for each in theirs), own - sum(each[2] for each in theirs))
    total = sum(own for _, own in found.values())
    largest = sorted(found, key=lambda where: -found[where][1])[:most]
    functions = [Function(_named(where), found[where][0] / runs, found[where][1] / total) for where in largest]
    return Where(sum(calls for calls, _ in found.values()) / runs, functions)


def _beside(file: str) -> bool:
    return Path(file).is_relative_to(_HERE)


def _waits(function: str) -> bool:
    return function.startswith("<") and any(f" '{name}'" in function for name in _WAITS)


def _named(where: tuple[str, int, str]) -> str:
    """Return ``folder/file:function``, or the name of a built-in."""
    file, _, function = where
    if file == "~":
        return function.strip("<>").removeprefix("built-in method ").removeprefix("method ")
    return f"{Path(file).parent.name}/{Path(file).name}:{function}"
