from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.conformance.pairs import PAIRS, Kind, Pair
from tests.conformance.stage import Stage
from tests.faults.account import Killed
from tests.faults.campaign import Case, Run, Runs, campaign
from tests.faults.report import REPORT, Report, page, terminal
from tests.faults.stored import broker_of

import redelivery
from redelivery.testing.brokers.real import RealBroker, running

_PAGE = "REDELIVERY_FAULT_REPORT"  # a file to write the report to, where all tests have passed


def pytest_configure(config: pytest.Config) -> None:
    config.stash[REPORT] = Report()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config) -> None:
    report = config.stash[REPORT]
    if not report.runs:
        return
    terminalreporter.section("what was killed")
    for line in terminal(report):
        terminalreporter.line(line)
    path = os.environ.get(_PAGE)
    if path and exitstatus == pytest.ExitCode.OK:
        Path(path).write_text(page(report), encoding="utf-8")
        terminalreporter.line(f"{path} written")


@pytest.fixture
def stage_class() -> type[Stage]:
    """How connections are opened: see tests/conformance."""
    return Stage


@pytest.fixture
def stage(request: pytest.FixtureRequest, stage_class: type[Stage]) -> Iterator[Stage]:
    """ActiveMQ Classic over STOMP, the one to be killed where there is one; with a queue of the test's own."""
    broker = request.getfixturevalue("killable" if "killable" in request.fixturenames else "activemq")
    with ExitStack() as opened:
        pair = Pair(PAIRS["stomp-activemq"], broker.stomp_url)
        yield stage_class(pair, f"faults.{request.node.originalname[:50]}.{uuid.uuid4().hex[:8]}", opened)


@pytest.fixture(scope="package")
def second_activemq(activemq: RealBroker) -> Iterator[RealBroker]:
    """One more broker for the tests that kill it: nobody else's messages are in its store."""
    if activemq.provider is None:
        pytest.skip("this broker was not started by the test run, so it is not ours to kill")
    with running(activemq.name) as broker:
        yield broker


@pytest.fixture
def killable(second_activemq: RealBroker) -> RealBroker:
    """A broker to be killed and restarted by the test; it runs, whatever the one before did."""
    try:
        redelivery.connect(second_activemq.stomp_url, connect_timeout=5).close()
    except redelivery.ConnectError:
        second_activemq.kill()
        second_activemq.restart()
    return second_activemq


@pytest.fixture(scope="session")
def killed_run(request: pytest.FixtureRequest) -> Iterator[Callable[[Kind, str, Killed], Run]]:
    """The run of a pair under one kind of kills. The first call starts all that the selected tests will ask for.

    Each broker is one of its own; two run at a time on two processors. Where there are several processes, pytest-xdist
    gives each of them the tests of one broker (tests/run/scopes.py), and a campaign begins with the first of them.
    """
    wanted = _wanted(request.session)
    one_by_one = "PYTEST_XDIST_WORKER" in os.environ
    report = request.config.stash[REPORT]
    with ThreadPoolExecutor(max(2, os.cpu_count() or 2)) as pool:
        campaigns: dict[str, Future[Runs]] = {}

        def run(kind: Kind, mode: str, killed: Killed) -> Run:
            broker = broker_of(kind)
            if broker not in campaigns:
                names = [broker] if one_by_one else list(wanted)
                campaigns.update({name: pool.submit(campaign, name, wanted[name]) for name in names})
            found = campaigns[broker].result()[kind.name, mode, killed]
            if found is None:
                pytest.skip("this broker was not started by the test run, so it is not ours to kill")
            report.runs.append(found)
            return found

        yield run


def _wanted(session: pytest.Session) -> dict[str, list[Case]]:
    """By broker, what this run will ask for."""
    wanted: dict[str, list[Case]] = {}
    for item in session.items:
        params = getattr(getattr(item, "callspec", None), "params", {})
        if "killed_run" in getattr(item, "fixturenames", ()):
            wanted.setdefault(broker_of(params["kind"]), []).append((params["kind"], params["mode"], params["killed"]))
    return wanted
