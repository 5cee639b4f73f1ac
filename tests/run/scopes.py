"""Which tests run in one process, one after the other, where pytest-xdist runs several processes.

Real brokers and Spark take seconds and hundreds of MB to start, so what uses one of them stays together; every other
test goes to the next process that is free. The longest scopes come first, so that none of them is begun at the end.

Only the processes that run tests know what a test uses; the first of them writes a file for the one that schedules.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

import pytest

from redelivery.testing.brokers.specs import SPECS

FILE: Final = "redelivery_scopes"  # in what pytest-xdist tells a process
ALONE: Final = ""
_EVERY: Final = 4
_ON: Final = re.compile("(?:stomp|amqp)[- ]([a-z0-9]+)(?:-copy)?")
SPARK: Final = "Spark"
FAULTS_OF_SPARK: Final = "Spark faults"
_CAMPAIGN: Final = "REDELIVERY_SPARK_FAULT_RESULTS"  # of scripts/spark-report, whose processes each have a Spark
MARKERS: Final = ("together(name): with all tests of that name in one process, where there are several",)
# Seconds that a test of a scope takes, roughly, by how the scope's name begins; they decide about the order only.
_SECONDS: Final = {FAULTS_OF_SPARK: 30, "kills": 15, "Spark": 12, "Qpid JMS": 3, "traces": 0.4, "broker": 0.5}


def scope(item: pytest.Item) -> str:
    """What the tests of one process have in common; `ALONE` for a test that shares nothing."""
    assert isinstance(item, pytest.Function)
    used = brokers(item)
    if "runs" in item.fixturenames and "target" in parameters(item) and not used:
        return f"traces {parameters(item)['target']}"
    if "killed_run" in item.fixturenames:
        return f"kills {used[0] if used else 'the embedded broker'}"
    if "jobs" in item.fixturenames:
        return ALONE if _CAMPAIGN in os.environ else FAULTS_OF_SPARK
    if "spark" in item.fixturenames:
        return SPARK
    mark = item.get_closest_marker("together")
    if mark is not None:
        return str(mark.args[0])
    if "java" in item.fixturenames and not used:
        used = ["qpid"]  # which has Java clients, too
    return f"broker {used[0]}" if used else ALONE


def brokers(item: pytest.Item) -> list[str]:
    """The real brokers that a test uses, by its fixtures and its parameters."""
    assert isinstance(item, pytest.Function)
    named = {each.removeprefix("redelivery_") for each in item.fixturenames}
    for value in parameters(item).values():
        named |= {str(getattr(value, name, "")) for name in ("broker", "needs")}
        if isinstance(value, str) and (found := _ON.fullmatch(value)) is not None:
            named.add(found[1])
        elif isinstance(value, str) and "request" in item.fixturenames:  # which a fixture gets it by, by its name
            named.add(value)
    return sorted(named & SPECS.keys())


def parameters(item: pytest.Item) -> Mapping[str, object]:
    """The parameters of a test, by name."""
    return item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}


def rules_first(items: list[pytest.Item]) -> None:
    """Put state machines behind the other tests of their room.

    Where a rule is broken, its own test says so at once, and a machine only when it has made its example short.
    """
    machines: dict[str, list[pytest.Item]] = {}
    for each in filter(_is_machine, items):
        machines.setdefault(room(each), []).append(each)
    last = {room(each): each for each in items if not _is_machine(each)}
    found: list[pytest.Item] = []
    for each in items:
        if not _is_machine(each) or room(each) not in last:
            found.append(each)
        if last.get(room(each)) is each:
            found += machines.get(room(each), ())
    items[:] = found


def room(item: pytest.Item) -> str:
    """Of tests/broker/engine/… it is broker."""
    return item.nodeid.removeprefix("tests/").partition("/")[0]


def _is_machine(item: pytest.Item) -> bool:
    return item.path.stem.endswith("_machine") or item.name == "runTest"


def order(items: list[pytest.Item]) -> Mapping[str, str]:
    """Put the items of the longest scopes first, then what asks for more time than usual; the scopes, by test."""
    scopes = {item.nodeid: scope(item) for item in items}
    numbers = Counter(scopes.values())
    items.sort(key=lambda item: (-_weight(scopes[item.nodeid], numbers), scopes[item.nodeid], -_asked(item)))
    return {nodeid: found for nodeid, found in scopes.items() if found != ALONE}


def _asked(item: pytest.Item) -> float:
    """The seconds that a test which shares nothing says it may take: begun last, a long one keeps one process alone."""
    mark = item.get_closest_marker("timeout")
    usual = mark is None or not mark.args or mark.kwargs.get("func_only")
    return 0.0 if mark is None or usual or scope(item) != ALONE else float(mark.args[0])


def _weight(name: str, numbers: Mapping[str, int]) -> float:
    if name == ALONE:
        return 0
    return numbers[name] * next((each for begin, each in _SECONDS.items() if name.startswith(begin)), 1)


def write(config: pytest.Config, scopes: Mapping[str, str]) -> None:
    """For the process that schedules, from the first that runs tests."""
    worker: dict[str, str] = getattr(config, "workerinput", {})
    if worker.get("workerid") == "gw0":
        Path(worker[FILE]).write_text(json.dumps(scopes), encoding="utf-8")


def scheduler(config: pytest.Config, log: Any, path: Path) -> Any:
    """pytest-xdist's own, which asks the file; a process that is lost takes no other test's scope with it."""
    from xdist.scheduler import LoadScopeScheduling

    config.option.loadscopereorder = False  # by number of tests, it would

    class Scheduling(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
        _scopes: Mapping[str, str] | None = None

        def _split_scope(self, nodeid: str) -> str:
            if self._scopes is None:
                self._scopes = json.loads(path.read_text(encoding="utf-8"))
            return self._scopes.get(nodeid, nodeid)

        def _assign_work_unit(self, node: Any) -> None:
            """As the original, but one process in four takes from the end."""
            if int(node.gateway.id.removeprefix("gw")) % _EVERY == _EVERY - 1:
                self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
            super()._assign_work_unit(node)

        def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
            """As the original, which counts all that a process has ever done with each test that ends."""
            super().mark_test_complete(node, item_index, duration)
            scope = self._split_scope(self.registered_collections[node][item_index])
            if all(self.assigned_work[node][scope].values()):
                del self.assigned_work[node][scope]

        def remove_node(self, node: Any) -> str | None:
            """As the original, which would run the test again that ended the process, and so the next one."""
            units = [unit for unit in self.assigned_work.get(node, {}).values() if not all(unit.values())]
            if units:
                lost: str = next(nodeid for nodeid, done in units[0].items() if not done)
                units[0][lost] = True
                super().remove_node(node)
                return lost
            return cast("str | None", super().remove_node(node))

    return Scheduling(config, log)
