"""A second query on one walLocation is refused while the first one lives, and never because of one that is dead."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from tests.spark.place import Place
from tests.spark.streams import readers

from redelivery import IllegalStateError
from redelivery.broker import EmbeddedBroker
from redelivery.spark.log.claims import Claim
from redelivery.spark.log.store.local_store import LocalStore
from redelivery.spark.log.wal import FencedError, Wal
from redelivery.spark.read.driver import DriverStreamReader
from redelivery.spark.read.executor import ExecutorStreamReader

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="asks /proc which processes run")

_HOLDER = """
import sys
from redelivery.spark.log.store.local_store import LocalStore
from redelivery.spark.log.wal import Wal
from redelivery.spark.log.claims import Claim
wal = Wal.open(LocalStore(sys.argv[1]))
epoch = wal.take_turn(Claim.of_this_process())
print(epoch, flush=True)
if sys.stdin.readline() == "leave\\n":
    wal.leave(epoch)
    print("left", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def wal(tmp_path: Path) -> Wal:
    return Wal.open(LocalStore(str(tmp_path)))


@pytest.fixture
def holder(wal: Wal) -> Iterator[subprocess.Popen[str]]:
    """Another process, whose turn it is."""
    command = [sys.executable, "-c", _HOLDER, wal.store.location]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603  # our own
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"
        yield process
        process.kill()


def mine() -> Claim:
    return Claim.of_this_process()


def test_one_that_runs_is_named(wal: Wal, holder: subprocess.Popen[str]) -> None:
    with pytest.raises(
        IllegalStateError,
        match=rf"walLocation {re.escape(wal.store.location)} is in use by another query that runs \(.+, process "
        rf"{holder.pid}, since .+ UTC\): give each query a walLocation of its own, or stop the other one first",
    ):
        wal.take_turn(mine(), patience=0.2)
    wal.check_epoch(1)


def test_one_that_was_killed_is_not_waited_for(wal: Wal, holder: subprocess.Popen[str]) -> None:
    holder.kill()
    holder.wait(10)
    assert wal.take_turn(mine(), patience=0) == 2
    with pytest.raises(FencedError):
        wal.check_epoch(1)


def test_one_that_is_stopped_is_given_up_and_fenced(wal: Wal, holder: subprocess.Popen[str]) -> None:
    os.kill(holder.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, holder.pid, os.WSTOPPED | os.WNOWAIT)
    assert wal.take_turn(mine(), patience=0) == 2


def test_one_that_ends_meanwhile_is_waited_for(wal: Wal, holder: subprocess.Popen[str]) -> None:
    assert holder.stdin is not None
    holder.stdin.write("leave\n")
    holder.stdin.flush()
    assert wal.take_turn(mine(), patience=30) == 2
    assert holder.poll() is None, "its process goes on, its query does not"


def test_a_process_with_the_number_of_one_that_is_dead_is_another(wal: Wal) -> None:
    claim = mine()
    dead = Claim(claim.host, claim.boot, os.getppid(), "1", claim.since)
    wal.take_turn(dead, patience=0)
    assert wal.take_turn(mine(), patience=0) == 2


@pytest.mark.parametrize("other", ["host", "boot"])
def test_of_another_host_nothing_is_known(wal: Wal, other: str) -> None:
    claim = mine()
    there = {"host": claim.host, "boot": claim.boot, other: "elsewhere"}
    wal.take_turn(Claim(there["host"], there["boot"], claim.pid, claim.started, claim.since), patience=0)
    assert wal.take_turn(mine(), patience=0) == 2


def test_an_epoch_of_the_release_before_is_taken_over(wal: Wal) -> None:
    wal._epochs.take("host, process 1, since then")
    assert wal.take_turn(mine(), patience=0) == 2


def test_what_is_said_of_old_epochs_is_forgotten(wal: Wal) -> None:
    for _ in range(20):
        wal.leave(wal.take_turn(mine(), patience=0))
    wal.commit_driver(1)
    assert len(wal.store.list("epochs")) == 16
    assert wal.take_turn(mine(), patience=0) == 21


@pytest.mark.parametrize("kind", [DriverStreamReader, ExecutorStreamReader], ids=["driver", "executor"])
def test_the_second_reader_is_refused_until_the_first_has_stopped(
    kind: type[DriverStreamReader], broker: EmbeddedBroker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redelivery.spark.log.wal.PATIENCE", 0.2)
    monkeypatch.setattr(Wal.take_turn, "__defaults__", (0.2,))
    place = Place(broker, tmp_path, "stomp")
    receiver = "driver" if kind is DriverStreamReader else "executor"
    with readers(kind, place, receiver=receiver, pollInterval="50 ms") as make:
        first, second = make(), make()
        start = first.initialOffset()
        first.latestOffset(start)
        with pytest.raises(IllegalStateError, match=f"process {os.getpid()}"):
            second.latestOffset(start)
        first.stop()
        assert second.latestOffset(start) == start
