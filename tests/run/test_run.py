"""What decides which tests run where, and what a run tells at its end, in small runs of their own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest
from tests.run import again

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.timeout(240)  # each starts pytest, some of them with processes

ROOT = Path(__file__).parents[2]
Run: TypeAlias = Callable[..., pytest.RunResult]
TESTS = """
import itertools, os, subprocess, sys
import pytest
from tests.run import again

PAIR = type("Kind", (), {{}})

def kind(name):
    made = PAIR()
    made.name, made.broker = name, "activemq" if name.endswith("activemq") else None
    return made

@pytest.mark.long_form
def test_long(): pass

@pytest.mark.long_form(on="embedded")
@pytest.mark.parametrize("pair", map(kind, ("vm", "stomp-activemq")), ids=lambda pair: pair.name)
def test_window(pair): pass

@pytest.mark.everywhere_in_long_form
@pytest.mark.parametrize("pair", map(kind, ("vm", "stomp-embedded", "stomp-activemq")), ids=lambda pair: pair.name)
def test_rule(pair): pass

@pytest.mark.parametrize("number", range(3))
def test_skipped(number): pytest.skip("no oracle here" if number else "too late")

@pytest.mark.together("oracle")
@pytest.mark.parametrize("number", range(4))
def test_together(number, record_property): record_property("process", os.environ.get("PYTEST_XDIST_WORKER", ""))

def test_children():
    code = "import signal; print(signal.getsignal(signal.SIGINT) == signal.default_int_handler)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "True\\n"

TRIES = itertools.count()

@again.may_hide
@pytest.mark.together("broker artemis")
def test_hidden(): assert next(TRIES) >= {hidden}

@again.may_hide
def test_by_no_broker_that_hides(): assert not {hidden}

def test_retries():
    for _ in range({retries}): again.note(again.STALLED)
"""


@pytest.fixture
def pytester(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder with the conftest of this suite."""
    monkeypatch.setenv("REDELIVERY_FORM", "short")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("REDELIVERY_ACTIVEMQ_URL", "stomp://there:1")  # nobody asks it
    pytester.makeconftest((ROOT / "tests" / "conftest.py").read_text(encoding="utf-8"))
    pytester.makepyfile(test_it=TESTS.format(retries=0, hidden=0))
    pytester.makeini("[pytest]\ntimeout = 60\n")
    return pytester


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run those tests, as given; what pytest says."""

    def run(*arguments: str, retries: int = 0, hidden: int = 0, form: str = "short") -> pytest.RunResult:
        monkeypatch.setenv("REDELIVERY_FORM", form)
        pytester.makepyfile(test_it=TESTS.format(retries=retries, hidden=hidden))
        return pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments)

    return run


def said(result: pytest.RunResult) -> str:
    return "\n".join(result.outlines)


def test_the_short_form_leaves_out_what_is_long_and_rules_on_brokers_that_have_no_part_in_them(run: Run) -> None:
    result = run()
    result.assert_outcomes(passed=11, skipped=3, deselected=2)
    assert "form: short; everything: make test-all" in said(result)
    run(form="all").assert_outcomes(passed=14, skipped=3)


def test_a_run_of_all_tests_is_in_the_first_form_where_no_broker_is(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytester.makeini("[pytest]\ntimeout = 60\ntestpaths = .")
    monkeypatch.setenv("REDELIVERY_REAL_BROKERS", "0")

    def form(*arguments: str) -> str:
        result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--collect-only", *arguments)
        return next(line for line in result.outlines if line.startswith("form: ")).split()[1].strip(";")

    for name in ("REDELIVERY_FORM", "REDELIVERY_ACTIVEMQ_URL", "REDELIVERY_REQUIRE_BROKERS"):
        monkeypatch.setenv(name, "")
    assert form() == "first"
    assert [form("."), form("-k", "test_rule")] == ["short", "short"]
    monkeypatch.setenv("REDELIVERY_FORM", "all")
    assert form() == "all"
    monkeypatch.setenv("REDELIVERY_FORM", "")
    monkeypatch.setenv("REDELIVERY_ACTIVEMQ_URL", "stomp://there:1")
    assert form() == "short"


@pytest.mark.long_form
def test_what_is_named_runs(run: Run) -> None:
    run("test_it.py::test_long").assert_outcomes(passed=1)


@pytest.mark.long_form
def test_an_unknown_form_is_named(run: Run) -> None:
    result = run(form="shrot")
    assert result.ret != 0
    assert "REDELIVERY_FORM is 'shrot': not one of first, short, all, nightly" in said(result) + result.stderr.str()


def test_skips_are_one_line(run: Run) -> None:
    lines = said(run()).splitlines()
    assert [line for line in lines if "skipped: " in line] == ["3 skipped: no oracle here (2); too late (1)"]


@pytest.mark.long_form
def test_skips_are_one_line_for_each_reason_with_its_number_where_that_is_asked_for(run: Run) -> None:
    for arguments in (("-rs",), ("-rs", "-n", "2")):
        lines = said(run(*arguments)).splitlines()
        assert [line for line in lines if line.startswith(" ") and "skipped: " in line] == [
            "    2 skipped: no oracle here",
            "    1 skipped: too late",
        ]


LACKS = """
import pytest
from redelivery.testing.brokers.ports import NotStartedError

@pytest.fixture
def artemis(): raise NotStartedError("it did not start; its last words:\\nI try\\nno memory is left")

def test_of_a_broker(artemis): pass

@pytest.mark.parametrize("number", range(3))
def test_of_another_one(hornetq, number): pass
"""


@pytest.mark.parametrize("required", ["", "artemis"])
def test_a_broker_that_does_not_start_is_a_skip_unless_it_is_required_and_one_that_is_not_there_is_left_out(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, required: str
) -> None:
    pytester.makepyfile(test_it=LACKS)
    monkeypatch.setenv("REDELIVERY_REQUIRE_BROKERS", required)
    monkeypatch.setenv("REDELIVERY_ARTEMIS_URL", "stomp://here:1")
    monkeypatch.setenv("REDELIVERY_REAL_BROKERS", "0")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(skipped=int(not required), errors=int(bool(required)), deselected=3)
    assert required or "1 skipped: it did not start; its last words: no memory is left (1)" in said(result)


@pytest.mark.parametrize("processes", [pytest.param("0", marks=pytest.mark.long_form), "2"])
def test_retries_are_counted_and_too_many_fail_the_run(run: Run, processes: str) -> None:
    most = again.BUDGET[again.STALLED]
    within = run("-n", processes, retries=most)
    assert within.ret == 0
    assert f"{most:5} {again.STALLED} (at most {most})" in said(within)
    beyond = run("-n", processes, retries=most + 1)
    assert beyond.ret == pytest.ExitCode.TESTS_FAILED
    assert f"{again.STALLED}: {most + 1}, more than the budget of {most}" in said(beyond)


def test_what_a_broker_hid_is_played_again_and_counted(run: Run) -> None:
    result = run("-k", "test_hidden", hidden=2)
    assert result.ret == 0
    assert f"    2 {again.HIDDEN} (at most {again.BUDGET[again.HIDDEN]})" in said(result)
    run("-k", "test_hidden", hidden=3).assert_outcomes(failed=1)
    result = run("-k", "test_by_no_broker_that_hides", hidden=1)
    result.assert_outcomes(failed=1)
    assert again.HIDDEN not in said(result)


HIDES = """
import pytest
from tests.run import again
from redelivery.testing.brokers.real import RealBroker

class Provider:
    host, ports, calls = "", {}, []
    def kill(self): self.calls.append("kill")
    def start(self): self.calls.append("start")
    def close(self): pass

@pytest.fixture(scope="session")
def redelivery_artemis(): return RealBroker("artemis", "Artemis", {}, Provider())  # which `artemis` is, in conftest.py

@again.may_hide
def test_until_it_is_started_again(artemis): assert Provider.calls == ["kill", "start"]

def test_the_next(artemis): pass  # else the broker ends with the first play
"""


def test_the_last_play_is_by_a_broker_that_was_started_again(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDELIVERY_REAL_BROKERS", "1")
    monkeypatch.setenv("REDELIVERY_REQUIRE_BROKERS", "artemis")  # or its tests are left out where it is not found
    pytester.makepyfile(test_it=HIDES)
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=2)


HANGS = """
import pytest, time

@pytest.fixture
def slow():
    yield
    time.sleep(3600)

@pytest.mark.timeout(0.5)
def test_hangs(slow): time.sleep(3600)

def test_other(): pass
"""


@pytest.mark.parametrize("processes", [pytest.param("0", marks=pytest.mark.long_form), "2"])
def test_what_hangs_after_its_time_out_is_ended_and_shown(
    run: Run, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, processes: str
) -> None:
    monkeypatch.setenv("REDELIVERY_TEST_HANGS_AFTER", "2")
    pytester.makepyfile(test_hangs=HANGS)
    result = run("-n", processes, "test_hangs.py")
    assert result.ret != 0
    assert re.search(r"failed after \d+ s: test_hangs.py::test_hangs: Failed: Timeout \(>0.5s\)", said(result))
    assert re.search(r'File ".*test_hangs.py", line \d+ in slow', result.stderr.str())
    if processes != "0":
        assert "crashed while running 'test_hangs.py::test_hangs'" in said(result)
        assert "1 passed" in said(result)


@pytest.mark.long_form
def test_what_belongs_together_runs_in_one_process(run: Run, pytester: pytest.Pytester) -> None:
    run("-n", "3", "--junit-xml=run.xml").assert_outcomes(passed=11, skipped=3)
    text = (pytester.path / "run.xml").read_text(encoding="utf-8")
    processes = re.findall(r'name="process" value="(gw\d)"', text)
    assert len(processes) == 4
    assert len(set(processes)) == 1


@pytest.mark.long_form
def test_children_of_a_run_that_ignores_ctrl_c_do_not(run: Run) -> None:
    assert signal.getsignal(signal.SIGINT) != signal.SIG_IGN
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        result = run("-k", "test_children")
    finally:
        signal.signal(signal.SIGINT, before)
    result.assert_outcomes(passed=1, deselected=15)


WITHOUT_LIBRARIES = """
import sys, pytest

class FirstTest:  # of each file, for what makes its parameters; the others would be made by the same
    seen = set()

    def pytest_pycollect_makeitem(self, collector, name):
        if isinstance(collector, pytest.Module) and name.startswith("test_"):
            known = collector.nodeid in self.seen
            self.seen.add(collector.nodeid)
            return [] if known else None

sys.modules |= dict.fromkeys(("proton", "pyspark", "pyarrow"))
sys.exit(pytest.main(["--co", "-q", "-q", "-p", "no:cacheprovider"], plugins=[FirstTest()]))
"""


def test_without_the_libraries_of_extras_every_file_is_collected_or_skipped() -> None:
    """A new file that needs one must not turn a machine red that has no compiler, or not Spark."""
    environment = {
        name: value for name, value in os.environ.items() if name not in {"CI", "REDELIVERY_REQUIRE_BROKERS"}
    }
    done = subprocess.run(  # noqa: S603  # ours
        [sys.executable, "-c", WITHOUT_LIBRARIES],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout[-2000:]
