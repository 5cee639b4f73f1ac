"""What an observer costs, as the guide shows it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from benchmarks import observers, unobserved
from benchmarks.cpu import HERE


def _cells(table: str) -> dict[str, list[str]]:
    """By the row's name."""
    rows = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("| ")]
    return {row[0].strip(): [cell.strip() for cell in row[1:]] for row in rows}


def test_a_row_is_what_its_observer_adds_and_the_checks_are_what_they_take(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [None, *observers.OBSERVERS]

    def least(case: str, name: str | None, _: int, tree: Path = HERE) -> float:
        assert (tree / "src" / "redelivery" / "client" / "state.py").exists()
        return 10.0 + names.index(name) + (case == "send") / 4 - (tree != HERE and case == "auto") / 2

    monkeypatch.setattr(observers, "least", least)
    rows, checks = observers.costs(100, 2)
    cells = _cells(observers.table(rows, checks, 2))
    assert [cells[name] for name in observers.OBSERVERS] == [[f"{cost}.0"] * 2 for cost in (1, 2, 3, 4)]
    assert cells[observers.AGAIN] == ["+0.0", "+0.0"]
    assert cells[observers.UNCHECKED] == ["+0.5", "+0.0"]
    assert checks > 20


@pytest.mark.parametrize(
    ("checked", "nothing", "words"),
    [
        (0.1, 1.9, ("nothing that could be measured", "1.9 µs at most, less than the 2 µs")),
        (0.3, 2.0, ("more than could be put down to chance", "2.0 µs at most, **not less** than the 2 µs")),
    ],
)
def test_the_page_says_whether_an_observer_costs_what_it_may(
    checked: float, nothing: float, words: tuple[str, str]
) -> None:
    rows = {(case, name): 0.0 for case in observers.CASES for name in observers.OBSERVERS}
    rows |= {(case, observers.AGAIN): -0.2 for case in observers.CASES}
    rows |= {("auto", observers.UNCHECKED): checked, ("send", observers.UNCHECKED): 0.0}
    rows |= {("auto", observers.NOTHING): nothing, ("send", observers.NOTHING): 0.5}
    text = " ".join(observers.table(rows, 30, 3).split())
    assert all(each in text for each in words)


def test_without_its_checks_a_source_does_what_it_does_without_an_observer() -> None:
    source = """
if s.observed is not None:
    done += 'a'
if s.tracer is None or s.held:
    done += 'b'
else:
    done += 'c'
if s.observed is not None and s.held:
    done += 'd'
elif s.held is None:
    done += 'e'
"""
    text, checks = unobserved.without_checks(source)
    assert checks == 3
    assert "observed" not in text
    assert "tracer" not in text
    for held in (None, True):
        ended = [{"s": SimpleNamespace(observed=None, tracer=None, held=held), "done": ""} for _ in range(2)]
        for program, names in zip((source, text), ended, strict=True):
            exec(program, names)  # noqa: S102  # our own text
        assert ended[0]["done"] == ended[1]["done"]


def test_an_observer_is_measured_in_a_process_of_its_own() -> None:
    *_, recording = observers.OBSERVERS
    assert observers.least("auto", recording, 500) > 0


def test_the_page_has_a_place_for_it() -> None:
    page = observers.PAGE.read_text(encoding="utf-8")
    assert page.count(observers.BEGIN) == page.count(observers.END) == 1
    assert all(f"| {name} |" in page for name in observers.OBSERVERS)
