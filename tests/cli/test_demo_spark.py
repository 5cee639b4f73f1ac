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
from tests.run import again

import redelivery
from redelivery import RedeliveryPolicy
from redelivery.broker import EmbeddedBroker
from redelivery.cli.demo import spark as demo_spark
from redelivery.cli.demo.events import Event, SparkReads, SparkTable, Started, Summary
from redelivery.cli.demo.flow import ALWAYS, Demo, Script
from redelivery.cli.demo.lines import LineView
from redelivery.cli.demo.spark import SparkError, SparkJob, missing
from redelivery.cli.demo.view import LiveView

COMMAND = (sys.executable, "-W", "error", "-c", "from redelivery.cli.main import main; main()")
TABLE = SparkTable("4.3.0", (("queue://orders", "ValueError: x", 2), ("queue://others", "OSError: y", 1)), 1, 2.5)
QUICK = Script(
    orders=("a", "b"),
    failures={"b": (ALWAYS, OSError("always"))},
    policy=RedeliveryPolicy(maximum_redeliveries=1, initial_redelivery_delay=0.02, redelivery_delay=0.02),
    work=0.0,
    limit=10.0,
)


def run(*arguments: str, timeout: float = 150, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603  # our own
        (*COMMAND, *arguments), capture_output=True, text=True, timeout=timeout, env={**os.environ, **environment}
    )


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
    pretend(monkeypatch, pyspark="4.1.2")
    assert missing() == "pyspark 4.2 or newer, this is 4.1.2: from the clone: pip install --upgrade '.[spark]'"


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


def play(takes: int | None = None) -> list[Event]:
    """The demo with somebody in Spark's place, who takes so many dead letters (None: all)."""
    events: list[Event] = []

    def read(url: str, queue: str) -> SparkTable:
        with redelivery.connect(url) as connection, connection.session() as session:
            consumer, count = session.consumer(queue), 0
            while count != takes and consumer.receive(timeout=0.5) is not None:
                count += 1
        events.append(SparkTable("0", (("origin", "cause", count),) if count else (), 1, 0.0))
        return TABLE if takes is None else SparkTable("0", (), 0, 0.0)

    with EmbeddedBroker(f"spark-{uuid4().hex}") as broker:
        try:
            Demo(events.append, QUICK, spark=read).run(broker.vm_url)
        finally:
            started = next(event for event in events if isinstance(event, Started))
            assert broker.queue_depth(started.dead_letter_queue) == 0
    return events


def test_the_dead_letters_are_there_for_spark_after_the_summary() -> None:
    with pytest.raises(SparkError, match="Spark read 3 of 1 dead letters"):
        play()


def test_what_spark_did_not_read_is_an_error_and_is_cleaned_away() -> None:
    with pytest.raises(SparkError, match="Spark read 0 of 1 dead letters"):
        play(takes=0)


def test_a_terminal_shows_the_table() -> None:
    screen = StringIO()
    with LiveView(Console(file=screen, force_terminal=True, width=80, height=60, color_system=None)) as view:
        view(Started("b", "p", "u", "orders", "DLQ", ("1",), (0.5,)))
        view(Summary(1, 0, 1, 1, 0, 0.0, 1.0, ()))
        view(SparkReads("DLQ"))
        assert "a Spark stream reads DLQ" in screen.getvalue()
        view(TABLE)
    last = screen.getvalue().rpartition("Spark 4.3.0")[2]
    assert [line.strip("│ ").split() for line in last.splitlines() if "queue://" in line] == [
        ["queue://orders", "ValueError:", "x", "2"],
        ["queue://others", "OSError:", "y", "1"],
    ]
    assert "3 dead letters, read once, in 2.5 s" in last


def test_plain_lines_show_it_too() -> None:
    assert LineView().line(TABLE).splitlines() == [
        "Spark: 2 from queue://orders: ValueError: x",
        "Spark: 1 from queue://others: OSError: y",
        "Spark 4.3.0 read 3 in 2.5 s",
    ]


# With Spark


@pytest.mark.together("Spark")
@pytest.mark.timeout(600)
def test_a_real_stream_reads_the_demos_dead_letters() -> None:
    needs_spark()
    for _ in again.spark_tries(3):
        done = run("demo", "--json", "--spark", timeout=250)
        if again.TOO_SLOW not in done.stderr:
            break
    assert (done.returncode, done.stderr) == (0, "")
    *_, summary, reads, table = [json.loads(line) for line in done.stdout.splitlines()]
    assert (summary["event"], summary["problems"]) == ("summary", [])
    assert (reads["event"], reads["queue"]) == ("spark_reads", "ActiveMQ.DLQ")
    assert table["event"] == "spark_table"
    assert table["version"] == version("pyspark")
    assert table["groups"] == [
        ["queue://orders", "LookupError: no such article", 1],
        ["queue://orders", "ValueError: price is negative", 1],
    ]


@pytest.mark.long_form
@pytest.mark.together("Spark")
@pytest.mark.timeout(300)
def test_a_broker_that_spark_cannot_reach_is_one_line() -> None:
    needs_spark()
    for _ in again.spark_tries(2):
        with SparkJob(lambda _: None) as job, pytest.raises(SparkError) as caught:
            job.read("stomp://127.0.0.1:1", "letters")
        if again.TOO_SLOW not in str(caught.value):
            break
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
        env={**os.environ, "REDELIVERY_TEST_MARK": mark},
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
