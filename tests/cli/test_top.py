"""``redelivery top``: what it prints, in which widths, and how it leaves a terminal."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest
from rich.cells import cell_len
from tests.cli.brokers import run
from tests.client.shell import eventually
from tests.run.forked import Forked

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.cli.watching.screen import ScreenView
from redelivery.cli.watching.views import LookReport, LookTable, shown
from redelivery.operate.watching.broker import BrokerWatch
from redelivery.operate.watching.rates import rows
from redelivery.testing.brokers.real import RealBroker

COMMAND = (sys.executable, "-W", "error", "-c", "from redelivery.cli.main import main; main()")
ENTERED, LEFT, CURSOR = b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[?25h"


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(f"top-{uuid4().hex}", stomp_port=0) as broker:
        for number in range(3):
            broker.send("orders", str(number))
        broker.send("bills", "x")
        broker.send("ActiveMQ.DLQ", "lost")
        yield broker


def test_a_look_is_an_object_of_json(broker: EmbeddedBroker) -> None:
    done = run(broker.stomp_url, "top", "--json", "--count", "2", "--interval", "0.1")
    first, second = map(json.loads, done.stdout.splitlines())
    assert [each["name"] for each in first["queues"]] == ["orders", "ActiveMQ.DLQ", "bills"]
    orders = {"name": "orders", "messages": 3, "in_flight": 0, "consumers": 0, "retries": 0}
    unknown = {"change": None, "in": None, "out": None}
    counted = {"counted": {"in": 3, "out": 0}, "dead": False}
    assert first["queues"][0] == {**orders, **unknown, **counted}
    assert second["queues"][0] == {**orders, "change": 0.0, "in": 0.0, "out": 0.0, **counted}
    assert (first["dead_letters"], first["unsaid"]) == (1, ["rates: from the second look on"])
    assert second["unsaid"] == []
    assert "redelivery" in first["source"]


def test_queues_are_chosen_and_ordered(broker: EmbeddedBroker) -> None:
    def names(*options: str) -> list[str]:
        done = run(broker.stomp_url, "top", "--once", "--json", *options)
        return [each["name"] for each in json.loads(done.stdout)["queues"]]

    assert names("--sort", "name") == ["ActiveMQ.DLQ", "bills", "orders"]
    assert names("--queue", "*s") == ["orders", "bills"]
    assert names("--queue", "bills", "--queue", "Active*") == ["ActiveMQ.DLQ", "bills"]
    assert names("--queue", "nosuch*") == []


def test_a_pipe_gets_plain_tables(broker: EmbeddedBroker) -> None:
    lines = run(broker.stomp_url, "top", "--once").stdout.splitlines()
    assert lines[0].endswith(" over STOMP 1.2  3 queues, 5 messages, \u2013 in/s, \u2013 out/s, 1 dead letter")
    assert lines[1].split() == ["depth", "±/s", "in/s", "out/s", "consumers", "in", "flight", "retries", "name"]
    assert lines[2].split() == ["3", "\u2013", "\u2013", "\u2013", "0", "0", "0", "orders"]
    assert lines[3].split()[-3:] == ["ActiveMQ.DLQ", "(dead", "letters)"]
    assert "\x1b" not in "".join(lines)


def test_what_cannot_be_asked_is_exit_code_1_and_what_is_wrong_2(broker: EmbeddedBroker) -> None:
    done = run(broker.stomp_url, "top", "--once", "--dialect", "activemq", code=1)
    assert "lists no queues over STOMP" in done.stderr
    assert "--management" in done.stderr
    assert run("stomp://127.0.0.1:1", "top", "--connect-timeout", "2", code=1).stderr.startswith("redelivery top: ")
    assert "--once and --count 2" in run(broker.stomp_url, "top", "--once", "--count", "2", code=2).stderr


def looked_at(broker: EmbeddedBroker) -> LookReport:
    with redelivery.connect(broker.vm_url) as connection:
        watch = BrokerWatch(connection)
        before = watch.poll_once()
        time.sleep(0.001)
        found = watch.poll_once()
        return shown(found, rows(before, found), first=False, interval=2)


@pytest.mark.parametrize("width", [200, 80, 40, 20])
def test_a_narrow_terminal_loses_columns_and_no_line_is_too_long(broker: EmbeddedBroker, width: int) -> None:
    broker.send("注文." * 30 + "queue", "x")
    broker.send("short", "x")
    lines = list(LookTable(looked_at(broker)).lines(width, 24))
    table = [line.plain for line in lines if "depth" in line.plain or "short" in line.plain]
    assert len(table) == (2 if width > 20 else 1), lines
    for line in lines[2:]:
        assert cell_len(line.plain) <= width
    assert ("in flight" in table[0]) is (width >= 80)
    assert ("out/s" in table[0]) is (width >= 40)
    assert "\x1b" not in "".join(line.plain for line in lines)


def test_a_low_terminal_says_how_many_it_does_not_show(broker: EmbeddedBroker) -> None:
    for number in range(30):
        broker.send(f"queue.{number}", "x")
    lines = [line.plain for line in LookTable(looked_at(broker)).lines(80, 10)]
    assert len(lines) == 10
    assert lines[-1] == "and 27 more queues: a taller terminal, or --queue NAME"
    assert len(LookTable(looked_at(broker)).lines(80, 3)) == 3


# A shell's job control: what it runs is in the foreground until it is stopped, and again after a line of its input.
SHELL = """
import fcntl, os, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
child = os.fork()
if not child:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.argv[1], sys.argv[1:])
while os.WIFSTOPPED(status := os.waitpid(child, os.WUNTRACED)[1]):
    os.tcsetpgrp(0, os.getpid())
    print(f"child {child}; stopped: ", flush=True)
    if sys.stdin.readline() == "fg\\n":
        os.tcsetpgrp(0, child)
    os.kill(child, signal.SIGCONT)
os.tcsetpgrp(0, os.getpid())
sys.exit(os.waitstatus_to_exitcode(status))
"""


class Terminal:
    """A terminal in which `redelivery top` runs."""

    def __init__(self, url: str, *arguments: str, columns: int = 80, stopped: bool = False) -> None:
        self._ours, self.theirs = pty.openpty()
        self.resize(columns)
        self.before = termios.tcgetattr(self.theirs)
        environment = {**os.environ, "REDELIVERY_URL": url, "TERM": "xterm-256color"}
        environment.pop("NO_COLOR", None)
        command = (*COMMAND, "top", "--interval", "0.2", *arguments)
        kind: type[subprocess.Popen[bytes]] = Forked[bytes]
        if stopped:
            command, kind = (sys.executable, "-c", SHELL, *command), subprocess.Popen[bytes]
        self.process = kind(
            command, stdin=self.theirs, stdout=self.theirs, stderr=self.theirs, env=environment, start_new_session=True
        )
        self.got = b""

    def resize(self, columns: int) -> None:
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def until(self, *texts: str, since: int = 0) -> int:
        """Read until these texts are there; where the last of them is."""
        deadline = time.monotonic() + 30
        while any(text.encode() not in self.got[since:] for text in texts):
            left = deadline - time.monotonic()
            assert left > 0, self.got[-2000:]
            ready, _, _ = select.select([self._ours], [], [], left)
            if ready:
                self.got += os.read(self._ours, 65536)
        return len(self.got)

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def ended(self, screens: int = 1) -> int:
        """Its exit code; the screen, which it came to so often, the cursor and the keys are as they were."""
        code = self.process.wait(20)
        while select.select([self._ours], [], [], 0.2)[0]:
            self.got += os.read(self._ours, 65536)
        assert self.got.count(ENTERED) == screens
        self.assert_as_before()
        return code

    def assert_as_before(self) -> None:
        assert self.got.rindex(LEFT) > self.got.rindex(ENTERED)
        assert self.got.rindex(CURSOR) > self.got.rindex(ENTERED)
        assert b"\x1b[?25l" not in self.got[self.got.rindex(CURSOR) :]
        assert termios.tcgetattr(self.theirs) == self.before

    def vanish(self) -> None:
        """Be gone, as that of a connection that is lost, and send no signal."""
        os.close(self._ours)
        self._ours = os.open(os.devnull, os.O_RDWR)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)
        os.close(self._ours)
        os.close(self.theirs)


@contextmanager
def terminal(url: str, *arguments: str, columns: int = 80, stopped: bool = False) -> Iterator[Terminal]:
    made = Terminal(url, *arguments, columns=columns, stopped=stopped)
    try:
        yield made
    finally:
        made.close()


@pytest.mark.parametrize("end", ["q", pytest.param("SIGTERM", marks=pytest.mark.long_form)])
def test_the_terminal_is_left_as_it_was(broker: EmbeddedBroker, end: str) -> None:
    with terminal(broker.stomp_url) as at:
        seen = at.until("orders", "! ActiveMQ.DLQ", "(!)", "in flight")
        at.resize(40)
        at.until("depth", "bills", since=seen)
        if end == "q":
            at.type("q")
        else:
            at.process.send_signal(signal.SIGTERM)
        assert at.ended() == (0 if end == "q" else 143)
        assert b"Traceback" not in at.got


def test_one_whose_terminal_is_gone_ends(broker: EmbeddedBroker) -> None:
    """It read nothing, again and again."""
    with terminal(broker.stomp_url, "--interval", "60") as at:
        at.until("orders", "in flight")
        at.vanish()
        at.process.wait(20)


def test_one_that_has_no_keys_to_read_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    with open(os.devnull) as nothing, monkeypatch.context() as patched:
        patched.setattr(sys, "stdin", nothing)
        view, began = ScreenView(), time.process_time()
        assert view.wait(0.5)
        assert time.process_time() - began < 0.25, "it read again and again"


def test_a_stopped_one_leaves_the_terminal_and_comes_back_to_it(broker: EmbeddedBroker) -> None:
    with terminal(broker.stomp_url, stopped=True) as at:
        at.until("orders", "in flight")
        at.type("\x1a")  # Ctrl-Z
        seen = at.until("stopped: ")
        at.assert_as_before()
        broker.send("sent.meanwhile", "x")
        at.type("bg\n")  # a program in the background may not read keys, so that it is stopped again
        seen = at.until("stopped: ", since=seen)
        assert termios.tcgetattr(at.theirs) == at.before
        at.type("fg\n")
        at.until("sent.meanwhile", "in flight", since=seen)
        assert termios.tcgetattr(at.theirs) != at.before
        found = re.search(rb"child (\d+);", at.got)
        assert found is not None
        os.kill(int(found[1]), signal.SIGSTOP)  # of which no program is notified
        seen = at.until("stopped: ", since=len(at.got))
        at.type("fg\n")
        at.until("in flight", since=seen)
        at.type("q")
        assert at.ended(screens=at.got.count(ENTERED)) == 0
        assert b"Traceback" not in at.got


def test_a_broker_that_is_gone_is_tried_again_until_it_is_back() -> None:
    with EmbeddedBroker("gone", stomp_port=0) as first, terminal(first.stomp_url) as at:
        first.send("orders", "x")
        port = int(first.stomp_url.rpartition(":")[2])
        at.until("orders")
        first.close()
        seen = at.until("connection lost, trying again in 1 s")
        with EmbeddedBroker("back", stomp_port=port) as second:
            second.send("back.again", "x")
            at.until("back.again", since=seen)
            at.process.send_signal(signal.SIGINT)
            assert at.ended() == 130
        assert b"Traceback" not in at.got


def test_so_many_looks_of_a_broker_that_goes_end_with_exit_code_1() -> None:
    with EmbeddedBroker("going", stomp_port=0) as broker:
        broker.send("orders", "x")
        command = (*COMMAND, "top", "--json", "--count", "100", "--interval", "0.1", "--url", broker.stomp_url)
        with Forked[str](command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert json.loads(process.stdout.readline())["queues"]
            broker.close()
            assert process.wait(30) == 1
            assert process.stderr is not None
            assert "redelivery top: " in process.stderr.read()


SITES = [
    *("amqp-artemis", "stomp-artemis", "amqp-qpid", "amqp-rabbitmq4"),
    *(pytest.param(each, marks=pytest.mark.long_form) for each in ("stomp-rabbitmq", "stomp-rabbitmq4")),
]
MANAGED = {"stomp-artemis", "stomp-rabbitmq", "amqp-rabbitmq4", "stomp-rabbitmq4"}


@pytest.mark.parametrize("site", SITES)
def test_real_brokers_say_what_they_know(site: str, request: pytest.FixtureRequest) -> None:
    protocol, _, name = site.partition("-")
    if protocol == "amqp":
        pytest.importorskip("proton")
    broker: RealBroker = request.getfixturevalue(f"redelivery_{name}")
    url, queue = getattr(broker, f"{protocol}_url"), f"top.{uuid4().hex[:8]}"
    options: list[str] = []
    if site in MANAGED:
        login = "admin:admin" if name == "artemis" else "guest:guest"
        options = ["--management", re.sub(r"//(.*@)?", f"//{login}@", broker.http_url)]

    def looked() -> dict[str, Any] | None:
        done = run(url, "top", "--once", "--json", "--queue", queue, *options)
        found = json.loads(done.stdout)["queues"]
        return found[0] if found else None

    with redelivery.connect(url) as connection, connection.session("individual") as session:
        producer = session.producer(queue)
        for number in range(3):
            producer.send(str(number))
        consumer = session.consumer(queue, prefetch=1)
        first = consumer.receive(timeout=10)
        assert first is not None
        first.acknowledge()
        second = consumer.receive(timeout=10)
        assert second is not None
        want = {"messages": 2, "consumers": 1}
        eventually(lambda: {name: (looked() or {}).get(name) for name in want} == want, within=20)
        found = looked()
        assert found is not None
        counted = {"in": None, "out": None} if site == "amqp-rabbitmq4" else {"in": 3, "out": 1}
        assert found["counted"] == counted
        assert found["in_flight"] in (1, 2)
        assert found["retries"] == (0 if name == "artemis" else None)
        second.acknowledge()
        third = consumer.receive(timeout=10)
        assert third is not None
        assert (third.redelivered, third.delivery_count) == (False, 1)  # no look is a delivery
        third.acknowledge()
