"""One broker has a store: no child of its process, and no other broker by whatever name of the file, touches it."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.model.errors import ConfigError

FORKING = Path(__file__).with_name("forking.py")
SECOND = """
import sys
from redelivery.broker import EmbeddedBroker
with EmbeddedBroker("second", store=sys.argv[1]): print("started", flush=True); sys.stdin.readline()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_what_was_confirmed_survives_every_way_to_fork(tmp_path: Path) -> None:
    """And nothing of a child is in it, whose calls say that the broker is the parent's."""
    store = tmp_path / "shop.db"
    command = [sys.executable, str(FORKING), str(store)]
    process = subprocess.Popen(  # noqa: S603
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert process.stdout is not None
        said = [process.stdout.readline()]
        process.wait(60)  # the last child lives on
        assert said == ["confirmed 13\n"]
        for path in (store, Path(f"{store}-own")):  # which it does not hold
            with EmbeddedBroker("again", store=path) as broker:
                assert [message.body for message in broker.messages("q")] == [str(number) for number in range(13)]
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        _, errors = process.communicate()
    assert errors == ""


def other_spelling(store: Path) -> Path:
    return store.parent / "." / "x" / ".." / store.name


def symlink(store: Path) -> Path:
    (store.parent / "x" / "sym.db").symlink_to(store)
    return store.parent / "x" / "sym.db"


def link_of_the_folder(store: Path) -> Path:
    (store.parent / "folder").symlink_to(store.parent, target_is_directory=True)
    return store.parent / "folder" / store.name


def hard_link(store: Path) -> Path:
    (store.parent / "x" / "hard.db").hardlink_to(store)
    return store.parent / "x" / "hard.db"


def relative(store: Path) -> Path:
    return Path(os.path.relpath(store))


NAMES = [Path, other_spelling, relative, symlink, link_of_the_folder]
if sys.platform == "linux":
    NAMES.append(hard_link)


@pytest.mark.parametrize("name", NAMES, ids=lambda name: name.__name__)
def test_a_second_broker_is_refused_by_whatever_name(tmp_path: Path, name: Callable[[Path], Path]) -> None:
    """Also where the first one's process has read the file meanwhile, with which SQLite's own lock goes."""
    (tmp_path / "x").mkdir()
    store = tmp_path / "shop.db"
    with EmbeddedBroker("first", store=store) as first:
        first.send("q", "a")
        again = name(store)
        for _ in range(2):
            with pytest.raises(ConfigError, match="in use by another broker"):
                EmbeddedBroker("second", store=again).start()
            other = subprocess.run(  # noqa: S603
                [sys.executable, "-c", SECOND, str(again)], input="", capture_output=True, text=True, check=False
            )
            assert "in use by another broker" in other.stderr
            assert not other.stdout
            shutil.copy(store, tmp_path / "copy.db")
        first.send("q", "b")
    assert not list(tmp_path.glob("*-lock"))
    with EmbeddedBroker("second", store=store) as second:
        assert [message.body for message in second.messages("q")] == ["a", "b"]


def test_the_lock_is_gone_after_a_kill(tmp_path: Path) -> None:
    store = tmp_path / "shop.db"
    command = [sys.executable, "-c", SECOND, str(store)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        process.kill()
    assert store.with_name("shop.db-lock").exists(), "the file, which nobody holds"
    with EmbeddedBroker("again", store=store) as broker:
        broker.send("q", "a")
    assert not store.with_name("shop.db-lock").exists()


def test_a_second_name_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The log stands beside one of them: what is in it is missing by the other."""
    with EmbeddedBroker("first", store=tmp_path / "shop.db"):
        pass
    (tmp_path / "hard.db").hardlink_to(tmp_path / "shop.db")
    with caplog.at_level(logging.WARNING), EmbeddedBroker("first", store=tmp_path / "hard.db"):
        assert "has 2 names (hard links)" in caplog.text


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_child_s_own_broker_of_the_parent_s_name_is_said(tmp_path: Path) -> None:
    with EmbeddedBroker("shop", store=tmp_path / "shop.db"):
        reader, writer = os.pipe()
        if not os.fork():  # no test's code may go on here
            handler = logging.StreamHandler(os.fdopen(writer, "w"))
            logging.getLogger("redelivery").addHandler(handler)
            redelivery.connect("vm://shop")
            handler.flush()
            os._exit(0)
        os.close(writer)
        os.wait()
        with os.fdopen(reader) as said:
            assert "started before fork() and is the parent's" in said.read()
