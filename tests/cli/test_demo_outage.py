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
from tests.run import forked
from tests.run.forked import Forked

import redelivery
from redelivery.cli.demo.outage import DemoOutage, OutageScript, losses
from redelivery.cli.demo.story import Order, StoryStep
from redelivery.cli.demo.view import View

ORDERS = ("a", "b", "c", "d", "e")
QUICK = OutageScript(orders=ORDERS, pace=0.05, work=0.02, killed_after=2, away=0.2, limit=30.0)
COMMAND = (sys.executable, "-W", "error", "-c", "from redelivery.cli.main import main; main()", "demo", "--outage")


def test_a_killed_broker_loses_no_order(capsys: pytest.CaptureFixture[str]) -> None:
    steps: list[StoryStep] = []
    summary = DemoOutage(steps.append, QUICK).run()
    assert summary["problems"] == []
    assert (summary["sent"], summary["processed"]) == (5, 5)
    assert summary["away"] > 0.2
    story = [step.event for step in steps if step.event not in ("sent", "delivered", "processed", "in_doubt")]
    assert [event for event in story if event != "attempt_failed"] in (
        ["outage_started", "broker_killed", "connection_lost", *last, "outage_summary"]
        for last in (["broker_restarted", "connection_back"], ["connection_back", "broker_restarted"])
    )
    for pid in [step.fields["pid"] for step in steps if "pid" in step.fields]:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    assert steps[-1].fields == summary
    for width in (50, 120):
        screen = StringIO()
        with View(Console(file=screen, force_terminal=True, width=width, height=30)) as view:
            for step in steps:
                view(step)
        for text in (f"broker {steps[0].fields['pid']} killed", "connection lost, sends wait", "connected again", "✔"):
            assert text in screen.getvalue()
    with View(Console(), as_json=True) as view:
        for step in steps:
            view(step)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[-1] == {"event": "outage_summary", **summary}
    assert {"event": "broker_killed", "pid": steps[0].fields["pid"]} in lines


def test_what_was_lost_and_what_was_doubled_without_a_reason_is_found() -> None:
    assert losses({"a": Order(1, [1], 1), "b": Order(1, [1, 2], 2, doubts=1)}) == []
    assert losses({"a": Order(1, [1], 1), "b": Order(1)}) == ["order b was lost"]
    assert losses({"a": Order(1, [1], 2)}) == ["order a was processed twice, though nothing was in doubt"]


def test_it_takes_no_broker_of_yours() -> None:
    done = forked.run((*COMMAND, "--url", "stomp://localhost:1"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "--outage kills a broker of its own" in done.stderr


@pytest.mark.long_form
def test_ctrl_c_ends_it_and_its_broker() -> None:
    with Forked[str]((*COMMAND, "--json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
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
from redelivery.cli.demo.outage import BrokerProcess
with BrokerProcess() as broker:
    broker.start()
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
