"""The demo's end with Spark: what is missing is said first, the stream reads what the demo left, and nothing stays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from io import StringIO
from pathlib import Path
from uuid import uuid4

import pytest
from rich.console import Console
from tests.run import again, forked
from tests.spark.faults.archive import java_options

import redelivery
from redelivery import RedeliveryPolicy
from redelivery.broker import EmbeddedBroker
from redelivery.cli.demo import spark as demo_spark
from redelivery.cli.demo.orders import ALWAYS, Demo, Script
from redelivery.cli.demo.spark import missing, spark_job
from redelivery.cli.demo.story import StoryStep
from redelivery.cli.demo.view import View

COMMAND = (sys.executable, "-W", "error", "-c", "from redelivery.cli.main import main; main()")
QUICK = Script(
    orders=("a", "b"),
    failures={"b": (ALWAYS, OSError("always"))},
    policy=RedeliveryPolicy(maximum_redeliveries=1, initial_redelivery_delay=0.02, redelivery_delay=0.02),
    work=0.0,
    limit=10.0,
)


def run(*arguments: str, timeout: float = 150, **environment: str) -> subprocess.CompletedProcess[str]:
    return forked.run((*COMMAND, *arguments), timeout=timeout, env={**os.environ, **environment})


def needs_spark() -> None:
    reason = missing()
    if reason is not None:
        pytest.skip(f"needs {reason}")


# What is missing


def fake_java(folder: Path, says: str) -> None:
    java = folder / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho '{says}' >&2\n", encoding="utf-8")
    java.chmod(0o755)


def pretend(monkeypatch: pytest.MonkeyPatch, **versions: str | None) -> None:
    """These versions are installed; None: not at all."""

    def found(name: str) -> str:
        known = {"pyspark": "4.3.0", "pyarrow": "20", "fsspec": "2026.1", **versions}[name]
        if known is None:
            raise PackageNotFoundError(name)
        return known

    monkeypatch.setattr(demo_spark, "version", found)


def test_nothing_is_missing_where_all_is_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pretend(monkeypatch)
    fake_java(tmp_path, 'openjdk version "17.0.15" 2025-04-15')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert missing() is None


def test_a_missing_package_is_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, pyspark=None)
    assert missing() == "pyspark: from the clone: pip install '.[spark]'"


def test_an_old_pyspark_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, pyspark="3.5.2")
    assert missing() == "pyspark 4.0 or newer, this is 3.5.2: from the clone: pip install --upgrade '.[spark]'"


def test_no_java_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pretend(monkeypatch)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert str(missing()).startswith("Java 17 or newer, and there is no java on the PATH: ")


def test_java_home_counts_more_than_the_path_as_with_spark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pretend(monkeypatch)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert f"there is no bin/java in JAVA_HOME={tmp_path}" in str(missing())


def test_an_old_java_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pretend(monkeypatch)
    fake_java(tmp_path, 'openjdk version "11.0.2" 2019-01-15')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert 'bin/java is openjdk version "11.0.2" 2019-01-15: set JAVA_HOME' in str(missing())


def test_the_command_says_it_in_one_line_before_it_plays(tmp_path: Path) -> None:
    done = run("demo", "--spark", JAVA_HOME=str(tmp_path))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("redelivery demo: --spark needs ")
    assert len(done.stderr.splitlines()) == 1


def test_a_broker_in_the_demos_process_is_refused() -> None:
    needs_spark()
    done = run("demo", "--spark", "--url", "vm://here")
    assert done.returncode == 2
    assert done.stderr.startswith("redelivery demo: --spark needs a broker that other processes can reach, ")


# What is shown


@pytest.mark.parametrize(("takes", "says"), [(7, "Spark read 7 of 1 dead letters"), (0, "Spark read 0 of 1")])
def test_the_dead_letters_are_there_for_spark_and_it_is_an_error_where_it_did_not_read_them(
    takes: int, says: str
) -> None:
    steps: list[StoryStep] = []

    def read(url: str, queue: str) -> int:
        with redelivery.connect(url) as connection, connection.session() as session, session.browser(queue) as browser:
            assert len(list(browser)) == 1
        return takes

    with EmbeddedBroker(f"spark-{uuid4().hex}") as broker:
        with pytest.raises(redelivery.JMSError, match=says):
            Demo(steps.append, QUICK, spark=read).run(broker.vm_url)
        assert broker.queue_depth(steps[0].fields["dead_letter_queue"]) == 0
    assert steps[-1].event == "summary"


# With Spark


@pytest.mark.together("Spark")
@pytest.mark.timeout(600)
def test_a_real_stream_reads_the_demos_dead_letters() -> None:
    needs_spark()
    for _ in again.spark_tries(3):
        done = run("demo", "--json", "--spark", timeout=250, JAVA_TOOL_OPTIONS=java_options())
        if again.TOO_SLOW not in done.stderr:
            break
    assert (done.returncode, done.stderr) == (0, "")
    *_, summary, reads, table = [json.loads(line) for line in done.stdout.splitlines()]
    assert (summary["event"], summary["problems"]) == ("summary", [])
    assert (reads["event"], reads["queue"]) == ("spark_reads", "ActiveMQ.DLQ")
    assert (table["event"], table["version"]) == ("spark_table", version("pyspark"))
    assert table["groups"] == [
        ["queue://orders", "LookupError: no such article", 1],
        ["queue://orders", "ValueError: price is negative", 1],
    ]


@pytest.mark.long_form
@pytest.mark.together("Spark")
@pytest.mark.timeout(300)
def test_a_broker_that_spark_cannot_reach_is_one_line() -> None:
    needs_spark()
    screen = StringIO()
    for _ in again.spark_tries(2):
        with (
            View(Console(file=screen, force_terminal=True)) as view,
            spark_job(view) as read,
            pytest.raises(redelivery.JMSError) as caught,
        ):
            read("stomp://127.0.0.1:1", "letters")
        if again.TOO_SLOW not in str(caught.value):
            break
    assert "a Spark stream reads letters" in screen.getvalue()
    assert "127.0.0.1:1" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.together("Spark")
@pytest.mark.timeout(120)
def test_ctrl_c_leaves_no_process() -> None:
    needs_spark()
    mark = uuid4().hex
    with subprocess.Popen(  # noqa: S603  # our own
        (*COMMAND, "demo", "--json", "--spark"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "REDELIVERY_TEST_MARK": mark, "JAVA_TOOL_OPTIONS": java_options()},
    ) as process:
        assert process.stdout is not None
        while json.loads(process.stdout.readline())["event"] != "dead_lettered":
            pass
        assert len(marked(mark)) > 1
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=150)
    assert (process.returncode, errors) == (130, "redelivery demo: interrupted\n")
    end = time.monotonic() + 30  # the JVM ends when it has noticed
    while left := marked(mark):
        assert time.monotonic() < end, left
        time.sleep(0.1)


def marked(mark: str) -> list[str]:
    """The processes that have it in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes():
                found.append((folder / "comm").read_text(encoding="utf-8").strip())
        except OSError:  # it is another's, or has just ended
            continue
    return found
