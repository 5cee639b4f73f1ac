"""`redelivery broker` as a process: where it listens, what it keeps, what ends it, and what it says to wrong usage."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.policies.readers.documents import address_settings, written
from tests.run.commands import CliRunner
from tests.run.forked import Forked

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.cli.app import app

COMMAND = (sys.executable, "-W", "error", "-c", "from redelivery.cli.main import main; main()", "broker")


def run(*arguments: str) -> subprocess.Popen[str]:
    return Forked[str]((*COMMAND, *arguments), text=True, stderr=subprocess.PIPE, stdout=subprocess.PIPE)


def end(process: subprocess.Popen[str], number: signal.Signals) -> int:
    process.send_signal(number)
    _, said = process.communicate(timeout=150)
    assert "Traceback" not in said
    return process.returncode


def test_it_keeps_messages_and_stops_cleanly(tmp_path: Path) -> None:
    store = tmp_path / "shop.db"
    with run("--store", str(store), "--stomp", "0", "--json") as process:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        assert said["store"] == str(store)
        with redelivery.connect(said["stomp"]) as connection, connection.session() as session:
            session.producer("q").send("kept")
        assert end(process, signal.SIGTERM) == 0
    with EmbeddedBroker("after", store=store) as broker:
        assert [message.body for message in broker.messages("q")] == ["kept"]
    assert not store.with_name("shop.db-wal").exists(), "it was closed, not killed"


def test_placeholders_of_its_file_are_given_as_properties(tmp_path: Path) -> None:
    file = str(written(tmp_path, "broker.xml", address_settings(orders={"max_delivery_attempts": "${tries}"})))
    without = CliRunner().invoke(app, ["broker", "--stomp", "0", "--config", file])
    assert (without.exit_code, "the placeholder ${tries} has no value" in without.stderr) == (2, True)
    with run("--stomp", "0", "--config", file, "--property", "tries=2") as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("redelivery broker: stomp://127.0.0.1:")
        assert end(process, signal.SIGTERM) == 0


def test_ctrl_c_ends_it_with_130() -> None:
    with run("--stomp", "0") as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("redelivery broker: stomp://127.0.0.1:")
        assert end(process, signal.SIGINT) == 130


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "pass --stomp PORT"),
        (("--stomp", "0", "--store", "/"), "is a folder"),
        (("--stomp", "99999"), "not a port"),
        (("--stomp", "0", "--config", "nowhere.xml"), "nowhere.xml"),
        (("--stomp", "x"), "--stomp"),
        (("--stomp", "0", "--property", "tries"), "use NAME=VALUE"),
        (("--stomp", "0", "--property", "tries=2"), "pass its name as config= too"),
    ],
)
def test_wrong_usage_ends_with_2_and_one_line(arguments: tuple[str, ...], says: str) -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    found = CliRunner().invoke(app, ["broker", *arguments])
    assert found.exit_code == 2
    assert says in found.stderr
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
