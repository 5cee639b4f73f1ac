"""`redelivery console` as a process: where it listens, what ends it, and what it says to wrong usage."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.run.commands import CliRunner
from tests.run.forked import Forked

from redelivery.broker import EmbeddedBroker
from redelivery.cli.app import app

COMMAND = (sys.executable, "-W", "error", "-c", "from redelivery.cli.main import main; main()", "console")
TOKEN = "0123456789abcdef-secret"  # noqa: S105  # of these tests


@contextmanager
def console(*arguments: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A running console, and its address."""
    with Forked[str](
        (*COMMAND, "--port", "0", *arguments),
        text=True,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **environment},
    ) as process:
        try:
            assert process.stdout is not None
            said = re.search(r"http://\S+", process.stdout.readline())
            assert said is not None
            yield process, said[0]
        finally:
            process.kill()


def status(address: str, **headers: str) -> int:
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=30) as answer:  # noqa: S310
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.short_form
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_signal_ends_it(number: signal.Signals, code: int) -> None:
    with EmbeddedBroker(stomp_port=0) as broker, console("--url", broker.stomp_url) as (process, address):
        assert status(address) == 200
        process.send_signal(number)
        _, said = process.communicate(timeout=30)
        assert (process.returncode, "Traceback" in said) == (code, False)
        assert ("interrupted" in said) == (code == 130)


@pytest.mark.short_form
def test_ctrl_c_waits_for_no_broker() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"stomp://127.0.0.1:{silent.getsockname()[1]}"
        with console("--url", url) as (process, address):
            asking = subprocess.Popen(  # noqa: S603
                (sys.executable, "-c", f"import urllib.request; urllib.request.urlopen({address!r})"),
                stderr=subprocess.DEVNULL,
            )
            peer, _ = silent.accept()  # the page waits for this broker now
            began = time.monotonic()
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130
            assert time.monotonic() - began < 3
            asking.wait(30)
            peer.close()


@pytest.mark.short_form
def test_a_port_that_is_used_is_said() -> None:
    with EmbeddedBroker(stomp_port=0) as broker, console("--url", broker.stomp_url) as (_, address):
        port = address.rpartition(":")[2].strip("/")
        done = CliRunner().invoke(app, ["console", "--url", broker.stomp_url, "--port", port])
        assert (done.exit_code, "another console" in done.stderr) == (2, True)


def test_others_need_a_token(tmp_path: Path) -> None:
    arguments = ["console", "--url", "stomp://127.0.0.1:1", "--bind", "0.0.0.0", "--port", "0"]  # noqa: S104
    done = CliRunner(env={"REDELIVERY_CONSOLE_TOKEN": ""}).invoke(app, arguments)
    assert (done.exit_code, "--token-file" in done.stderr) == (2, True)
    file = tmp_path / "token"
    for text in ("", "\n", "short\n"):
        file.write_text(text)
        done = CliRunner().invoke(app, [*arguments, "--token-file", str(file)])
        assert done.exit_code == 2
    file.write_text(f"{TOKEN}\n")
    with console("--url", "stomp://127.0.0.1:1", "--token-file", str(file)) as (_, address):
        assert status(f"{address}127.0.0.1-1/doctor", authorization=f"Bearer {TOKEN}") == 200


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--url", "vm://nobody"],
        ["--url", "stomp://h", "--config", "/none.xml"],
        ["--url", "gopher://x", "--port", "0"],
    ],
)
def test_wrong_usage_is_said(arguments: list[str]) -> None:
    done = CliRunner(env={"REDELIVERY_URL": ""}).invoke(app, ["console", *arguments])
    assert done.exit_code == 2


@pytest.mark.short_form
def test_several_brokers_are_there() -> None:
    with (
        EmbeddedBroker("a", stomp_port=0) as one,
        EmbeddedBroker("b", stomp_port=0) as two,
        console("--url", one.stomp_url, "--url", two.stomp_url) as (_, address),
    ):
        for each in (one, two):
            key = each.stomp_url.removeprefix("stomp://").replace(":", "-")
            assert status(f"{address}{key}/") == 200
