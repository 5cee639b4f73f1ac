"""The files of examples/deploy do what docs/guide/deploying.md says: run as a process, without a container."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from tests.client.shell import SOON, asked, eventually

from redelivery.broker import EmbeddedBroker

HOME = Path(__file__).parents[2]
DEPLOY = HOME / "examples/deploy"
PAGE = (HOME / "docs/guide/deploying.md").read_text(encoding="utf-8")


def of_image() -> list[str]:
    """The command of the Dockerfile."""
    (command,) = re.findall(r"^CMD (\[.*\])$", (DEPLOY / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
    return [str(each) for each in json.loads(command)]


def of_unit() -> list[str]:
    """The command of the unit."""
    return shlex.split(unit()["Service"]["ExecStart"])


def unit() -> configparser.ConfigParser:
    read = configparser.ConfigParser(interpolation=None)
    read.optionxform = str  # type: ignore[assignment,method-assign]  # systemd tells capital letters apart
    read.read(DEPLOY / "shop-worker.service", encoding="utf-8")
    return read


def pod() -> Any:
    deployment = yaml.safe_load((DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8"))
    return deployment["spec"]["template"]["spec"]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


def value(command: list[str], option: str) -> int:
    return int(command[command.index(option) + 1])


@contextmanager
def running(command: list[str], broker_port: int, health_port: int) -> Iterator[subprocess.Popen[str]]:
    given = command[1:]
    given[given.index("--health-port") + 1] = str(health_port)
    main = ("-W", "error", "-c", "from redelivery.cli.main import main; main()")
    environment = {**os.environ, "REDELIVERY_URL": f"stomp://127.0.0.1:{broker_port}"}
    with subprocess.Popen(  # noqa: S603  # our own
        (sys.executable, *main, *given), cwd=DEPLOY, env=environment, text=True, stderr=subprocess.PIPE
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def path(probe: str) -> str:
    return str(pod()["containers"][0][probe]["httpGet"]["path"])


def test_a_worker_waits_survives_an_outage_and_drains(tmp_path: Path) -> None:
    command = of_image()
    assert [each for each in of_unit()[1:] if each not in ("--health-bind", "127.0.0.1")] == command[1:]
    broker_port, health_port = free_port(), free_port()
    store = str(tmp_path / "store.db")

    def answers(probe: str, status: int) -> None:
        eventually(lambda: asked(health_port, path(probe))[0] == status, within=30)

    def there() -> EmbeddedBroker:
        return EmbeddedBroker("deployed", stomp_port=broker_port, store=store)

    def is_up() -> bool:
        try:
            return asked(health_port, path("startupProbe"))[0] == 200
        except OSError:
            return False

    with running(command, broker_port, health_port) as process:
        eventually(is_up, within=60)
        answers("readinessProbe", 503)
        with there() as broker:
            answers("readinessProbe", 200)
            broker.send("orders", "a chair")
            broker.wait_for("parcels", depth=1, timeout=SOON)
            broker.kill()
        answers("readinessProbe", 503)
        answers("livenessProbe", 200)
        with there() as broker:
            answers("readinessProbe", 200)
            status, metrics = asked(health_port, "/metrics")
            assert (status, "redelivery_connections_total 2" in metrics) == (200, True), metrics
            process.send_signal(signal.SIGTERM)
            _, log = process.communicate(timeout=value(command, "--drain-timeout") + SOON)
            assert process.returncode == 0, log
            assert [each.body for each in broker.messages("parcels")] == ["parcel with a chair"]


def test_the_grace_period_is_longer_than_what_it_is_for() -> None:
    grace, container = pod()["terminationGracePeriodSeconds"], pod()["containers"][0]
    before = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert grace > before + value(of_image(), "--drain-timeout")
    assert container["ports"][0]["containerPort"] == value(of_image(), "--health-port")
    assert int(unit()["Service"]["TimeoutStopSec"]) > value(of_unit(), "--drain-timeout")
    assert f"({before} and {value(of_image(), '--drain-timeout')} of {grace} s)" in PAGE


def test_the_page_shows_the_files() -> None:
    assert f"```dockerfile\n{(DEPLOY / 'Dockerfile').read_text(encoding='utf-8')}```" in PAGE
