"""The demo of an outage: a broker is killed under a worker and a sender, and nothing is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from tests.client.shell import eventually

import redelivery
from redelivery.cli.demo.events import (
    Back,
    Delivered,
    Event,
    Gone,
    Killed,
    OutageStarted,
    OutageSummary,
    Processed,
    Redialled,
    Restarted,
    Sent,
    Uncertain,
)
from redelivery.cli.demo.lines import JsonView, LineView
from redelivery.cli.demo.outage import Outage, OutageScript, OutageTally
from redelivery.cli.demo.outage_view import OutageView

ORDERS = ("a", "b", "c", "d", "e")
QUICK = OutageScript(orders=ORDERS, pace=0.05, work=0.02, killed_after=2, away=0.2, limit=30.0)
COMMAND = (sys.executable, "-W", "error", "-c", "from redelivery.cli.main import main; main()", "demo", "--outage")


def test_a_killed_broker_loses_no_order() -> None:
    events: list[Event] = []
    summary = Outage(events.append, QUICK).run()
    assert summary.problems == ()
    assert (summary.sent, summary.processed) == (5, 5)
    assert summary.away > 0.2
    kinds = [type(event) for event in events]
    assert [kind for kind in kinds if kind in (Killed, Gone, Back)] == [Killed, Gone, Back]
    assert [kind for kind in kinds if kind in (Killed, Gone, Restarted)] == [Killed, Gone, Restarted]
    assert Redialled in kinds
    killed, restarted = (next(event for event in events if isinstance(event, kind)) for kind in (Killed, Restarted))
    assert isinstance(killed, Killed)
    assert isinstance(restarted, Restarted)
    for pid in (killed.pid, restarted.pid):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert events[-1] == summary


def counted(*events: Event) -> OutageSummary:
    tally = OutageTally()
    for event in events:
        tally.add(event)
    return tally.summary(("a", "b"), 1.0, 2.0)


def test_the_tally_finds_what_was_lost_and_what_was_doubled_without_a_reason() -> None:
    fine = (Sent("a"), Delivered("a", 1, False, None, None), Processed("a"), Sent("b"), Processed("b"))
    assert counted(*fine).problems == ()
    assert counted(*fine[:3]).problems == ("order b was lost",)
    assert counted(*fine, Processed("a")).problems == ("order a was processed twice, though nothing was in doubt",)
    doubted = counted(*fine, Uncertain("a", "commit"), Delivered("a", 2, True, None, None), Processed("a"))
    assert (doubted.problems, doubted.doubled, doubted.in_doubt, doubted.redelivered) == ((), 1, 1, 1)


PLAYED: tuple[Event, ...] = (
    OutageStarted("embedded broker", 7, "stomp://127.0.0.1:61613", "orders", ("a", "b")),
    Sent("a"),
    Delivered("a", 1, False, None, None),
    Killed(7),
    Gone("reset by peer"),
    Redialled(1, "refused"),
    Uncertain("a", "commit"),
    Uncertain("b", "send"),
    Restarted(8),
    Back(2.5),
    Sent("b"),
    Delivered("a", 1, False, None, None),
    Processed("a"),
    Processed("b"),
    OutageSummary(2, 2, 1, 2, 0, 2.5, 4.0, ()),
)


@pytest.mark.parametrize("width", [80, 120])
def test_the_terminal_shows_the_outage(width: int) -> None:
    screen = StringIO()
    with OutageView(Console(file=screen, force_terminal=True, width=width, height=30)) as view:
        for event in PLAYED:
            view(event)
    shown = screen.getvalue()
    for text in ("broker 7 killed", "attempt 1", "its send is in doubt", "broker 8 started", "connected again", "✔"):
        assert text in shown
    assert "it adds up: none lost" in shown


def test_lines_and_json_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    for view in (LineView(), JsonView()):
        for event in PLAYED:
            view(event)
    lines = capsys.readouterr().out.splitlines()
    assert "connection lost, sends wait: reset by peer" in lines
    assert json.loads(lines[-1])["event"] == "outage_summary"
    assert json.loads(lines[len(PLAYED) + 3]) == {"event": "broker_killed", "pid": 7}


def test_it_takes_no_broker_of_yours() -> None:
    done = subprocess.run((*COMMAND, "--url", "stomp://localhost:1"), capture_output=True, text=True, timeout=150)  # noqa: S603  # ourselves
    assert (done.returncode, done.stdout) == (2, "")
    assert "--outage kills a broker of its own" in done.stderr


@pytest.mark.long_form
def test_ctrl_c_ends_it_and_its_broker() -> None:
    with subprocess.Popen((*COMMAND, "--json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603  # as above
        watchdog = threading.Timer(40, process.kill)
        watchdog.start()
        assert process.stdout is not None
        started = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
        watchdog.cancel()
    assert (process.returncode, errors) == (130, "redelivery demo: interrupted\n")
    with pytest.raises(ProcessLookupError):
        os.kill(started["pid"], 0)


HOLDER = """
import time
from redelivery.cli.demo.broker_process import BrokerProcess
with BrokerProcess() as broker:
    print(broker.url, flush=True)
    time.sleep(60)
"""


def test_its_broker_ends_with_it_however_that_ends(tmp_path: Path) -> None:
    command = (sys.executable, "-c", HOLDER)
    environment = {**os.environ, "TMPDIR": str(tmp_path)}  # the broker's store stays behind
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:  # noqa: S603  # ours
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        redelivery.connect(url).close()
        process.kill()

    def refused() -> bool:
        try:
            redelivery.connect(url).close()
        except redelivery.ConnectError:
            return True
        return False

    eventually(refused)
