"""Which process gets which tests, where there are several."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.run import scopes

SCOPES = {f"test_{name}.py::test_{number}": name for name in ("long", "short") for number in range(3)}
ALONE = [f"test_alone.py::test_{number}" for number in range(6)]


class Process:
    """What pytest-xdist's scheduler sees of one: what it is given, by place in the collection."""

    shutting_down = False

    def __init__(self, number: int) -> None:
        self.gateway = SimpleNamespace(id=f"gw{number}")
        self.given: list[int] = []

    def send_runtest_some(self, places: list[int]) -> None:
        self.given += places

    def shutdown(self) -> None:
        self.shutting_down = True


@pytest.fixture
def processes(tmp_path: Path) -> list[Process]:
    """Four, with what each is given first, and a second time."""
    pytest.importorskip("xdist")
    file = tmp_path / "scopes.json"
    file.write_text(json.dumps(SCOPES), encoding="utf-8")
    config: Any = SimpleNamespace(getvalue=lambda _: ["4*popen"], option=SimpleNamespace())
    scheduling = scopes.scheduler(config, None, file)
    made = [Process(number) for number in range(4)]
    for each in made:
        scheduling.add_node(each)
    for each in made:
        scheduling.add_node_collection(each, [*SCOPES, *ALONE])
    scheduling.schedule()
    return made


def given(process: Process) -> list[str]:
    return [[*SCOPES, *ALONE][place] for place in process.given]


def test_the_tests_of_a_scope_are_given_to_one_process_the_longest_scope_first(processes: list[Process]) -> None:
    assert given(processes[0])[:3] == [*SCOPES][:3]
    assert given(processes[1])[:3] == [*SCOPES][3:]


def test_one_process_in_four_begins_with_tests_that_share_nothing(processes: list[Process]) -> None:
    assert given(processes[3])[0] == ALONE[-1]
    assert given(processes[2])[0] == ALONE[0]  # there is no third scope


def test_each_test_is_given_once(processes: list[Process]) -> None:
    all_given = [each for process in processes for each in given(process)]
    assert len(all_given) == len(set(all_given))


def test_state_machines_are_run_behind_the_other_tests_of_their_room() -> None:
    names = (
        "tests/broker/engine/test_queues.py::test_a",
        "tests/broker/store/test_stored_machine.py::TestStored::runTest",
        "tests/broker/store/test_groups.py::TestTurns::runTest",
        "tests/broker/store/test_groups.py::test_b",
        "tests/client/ledger/test_machine.py::test_c[AUTO]",
        "tests/client/ledger/test_rules.py::test_d",
        "tests/client/test_misuse.py::test_e",
        "tests/spark/test_zombies.py::TestAlone::runTest",
    )
    items: list[Any] = [
        SimpleNamespace(nodeid=each, name=each.rpartition("::")[2], path=Path(each.partition("::")[0]))
        for each in names
    ]
    scopes.rules_first(items)
    order = [0, 3, 1, 2, 5, 6, 4, 7]
    assert [each.nodeid for each in items] == [names[number] for number in order]


def test_what_says_that_it_may_take_long_comes_before_what_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def item(name: str, mark: pytest.MarkDecorator, scope: str = scopes.ALONE) -> Any:
        return SimpleNamespace(nodeid=name, scope=scope, get_closest_marker=lambda _: mark.mark)

    usual = pytest.mark.timeout(180, func_only=True)  # by the suite's conftest
    items = [
        item("usual", usual),
        item("longer", pytest.mark.timeout(90)),
        item("longest", pytest.mark.timeout(600)),
        item("of a scope", usual, scopes.SPARK),
    ]
    monkeypatch.setattr(scopes, "scope", lambda item: item.scope)
    assert scopes.order(items) == {"of a scope": scopes.SPARK}
    assert [each.nodeid for each in items] == ["of a scope", "longest", "longer", "usual"]
