"""`redelivery run module:app` as a process: what signals do to it, and what it says to wrong usage."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from tests.client.shell import SOON, eventually
from tests.run import forked
from tests.run.commands import CliRunner
from tests.run.forked import Forked

from redelivery.broker import EmbeddedBroker
from redelivery.cli.app import app

COMMAND = (sys.executable, "-W", "error", "-c", "from redelivery.cli.main import main; main()", "run")
PLAIN = """
import time
from pathlib import Path
import redelivery

app = redelivery.App({url!r}, reconnect=redelivery.ReconnectPolicy())

@app.listener("orders")
def handle(message, session):
    Path("entered").touch()
    while message.body == "slow" and not Path("go-on").exists():
        time.sleep(0.01)
    session.producer("out").send(message.body)
"""
AWAITED = (
    PLAIN.replace("def handle(message, session)", "async def handle(message, session)")
    .replace("time.sleep(0.01)", "await asyncio.sleep(0.01)")
    .replace('session.producer("out").send(message.body)', 'await (await session.producer("out")).send(message.body)')
    .replace("import time", "import asyncio")
)


class Shop:
    """A folder with an application, and its broker."""

    def __init__(self, broker: EmbeddedBroker, folder: Path, source: str) -> None:
        self.broker = broker
        self.folder = folder
        (folder / "shop.py").write_text(source.format(url=broker.stomp_url))

    @contextmanager
    def run(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        with Forked[str](
            (*COMMAND, *arguments), cwd=self.folder, text=True, stderr=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            try:
                yield process
            except BaseException:
                process.kill()  # its handler would wait for ever
                raise

    def begin(self, body: str) -> None:
        self.broker.send("orders", body)
        eventually((self.folder / "entered").exists, within=60)  # the process has begun

    def go_on(self) -> None:
        (self.folder / "go-on").touch()

    @property
    def out(self) -> list[object]:
        return [message.body for message in self.broker.messages("out")]


@pytest.fixture(params=[PLAIN, AWAITED], ids=["threads", "tasks"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    with EmbeddedBroker(f"run-{uuid4().hex}", stomp_port=0) as broker:
        yield Shop(broker, tmp_path, request.param)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_finishes_what_is_in_hand(shop: Shop, number: signal.Signals) -> None:
    with shop.run("shop:app") as process:
        shop.begin("slow")
        shop.broker.send("orders", "not taken")
        process.send_signal(number)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        shop.go_on()
        _, log = process.communicate(timeout=SOON)
    assert process.returncode == 0, log
    assert shop.out == ["slow"]
    assert [message.body for message in shop.broker.messages("orders")] == ["not taken"]
    assert f"{number.name}: the messages being handled are finished, within 30 s; a second one ends it at once" in log


def test_a_second_signal_ends_it_and_the_message_stays(shop: Shop) -> None:
    with shop.run("shop:app") as process:
        shop.begin("slow")
        process.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=SOON)
    assert process.returncode == 128 + signal.SIGTERM, log
    assert shop.out == []
    shop.broker.wait_for("orders", depth=1)


def test_a_handler_that_does_not_return_in_time_is_exit_code_1(shop: Shop) -> None:
    with shop.run("shop:app", "--drain-timeout", "0.2") as process:
        shop.begin("slow")
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=SOON)
    assert process.returncode == 1, log
    assert "a handler did not return within 0.2 s" in log
    shop.broker.wait_for("orders", depth=1)


def test_it_goes_on_when_the_broker_has_been_away(shop: Shop) -> None:
    with shop.run("shop:app") as process:
        shop.begin("first")
        eventually(lambda: shop.out == ["first"])
        shop.broker.faults.drop("SEND")
        shop.broker.send("orders", "second")
        eventually(lambda: set(shop.out) == {"first", "second"})
        process.send_signal(signal.SIGTERM)
        assert process.wait(SOON) == 0
        assert process.stderr is not None
        assert "the library reconnects" in process.stderr.read()
        assert process.stdout is not None
        assert process.stdout.read() == ""


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("shop", "write module:app"),
        ("shop:", "write module:app"),
        ("shopp:app", "there is no module 'shopp'"),
        (
            "shop.py:app",
            "there is no module 'shop.py' here or among what is installed; a module is written without .py",
        ),
        ("shop:ap", "shop has no 'ap'"),
        ("shop:handle", "shop:handle is of type function, not a redelivery.App"),
        ("shop:empty", "the app has no listener"),
    ],
)
def test_wrong_usage_says_what_is_right(tmp_path: Path, name: str, says: str) -> None:
    (tmp_path / "shop.py").write_text(PLAIN.format(url="stomp://x") + "\nempty = redelivery.App('vm://y')\n")
    done = forked.run((*COMMAND, name), cwd=tmp_path)
    assert (done.returncode, says in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize(
    ("source", "says"), [("import nothere", "No module named 'nothere'"), ("x = (", "never closed"), ("1 / 0", "zero")]
)
def test_a_module_that_raises_is_shown_by_its_own_lines(tmp_path: Path, source: str, says: str) -> None:
    (tmp_path / "shop.py").write_text(source)
    done = forked.run((*COMMAND, "shop:app"), cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("redelivery run: shop cannot be imported:\n")
    assert f"{says}" in done.stderr.splitlines()[-1]
    assert 'shop.py", line 1' in done.stderr
    assert done.stderr.count("File ") == 1  # neither ours nor typer's nor importlib's


def test_no_broker_is_exit_code_1(tmp_path: Path) -> None:
    source = PLAIN.replace("ReconnectPolicy()", "ReconnectPolicy(startup_maximum_attempts=1)")
    (tmp_path / "shop.py").write_text(source.format(url="stomp://127.0.0.1:1"))
    done = forked.run((*COMMAND, "shop:app"), cwd=tmp_path)
    assert done.returncode == 1
    assert "redelivery run: " in done.stderr


def test_ctrl_c_before_it_is_connected_ends_it(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(PLAIN.format(url="stomp://127.0.0.1:1"))
    with subprocess.Popen((*COMMAND, "shop:app"), cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603
        assert process.stderr is not None
        assert "attempt 1 to connect failed" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=SOON)
    assert (process.returncode, errors.splitlines()[-1]) == (130, "redelivery run: interrupted")
    assert "Traceback" not in errors


@pytest.mark.parametrize("source", [PLAIN, AWAITED], ids=["threads", "tasks"])
@pytest.mark.parametrize("hangs", [False, True], ids=["refused", "no answer"])
def test_sigterm_before_it_is_connected_ends_it_with_0(tmp_path: Path, source: str, hangs: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, socket.socket() as waits:
        port = silent.getsockname()[1] if hangs else 1
        (tmp_path / "shop.py").write_text(source.format(url=f"stomp://127.0.0.1:{port}"))
        with Forked[str]((*COMMAND, "shop:app"), cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            if hangs:
                silent.settimeout(60)
                silent.accept()[0].close()
                waits = silent.accept()[0]  # for an answer, which does not come
            else:
                assert "attempt 1 to connect failed" in process.stderr.readline()
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=SOON)
            waits.close()
    assert (process.returncode, "Traceback" in errors) == (0, False), errors


def test_another_broker_than_the_apps_own(tmp_path: Path) -> None:
    with EmbeddedBroker(f"own-{uuid4().hex}", stomp_port=0) as own, EmbeddedBroker(uuid4().hex, stomp_port=0) as other:
        shop = Shop(own, tmp_path, PLAIN)
        other.send("orders", "x")
        with shop.run("shop:app", "--url", other.stomp_url, "--user", "ada", "--connect-timeout", "5") as process:
            other.wait_for("out", depth=1, timeout=20)
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=30)
        assert process.returncode == 0, errors
        assert other.queue_depth("orders") == 0


def test_its_health_and_metrics_are_served(shop: Shop) -> None:
    with shop.run("shop:app", "--health-port", "0", "--health-bind", "127.0.0.1") as process:
        assert process.stderr is not None
        url = next(found[0] for line in process.stderr if (found := re.search(r"http://127.0.0.1:\d+", line)))
        shop.begin("quick")
        eventually(lambda: shop.out == ["quick"])
        done = CliRunner().invoke(app, ["top", "--app", url, "--once", "--json"])
        assert done.exit_code == 0, done.output
        (orders,) = json.loads(done.stdout)["destinations"]
        assert (orders["name"], orders["counted"]["in"], orders["consumers"]) == ("queue://orders", 1, 1)
        table = CliRunner().invoke(app, ["top", "--app", url, "--once"]).stdout.splitlines()
        assert "connected yes, healthy yes, blocked sends 0, 0 dead letters" in table[0]
        assert table[2].split()[-1] == "queue://orders"
        process.send_signal(signal.SIGTERM)
        for _ in process.stderr:  # so that it never waits for us
            pass
        assert process.wait(SOON) == 0
