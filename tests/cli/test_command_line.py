"""The command line as a user has it: a process with its output, its exit code and Ctrl-C."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import pytest
from tests.run import forked
from tests.run.commands import CliRunner
from tests.run.forked import Forked

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.cli.app import app
from redelivery.cli.main import main
from redelivery.testing.brokers.ports import free_ports
from redelivery.testing.brokers.real import RealBroker

COMMAND = (sys.executable, "-W", "error", "-c", "from redelivery.cli.main import main; main()")
SECONDS = 20.0  # the demo ends by itself within this time


def run(*arguments: str, timeout: float = 50) -> subprocess.CompletedProcess[str]:
    return forked.run((*COMMAND, *arguments), timeout=timeout)


def interrupt(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Ctrl-C, and what was written until the end."""
    process.send_signal(signal.SIGINT)
    return process.communicate(timeout=15)


def adds_up(events: Iterable[dict[str, Any]]) -> None:
    """Count again what the summary counts."""
    *events, summary = events
    kinds = Counter(event["event"] for event in events)
    assert summary["event"] == "summary"
    assert summary["problems"] == []
    assert kinds["sent"] == summary["sent"] == summary["processed"] + summary["dead_letters"]
    assert kinds["processed"] == summary["processed"] > 0
    assert kinds["dead_lettered"] == summary["dead_letters"] > 0
    assert kinds["delivered"] == summary["deliveries"] == kinds["processed"] + kinds["failed"]
    again = [event for event in events if event["event"] == "delivered" and event["redelivered"]]
    assert len(again) == summary["redeliveries"] == kinds["delivered"] - kinds["sent"]
    assert all(event["measured"] >= event["planned"] for event in again)
    for letter in (event for event in events if event["event"] == "dead_lettered"):
        tries = [each for each in events if each["event"] == "delivered" and each["order"] == letter["order"]]
        assert len(tries) == letter["deliveries"]
        assert "exceeds redelivery policy limit" in letter["cause"]


def test_demo_ends_by_itself_and_adds_up_over_stomp_on_the_embedded_broker() -> None:
    done = run("demo", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert events[0]["url"].startswith("stomp://127.0.0.1:")
    assert events[0]["dead_letter_queue"] == "ActiveMQ.DLQ"
    adds_up(events)
    assert events[-1]["seconds"] < SECONDS


def left_by(started: dict[str, Any], url: str) -> list[str]:
    """What a run has left in its queues."""
    with redelivery.connect(url) as connection, connection.session() as session:
        queues = (started["queue"], started["dead_letter_queue"])
        left = [session.consumer(name).receive(timeout=0.5) for name in queues]
        return [message.body for message in left if message is not None]


def until(process: subprocess.Popen[str], kind: str) -> dict[str, Any]:
    """Read events up to the first of a kind; the first event of all."""
    assert process.stdout is not None
    first = json.loads(process.stdout.readline())
    for line in process.stdout:
        if json.loads(line)["event"] == kind:
            break
    assert isinstance(first, dict)
    return first


@pytest.mark.parametrize("moment", ["sent", "delivered", "failed"])
def test_ctrl_c_ends_the_demo_cleanly(moment: str) -> None:
    with Forked[str](
        (*COMMAND, "demo", "--json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        until(process, moment)
        _, errors = interrupt(process)
    assert (process.returncode, errors) == (130, "redelivery demo: interrupted\n")


def test_ctrl_c_leaves_nothing_on_a_real_broker(activemq: RealBroker) -> None:
    with Forked[str](
        (*COMMAND, "demo", "--json", "--url", activemq.stomp_url),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        started = until(process, "dead_lettered")
        _, errors = interrupt(process)
    assert (process.returncode, errors) == (130, "redelivery demo: interrupted\n")
    assert left_by(started, activemq.stomp_url) == []


def test_on_a_terminal_it_is_live_and_ctrl_c_ends_it() -> None:
    ours, theirs = pty.openpty()
    shown = b""
    with Forked[bytes](
        (*COMMAND, "demo", "--url", "vm://live"),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "24"},
        start_new_session=True,
    ) as process:
        os.close(theirs)
        while b"is redelivered in" not in shown:
            shown += os.read(ours, 65536)
        process.send_signal(signal.SIGINT)
        try:
            while piece := os.read(ours, 65536):
                shown += piece
        except OSError:
            pass  # Linux says so where the other end is closed
        finally:
            os.close(ours)
        process.wait(timeout=15)
    assert process.returncode == 130
    assert b"Traceback" not in shown
    assert shown.rstrip().endswith(b"redelivery demo: interrupted")


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("nonsense", "a connection URL begins with a scheme, like 'vm://name' or 'stomp://host:61613'"),
        ("stomp://localhost:port", "the port must be an integer from 1 to 65535"),
        ("gopher://localhost:70", "gopher"),
        ("stomp://127.0.0.1:{free}", "127.0.0.1:{free}"),
        ("stomp://127.0.0.1:{free}?jms.redeliveryPolicy.maxRedeliveries=3", "jms.redeliveryPolicy.maxRedeliveries"),
    ],
)
def test_a_wrong_url_is_one_clear_line(url: str, says: str) -> None:
    free = str(free_ports(["stomp"])["stomp"])
    done = CliRunner().invoke(app, ["demo", "--url", url.replace("{free}", free)])
    assert done.exit_code == 1
    assert done.stdout == ""
    assert done.stderr.startswith("redelivery demo: ")
    assert says.replace("{free}", free) in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_openwire_port_is_no_stomp_port(activemq: RealBroker) -> None:
    done = run("demo", "--url", activemq.openwire_url.replace("tcp://", "stomp://"))
    assert done.returncode == 1
    # now and then the broker closes before it has said who it is
    assert "it looks like OpenWire" in done.stderr or "is it a STOMP port" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_broker_that_goes_away_half_way_is_one_clear_line() -> None:
    with EmbeddedBroker("goes", stomp_port=0) as broker:
        broker.faults.drop("COMMIT", nth=2)
        done = run("demo", "--json", "--url", broker.stomp_url)
    assert done.returncode == 1
    assert "closed the connection" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_broker_that_falls_silent_half_way_is_said_within_the_time() -> None:
    with EmbeddedBroker("silent", stomp_port=0) as broker:
        fault = broker.faults.swallow("COMMIT", nth=2)
        done = run("demo", "--json", "--url", broker.stomp_url, timeout=SECONDS)
        assert fault.hits == 1
    assert done.returncode == 1
    assert "the broker's answer to the commit did not come" in done.stderr


@pytest.mark.parametrize("arguments", [("demo", "--what"), ("demonstrate",), ("demo", "--url"), ("demo", "now")])
def test_wrong_usage_is_exit_code_2(arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_without_the_extra_it_says_what_to_install() -> None:
    code = "import sys; sys.modules['typer'] = None; from redelivery.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "demo"], capture_output=True, text=True, timeout=150)  # noqa: S603  # our own
    assert done.returncode == 1
    assert done.stderr == "redelivery: the command line needs typer; from the clone: pip install '.[cli]'\n"


def test_version() -> None:
    done = subprocess.run((*COMMAND, "--version"), capture_output=True, text=True, timeout=50)  # noqa: S603  # our own
    assert (done.returncode, done.stdout, done.stderr) == (0, f"redelivery {redelivery.__version__}\n", "")
    done = subprocess.run((*COMMAND, "--help"), capture_output=True, text=True, timeout=50)  # noqa: S603  # our own
    assert "--version" in done.stdout


def test_ctrl_c_while_it_is_imported_ends_it_as_later(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted(ModuleType):
        def __getattr__(self, name: str) -> object:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "redelivery.cli.app", Interrupted("app"))
    monkeypatch.setattr(sys, "argv", ["redelivery", "demo"])
    with pytest.raises((SystemExit, KeyboardInterrupt)) as ended:
        main()
    assert isinstance(ended.value, SystemExit)
    assert (ended.value.code, capsys.readouterr().err) == (130, "redelivery: interrupted\n")
