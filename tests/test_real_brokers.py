"""Where real brokers come from: found, missing with a reason, required, and never left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from textwrap import dedent

import pytest

import redelivery
from redelivery import ConnectError
from redelivery.testing.brokers import containers
from redelivery.testing.brokers.containers import ContainerBroker
from redelivery.testing.brokers.native import NativeBroker
from redelivery.testing.brokers.real import RealBroker, UnavailableError, missing, required, running
from redelivery.testing.brokers.specs import SPECS


def no_containers(image: str | None) -> str | None:
    """Why there is no container test here; None: there is."""
    if image is None:
        return "REDELIVERY_CONTAINER_IMAGE names no image; scripts/container-image makes one"
    return containers.missing(SPECS["activemq"])


FIRST = ("activemq", "rabbitmq", "rabbitmq4")  # of each way to have one, in the short form
QUEUE_AGE = 3.0  # seconds; a kill -9 may take a younger queue of RabbitMQ's with it (docs/brokers/rabbitmq.md)
# What this run must have, before the tests change the environment.
REQUIRED = {name: required(name) for name in SPECS}
MISSING = {name: spec.source.missing() for name, spec in SPECS.items()}
IMAGE = os.environ.get("REDELIVERY_CONTAINER_IMAGE")
WITHOUT_CONTAINERS = no_containers(IMAGE)
SUPERVISE = Path(__file__).parents[1] / "testing" / "brokers" / "supervise.py"


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name == "CI" or name.startswith("REDELIVERY_"):
            monkeypatch.delenv(name)


def use_activemq(tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A user's test run on a machine without Java and Docker."""
    test = tmp_path / "test_mine.py"
    test.write_text("def test_mine(redelivery_activemq):\n    assert redelivery_activemq.stomp_url\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-ra", "-p", "no:cacheprovider", str(test)]
    inherited = {name: value for name, value in os.environ.items() if name in {"HOME", "LANG"}}
    environment = {**inherited, "PATH": str(tmp_path), "DOCKER_HOST": "unix:///nowhere.sock", **environment}
    return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=150)  # noqa: S603  # our own command


def test_no_broker_is_started_or_fetched_unless_the_user_says_so(tmp_path: Path) -> None:
    for said in ({}, {"REDELIVERY_REAL_BROKERS": "0"}):
        run = use_activemq(tmp_path, **said)
        assert run.returncode == 0
        assert "set REDELIVERY_REAL_BROKERS=1 to start activemq for the tests, or REDELIVERY_ACTIVEMQ_URL" in run.stdout
        assert "java" not in run.stdout
    assert "passed" in use_activemq(tmp_path, REDELIVERY_ACTIVEMQ_URL="stomp://localhost:1").stdout


def test_missing_broker_is_a_skip_with_its_reason(tmp_path: Path) -> None:
    run = use_activemq(tmp_path, REDELIVERY_REAL_BROKERS="1")
    assert run.returncode == 0
    assert "1 skipped" in run.stdout
    assert "java" in run.stdout
    assert "no Docker daemon answers" in run.stdout


@pytest.mark.parametrize("required", [False, True])
def test_a_broker_that_is_found_and_does_not_start_is_a_skip_with_its_reason_where_none_is_required(
    tmp_path: Path, required: bool
) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho no memory is left\nexit 1\n", encoding="utf-8")
    java.chmod(0o755)
    (tmp_path / "redelivery" / "apache-activemq-5.18.3").mkdir(parents=True)
    asked = {"REDELIVERY_REQUIRE_BROKERS": "activemq"} if required else {"REDELIVERY_REAL_BROKERS": "1"}
    run = use_activemq(tmp_path, XDG_CACHE_HOME=str(tmp_path), **asked)
    assert run.returncode == int(required)
    assert f"{'activemq is required: ' if required else ''}ActiveMQ Classic 5.18.3 did not start" in run.stdout
    assert "no memory is left" in run.stdout
    assert ("1 error" if required else "1 skipped") in run.stdout


def test_two_threads_may_look_for_docker() -> None:
    pytest.importorskip("testcontainers")
    code = """
        import gc, random, time, warnings
        from concurrent.futures import ThreadPoolExecutor
        from redelivery.testing.brokers import containers
        from redelivery.testing.brokers.specs import SPECS

        collect = gc.collect
        gc.collect = lambda: time.sleep(random.random() / 20) or collect()  # they overlap in every way
        import docker  # it has filters of its own
        before = list(warnings.filters)
        with ThreadPoolExecutor(8) as pool:
            print({*pool.map(containers.missing, [*SPECS.values()] * 8)})
        assert warnings.filters == before, warnings.filters
    """
    environment = {**os.environ, "DOCKER_HOST": "unix:///nowhere.sock"}
    command = [sys.executable, "-W", "always", "-c", dedent(code)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=150)  # noqa: S603  # our own command
    assert run.returncode == 0, run.stderr
    assert run.stdout == "{'no Docker daemon answers'}\n"
    assert "ResourceWarning" not in run.stderr


@pytest.mark.parametrize("environment", [{"CI": "true"}, {"REDELIVERY_REQUIRE_BROKERS": "qpid, activemq"}])
def test_missing_broker_that_is_required_is_a_failure(tmp_path: Path, environment: dict[str, str]) -> None:
    run = use_activemq(tmp_path, **environment)
    assert run.returncode == 1
    assert "activemq is required: no ActiveMQ Classic" in run.stdout


def test_what_is_required_is_named_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not required("activemq")
    monkeypatch.setenv("CI", "true")
    assert required("activemq")
    monkeypatch.setenv("REDELIVERY_REQUIRE_BROKERS", "")
    assert not required("activemq")


def test_a_broker_that_runs_already_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDELIVERY_ACTIVEMQ_URL", "stomp://there:61613, amqp://there:5672")
    assert missing("activemq") is None
    with running("activemq") as broker:
        assert (broker.stomp_url, broker.amqp_url) == ("stomp://there:61613", "amqp://there:5672")
        with pytest.raises(UnavailableError, match="names no tcp://"):
            _ = broker.openwire_url
        with pytest.raises(UnavailableError, match="not ours to kill"):
            broker.kill()


def processes(text: str) -> list[str]:
    """The command lines of this machine's processes that contain the text."""
    lines = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # it has just ended
            lines.append(file.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return [line for line in lines if text in line]


def url_of(broker: RealBroker) -> str:
    if broker.name != "qpid":
        return broker.stomp_url
    pytest.importorskip("proton")
    return broker.amqp_url


def send_and_receive_around(broker: RealBroker, during: Callable[[], None]) -> None:
    """What was sent before is there afterwards."""
    url = url_of(broker)
    with redelivery.connect(url) as connection, connection.session() as session:
        session.producer("kept").send("after the kill", persistent=True)
        if broker.name.startswith("rabbitmq"):
            time.sleep(QUEUE_AGE)  # nothing says when the queue itself is safe
    during()
    with redelivery.connect(url) as connection, connection.session() as session:
        message = session.consumer("kept").receive(timeout=10)
        assert message is not None
        assert message.body == "after the kill"


@pytest.mark.timeout(700)  # the first run fetches the broker
@pytest.mark.in_turns("name")
@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=() if each in FIRST else pytest.mark.long_form) for each in SPECS]
)
def test_what_a_broker_confirmed_survives_a_kill_and_nothing_survives_the_end(name: str) -> None:
    reason = MISSING[name]
    if reason is not None:
        pytest.fail(reason) if REQUIRED[name] else pytest.skip(reason)
    with running(name) as broker:
        assert isinstance(broker.provider, NativeBroker)
        folder = str(broker.provider.folder)

        def kill_and_restart() -> None:
            assert processes(folder)
            broker.kill()
            assert not processes(folder)
            broker.restart()

        send_and_receive_around(broker, kill_and_restart)
    assert not processes(folder)
    assert not Path(folder).exists()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", SPECS)
def test_container_provider(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same in a container of the image that `scripts/container-image` makes."""
    if WITHOUT_CONTAINERS is not None:
        pytest.skip(WITHOUT_CONTAINERS)
    assert IMAGE is not None
    monkeypatch.setenv("REDELIVERY_CONTAINER_IMAGE", IMAGE)
    monkeypatch.setenv("REDELIVERY_BROKER_PROVIDER", "containers")
    with running(name) as broker:
        assert isinstance(broker.provider, ContainerBroker)

        def kill_and_restart() -> None:
            broker.kill()
            with pytest.raises(ConnectError):
                redelivery.connect(url_of(broker), connect_timeout=2)
            broker.restart()

        send_and_receive_around(broker, kill_and_restart)


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("REDELIVERY_ACTIVEMQ_URL", "http://there", "http://there"),
        ("REDELIVERY_BROKER_PROVIDER", "cloud", "neither 'native' nor 'containers'"),
    ],
)
def test_bad_environment_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str, complaint: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(UnavailableError, match=complaint), running("activemq"):
        pass


# Its memory makes its end take a while.
SLEEPS = "import os, time; held = b'x' * (200 << 20); print(os.getpid(), flush=True); time.sleep(60)"
HAS_A_CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SLEEPS!r}])"  # as RabbitMQ's script


@pytest.mark.parametrize("child", [SLEEPS, HAS_A_CHILD], ids=["itself", "its child"])
@pytest.mark.parametrize("last_words", [b"", b"keep the store"])
def test_supervised_process_ends_when_its_starter_does(tmp_path: Path, last_words: bytes, child: str) -> None:
    store = tmp_path / "store"
    store.mkdir()
    starter = subprocess.Popen(  # noqa: S603  # our own script
        [sys.executable, str(SUPERVISE), str(store), sys.executable, "-c", child],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert starter.stdin is not None
    assert starter.stdout is not None
    with starter:
        pid = int(starter.stdout.readline())
        with starter.stdin:  # what the system closes, too, when the starter is killed
            starter.stdin.write(last_words)
        assert starter.wait(timeout=10) == -9 % 256
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert store.exists() == bool(last_words)
