"""What an observer costs, as the guide shows it."""

from __future__ import annotations

import pytest
from benchmarks import observers


def test_the_table_has_what_each_observer_adds(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [None, *observers.OBSERVERS]
    monkeypatch.setattr(observers, "least", lambda case, name, _: 10.0 * names.index(name) + (case == "send"))
    lines = observers.table(100, 2).splitlines()
    assert [line.split("|")[2:-1] for line in lines[4:]] == [[f" {cost} ", f" {cost} "] for cost in (10, 20, 30, 40)]


def test_an_observer_is_measured_in_a_process_of_its_own() -> None:
    *_, recording = observers.OBSERVERS
    assert observers.least("auto", recording, 500) > 0


def test_the_page_has_a_place_for_it() -> None:
    page = observers.PAGE.read_text(encoding="utf-8")
    assert page.count(observers.BEGIN) == page.count(observers.END) == 1
    assert all(f"| {name} |" in page for name in observers.OBSERVERS)
