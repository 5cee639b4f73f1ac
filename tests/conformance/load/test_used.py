"""What each repetition adds to the memory: a leak is seen, and what grows once is none."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.conformance.load.page import page
from tests.conformance.load.used import Growth, Used


def slope(monkeypatch: pytest.MonkeyPatch, memory: Callable[[int], int]) -> float:
    """Of 1,000 repetitions, after each of which the process has so many bytes."""
    growth, done = Growth(1000), 0
    monkeypatch.setattr(Used, "now", lambda: Used(memory=memory(done), descriptors=9, threads=3))
    for done in range(1, 1001):  # it is what `now` looks at
        growth.after(done)
    return growth.slope


def test_what_each_repetition_leaves_is_the_slope(monkeypatch: pytest.MonkeyPatch) -> None:
    assert slope(monkeypatch, lambda done: 50_000_000 + 2048 * done) == 2048


@pytest.mark.parametrize("at", [10, 300, 900])
def test_what_grows_once_is_no_slope(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    assert slope(monkeypatch, lambda done: 50_000_000 + 4_000_000 * (done > at)) == 0


def test_the_page_has_the_last_run_of_each_and_names_what_failed() -> None:
    used = [{"memory": size << 20, "descriptors": 20, "threads": 5} for size in (50, 51, 52)]
    common = {"of": "load", "what": "reconnections in a row", "number": 1000, "slope": 12.4, "used": used}
    old = {"pair": "stomp-artemis", "test": "test_a[stomp-artemis]", "outcome": "passed", "seconds": 9.0}
    new = {**old, "seconds": 7.5}
    bad = {"pair": "amqp-qpid", "test": "test_a[amqp-qpid]", "outcome": "failed", "seconds": 3.0}
    *_, head, _, first, second, _, failed = page(json.dumps({**common, **row}) for row in (old, bad, new)).splitlines()
    assert head.startswith("| pair | what | number | seconds per 1,000 | bytes of each | memory, MB |")
    tail = "12 | 50 → 51 → 52 | 20 → 20 → 20 | 5 → 5 → 5 |"
    assert first == f"| amqp-qpid | reconnections in a row | 1,000 | 3.0 | {tail}"
    assert second == f"| stomp-artemis | reconnections in a row | 1,000 | 7.5 | {tail}"
    assert failed == "**test_a[amqp-qpid] failed in this run.**"
