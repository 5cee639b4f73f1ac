"""Which of the tests that say the same on several pairs the short forms run, in small runs of their own."""

from __future__ import annotations

import os
from functools import partial

import pytest
from tests.run.test_run import pytester

__all__ = ["pytester"]  # a fixture
pytest_plugins = ["pytester"]
pytestmark = pytest.mark.timeout(240)  # each starts pytest
ALIKE = """
import pytest

class Kind:
    cannot = {}
    def __init__(self, name, broker=None): self.name, self.broker = name, broker

@pytest.mark.parametrize("protocol", ["vm", "stomp", "amqp"])
@pytest.mark.parametrize("number", range(2))
def test_rule(protocol, number): assert protocol != "vm"

@pytest.mark.short_form
def test_a_program(): pass

PAIRS = [Kind("vm"), Kind("stomp-activemq", "activemq"), Kind("amqp-activemq", "activemq")]

@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
@pytest.mark.parametrize("mode", ["auto", "client", "transacted"])
def test_modes(pair, mode): assert pair.broker is None or mode == {"s": "auto", "a": "client"}[pair.name[0]]
"""


def test_alike_tests_are_one_in_the_first_form_and_on_real_brokers_one_in_turn(pytester: pytest.Pytester) -> None:
    place = pytester.mkdir("tests") / "client"
    place.mkdir()
    (pytester.path / "test_it.py").unlink()
    (place / "test_alike.py").write_text(ALIKE, encoding="utf-8")
    run_there = partial(pytester.runpytest_subprocess, "-p", "no:cacheprovider", "--import-mode=importlib")
    run_there("-k", "test_modes").assert_outcomes(passed=5, deselected=11)
    os.environ["REDELIVERY_FORM"] = "first"  # which the fixture sets back
    run_there().assert_outcomes(passed=2 + 3, deselected=10)


OF_A_PROTOCOL = """
import pytest

class Kind:
    broker = "activemq"
    def __init__(self, name, *cannot): self.name, self.cannot = name, dict.fromkeys(cannot)

PAIRS = [Kind("stomp-a"), Kind("stomp-b"), Kind("amqp-a"), Kind("amqp-b"), Kind("amqp-c", "groups")]

@pytest.mark.needs("groups")
@pytest.mark.parametrize("mode", ["auto", "client"])
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_rule(pair, mode): pass

@pytest.mark.parametrize("killed", ["client", "broker"])
@pytest.mark.parametrize("kind", PAIRS, ids=lambda pair: pair.name)
def test_killed(kind, killed): pass
"""


def test_on_real_brokers_a_rule_of_our_side_has_a_pair_of_each_protocol_and_other_rules_have_each_mode_there(
    pytester: pytest.Pytester,
) -> None:
    for file in ("test_close.py", "test_counts.py", "test_kills.py"):
        (pytester.path / file).write_text(OF_A_PROTOCOL, encoding="utf-8")
    options = ("-p", "no:cacheprovider", "--collect-only", "-q", "-o", "markers=needs: of a pair")
    lines = pytester.runpytest_subprocess(*options).outlines

    def found(test: str) -> list[str]:
        return sorted(line.partition("[")[2].strip("]") for line in lines if test in line)

    assert [each[:6] for each in found("close.py::test_rule[")] == ["amqp-a", "amqp-c", "stomp-"]
    for test in ("counts.py::test_rule[", "kills.py::test_killed["):
        pairs, modes = zip(*(each.rsplit("-", 1) for each in found(test)), strict=True)
        assert pairs == ("amqp-a", "amqp-b", "amqp-c", "stomp-a", "stomp-b")
        assert len(set(modes[:3])) == len(set(modes[3:])) == 2
        assert modes[0] != modes[3]


MARKED = """
import pytest

class Kind:
    def __init__(self, name, *cannot): self.name, self.cannot = name, dict.fromkeys(cannot)

PAIRS = [Kind("a"), Kind("b"), Kind("c", "groups")]

@pytest.mark.in_turns("pair")
@pytest.mark.needs("groups")
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
@pytest.mark.parametrize("mode", ["auto", "client", "transacted"])
def test_each_mode_on_a_pair(pair, mode): pass

@pytest.mark.in_turns()
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
@pytest.mark.parametrize("mode", ["auto", "client"])
def test_once(pair, mode): pass
"""


@pytest.mark.parametrize("form", ["first", "short", "all"])
def test_marked_ones_are_in_turns_where_they_can_say_their_rule(pytester: pytest.Pytester, form: str) -> None:
    (pytester.path / "test_it.py").write_text(MARKED, encoding="utf-8")
    os.environ["REDELIVERY_FORM"] = form  # which the fixture sets back
    options = ("-p", "no:cacheprovider", "--collect-only", "-q", "-o", "markers=needs: of a pair")
    lines = pytester.runpytest_subprocess(*options).outlines
    modes = [line.partition("[")[2].strip("]") for line in lines if "each_mode" in line]
    once = [line for line in lines if "once" in line]
    if form == "all":
        assert (len(modes), len(once)) == (9, 6)
    else:
        assert [each.partition("-")[0] for each in modes] == ["auto", "client", "transacted"]
        assert {each.partition("-")[2] for each in modes} == {"a", "b"}
        assert len(once) == 1


OF_LOOPS = """
import pytest

@pytest.fixture(autouse=True, params=["asyncio", "uvloop"])
def _loops(request): pass

@pytest.mark.parametrize("number", range(20))
def test_alone(number): pass
"""


def test_a_rule_of_tasks_has_one_event_loop_but_where_it_is_about_that(pytester: pytest.Pytester) -> None:
    for file in ("test_loop.py", "test_close.py"):
        (pytester.path / file).write_text(OF_LOOPS, encoding="utf-8")
    lines = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--collect-only", "-q").outlines

    def found(test: str) -> list[tuple[str, ...]]:
        return sorted(tuple(line.partition("[")[2].strip("]").split("-")) for line in lines if test in line)

    alone = found("close.py::test_alone[")
    assert len(alone) == 20
    assert {"asyncio", "uvloop"} < {value for each in alone for value in each}
    assert len(found("loop.py::test_alone[")) == 40


OF_OURS = """
import pytest

class Kind:
    broker, cannot = None, {}
    def __init__(self, name): self.name = name

PAIRS = [Kind("vm"), Kind("stomp-embedded"), Kind("amqp-embedded")]

@pytest.mark.parametrize("mode", ["auto", "client"])
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_modes(pair, mode): pass

@pytest.mark.parametrize("shell", ["threads", "asyncio"])
@pytest.mark.parametrize("number", range(20))
def test_shells(number, shell): pass
"""


def test_a_rule_of_our_side_has_each_mode_on_one_embedded_pair_and_one_of_the_client_has_one_shell(
    pytester: pytest.Pytester,
) -> None:
    place = pytester.mkdir("tests") / "client"
    place.mkdir()
    for file in (pytester.path / "test_close.py", pytester.path / "test_counts.py", place / "test_it.py"):
        file.write_text(OF_OURS, encoding="utf-8")
    options = ("-p", "no:cacheprovider", "--import-mode=importlib", "--collect-only", "-q")
    lines = pytester.runpytest_subprocess(*options).outlines
    modes = [line.rpartition("-")[2] for line in lines if "test_close.py::test_modes" in line]
    assert sorted(modes) == ["auto]", "client]"]
    assert sum("test_counts.py::test_modes" in line for line in lines) == 6
    shells = [
        line.partition("[")[2].strip("]").split("-") for line in lines if "client/test_it.py::test_shells" in line
    ]
    assert len(shells) == 20
    assert {each for values in shells for each in values} > {"threads", "asyncio"}
    assert sum("test_close.py::test_shells" in line for line in lines) == 40
