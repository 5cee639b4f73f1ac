"""Processor time of one message over AMQP, of this process alone: the fake peer is another one.

So a scheduler is in these numbers, unlike those of `in_thread`: the least of several runs counts.
"""

from __future__ import annotations

import gc
import threading
from cProfile import Profile
from functools import partial
from typing import Final

from benchmarks import ours
from benchmarks.cases import Run
from benchmarks.in_thread import PARTS
from benchmarks.places import FakePlace, fake_place
from redelivery import AckMode

CASES: Final[dict[str, Run]] = {
    "amqp-auto": partial(ours.consume, mode=AckMode.AUTO),
    "amqp-individual": partial(ours.consume, mode=AckMode.INDIVIDUAL),
    "amqp-send-100": partial(ours.send, window=100),
    "amqp-send": partial(ours.send, window=1),
}


def measure(case: str, messages: int, profiler: Profile | None = None) -> list[float]:
    """Microseconds of processor per message, of each part of the run."""
    with fake_place("amqp") as place:
        _once(place, case, messages // PARTS, None)  # loads what is needed
        return [_once(place, case, messages // PARTS, profiler) for _ in range(PARTS)]


def measure_in_thread(case: str, messages: int) -> list[float]:
    """The same in a thread that is not the main one: nothing is handed over."""
    found: list[float] = []
    thread = threading.Thread(target=lambda: found.extend(measure(case, messages)))
    thread.start()
    thread.join()
    return found


def _once(place: FakePlace, case: str, messages: int, profiler: Profile | None) -> float:
    sends = "send" in case
    queue = place.prepare(0 if sends else messages)
    gc.collect()
    if profiler is not None:
        profiler.enable()
    spent = CASES[case](place, queue, messages)
    if profiler is not None:
        profiler.disable()
    place.finish(queue, **{"sent" if sends else "acked": messages})
    return (spent.cpu or 0.0) / messages * 1e6
