"""Where real brokers come from: found, missing with a reason, required, and never left behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from redelivery.testing.ports import NotStartedError, free_ports, wait_for_ports
from redelivery.testing.real import UnavailableError, missing, required, running

SUPERVISE = Path(__file__).parents[1] / "testing" / "supervise.py"


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CI", "REDELIVERY_REQUIRE_BROKERS", "REDELIVERY_ACTIVEMQ_URL", "REDELIVERY_BROKER_PROVIDER"):
        monkeypatch.delenv(name, raising=False)


def use_activemq(tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A user's test run on a machine without Java and Docker."""
    test = tmp_path / "test_mine.py"
    test.write_text("def test_mine(activemq):\n    assert activemq.stomp_url\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-ra", "-p", "no:cacheprovider", str(test)]
    inherited = {name: value for name, value in os.environ.items() if name in {"HOME", "LANG"}}
    environment = {**inherited, "PATH": str(tmp_path), "DOCKER_HOST": "unix:///nowhere.sock", **environment}
    return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=50)  # noqa: S603  # our own command


def test_missing_broker_is_a_skip_with_its_reason(tmp_path: Path) -> None:
    run = use_activemq(tmp_path)
    assert run.returncode == 0
    assert "1 skipped" in run.stdout
    assert "java" in run.stdout
    assert "no Docker daemon answers" in run.stdout


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


@pytest.mark.parametrize("last_words", [b"", b"keep the store"])
def test_supervised_process_ends_when_its_starter_does(tmp_path: Path, last_words: bytes) -> None:
    child = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
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


def test_waiting_for_ports_ends_with_the_broker_or_the_time() -> None:
    ports = free_ports(["stomp", "amqp"])
    assert len(set(ports.values())) == 2
    with pytest.raises(NotStartedError, match="ended before"):
        wait_for_ports("127.0.0.1", ports, lambda _: True, 1.0)
    with pytest.raises(NotStartedError, match="nobody listened"):
        wait_for_ports("127.0.0.1", ports, lambda _: False, 0.2)
