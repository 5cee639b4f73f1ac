"""What others have written is shown, not obeyed; a pipe breaks no line; a long run says how far it is."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import pty
import re
import socket
import struct
import subprocess
import sys
import termios
import unicodedata
from collections.abc import Iterator
from uuid import uuid4

import pytest
from tests.run import forked
from tests.run.forked import Forked

import redelivery
from redelivery import RedeliveryPolicy, SharedDeadLetterStrategy
from redelivery.broker import EmbeddedBroker
from redelivery.cli.parts.shown import VisibleFormatter, as_json, visible

COMMAND = (sys.executable, "-W", "error", "-c", "from redelivery.cli.main import main; main()")
EVIL = "\x1b]0;owned\x07\x1b[2J\x1b[31m=cmd|' /C calc'!A0\x9b31m\u202egnp.exe\u2066\r\nINJECTED line\x08\x08\x7f[/b]"
TRICKS = (
    "pay\u200dpal\u200b \u3164 \x1b]8;;http://evil\x1b\\click\x1b]8;;\x1b\\ \x1b]52;c;eA==\x07 Z"
    + "\u0335" * 50
    + "\x00"
)
NAME = b"evil\x1b[2J\xe2\x80\xae\\nerror: forged.DLQ"  # of a queue, as a frame of STOMP has it
LONG = pytest.mark.long_form
OURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")  # colours, and a line that is written anew


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    """With a hostile producer's messages on q and dlq."""
    with EmbeddedBroker(f"hostile-{uuid4().hex}", stomp_port=0) as broker:
        options = {
            "redelivery_policy": RedeliveryPolicy(maximum_redeliveries=0),
            "dead_letter_strategy": SharedDeadLetterStrategy("dlq"),
        }
        with redelivery.connect(broker.vm_url, **options) as connection, connection.session("transacted") as session:  # type: ignore[arg-type]  # by its name
            producer, consumer = session.producer(), session.consumer("q")
            producer.send(EVIL, "q", properties={"evil": EVIL}, correlation_id=EVIL, type=EVIL)
            session.commit()
            assert consumer.receive(5)
            session.rollback(ValueError(EVIL))
            assert consumer.receive(0.1) is None
            said = ("dlqDeliveryFailureCause", "originalDestination", "dlqDeliveryCount", EVIL.replace("\r\n", ""))
            producer.send(b"\x1b[2J\xff\x00", "dlq", properties=dict.fromkeys(said, EVIL))
            long = {"dlqDeliveryFailureCause": "E" * 100_000, "originalDestination": "queue://[red]x[/red]"}
            producer.send("x" * 100_000, "dlq", properties=long)
            tricks = {"dlqDeliveryFailureCause": TRICKS, "originalDestination": "queue://../../" + TRICKS}
            producer.send(TRICKS, "tricks", properties={"evil": TRICKS, **tricks})
            session.commit()
        with socket.create_connection(("127.0.0.1", int(broker.stomp_url.rpartition(":")[2]))) as raw:
            raw.sendall(b"CONNECT\naccept-version:1.2\nhost:x\n\n\0")
            raw.recv(4096)
            raw.sendall(b"SEND\ndestination:/queue/" + NAME + b"\nreceipt:1\na\x1b[31m\\nb:x\n\nbody\0")
            assert raw.recv(4096).startswith(b"RECEIPT")
        yield broker


def at_terminal(broker: EmbeddedBroker, *arguments: str, columns: int = 80) -> str:
    """What a terminal gets, without what is our own."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {**os.environ, "REDELIVERY_URL": broker.stomp_url, "TERM": "xterm-256color"}
    command = (*COMMAND, *arguments)
    with Forked[bytes](command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        got = b""
        try:
            while part := os.read(ours, 65536):
                got += part
        except OSError:  # it has ended
            pass
        process.wait(30)
    os.close(ours)
    return OURS.sub("", got.decode())


def bad(text: str) -> set[str]:
    """Characters that act on a terminal, or hide in it; ends of lines are the terminal's own."""
    said = text.replace("\r\n", "\n")
    floods = set(re.findall("\u0335{5,}", said))
    return floods | {each for each in said if unicodedata.category(each) in ("Cc", "Cf") or each == "\u3164"} - set(
        "\n\r"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("browse", "dlq"),
        ("browse", "dlq", "--json"),
        ("dlq", "groups", "dlq"),
        ("dlq", "groups", "dlq", "--by", "origin"),
        ("dlq", "ls", "dlq"),
        ("dlq", "ls", "dlq", "--json"),
        ("dlq", "show", "dlq"),
        ("dlq", "export", "dlq"),
        ("dlq", "show", "dlq", "--json"),
        ("dlq", "replay", "dlq", "--dry-run"),
        ("dlq", "edit", "dlq", "--limit", "3", "--set", "properties.a=1", "--dry-run"),
        ("dlq",),
        ("doctor", "--queue", "dlq", "--watch", "0"),
        ("top", "--count", "1"),
        ("top", "--once", "--json"),
        *(("dlq", command, "tricks") for command in ("groups", "show")),
        *(pytest.param((command, "tricks"), marks=LONG) for command in ("browse", "receive")),
        *(pytest.param(("dlq", command, "tricks"), marks=LONG) for command in ("ls", "export")),
        ("dlq", "edit", "tricks", "--limit", "3", "--set", "properties.a=1", "--dry-run"),
    ],
    ids=" ".join,
)
def test_a_terminal_obeys_nothing_of_others(broker: EmbeddedBroker, arguments: tuple[str, ...]) -> None:
    said = at_terminal(broker, *arguments)
    assert bad(said) == set()
    assert "Traceback" not in said
    assert "\nINJECTED" not in said
    assert "\nerror: forged" not in said.replace("\r", "")
    if "--json" not in arguments and "export" not in arguments:
        assert len(said) < 15_000  # of causes and bodies of 100,000 characters
    if arguments[:2] == ("browse", "dlq"):
        assert ("\\u001b]0" if "--json" in arguments else "\\x1b]0;owned\\x07") in said


def test_a_received_body_is_shown_at_a_terminal_and_is_as_it_is_in_a_pipe(broker: EmbeddedBroker) -> None:
    broker.send("bodies", EVIL)
    broker.send("bodies", EVIL)
    said = at_terminal(broker, "receive", "bodies")
    assert bad(said) == set()
    assert "\\x1b]0;owned" in said
    command = (*COMMAND, "receive", "bodies", "--url", broker.stomp_url)
    with Forked[bytes](command, stdout=subprocess.PIPE) as process:
        assert process.communicate(timeout=50)[0].decode() == EVIL + "\n"


def test_json_is_the_same_when_it_is_read() -> None:
    text = EVIL + "\u200f\u061c\u2028\u2029\u0085\udcffÄ€😀👩\u200d💻"
    for indent in (None, 2):
        written = as_json({text: [text, 1]}, indent)
        assert json.loads(written) == {text: [text, 1]}
        assert bad(written) <= {"\u200d"}
        assert "Ä€😀👩\u200d💻" in written


def test_what_cannot_be_seen_is_shown_by_its_number() -> None:
    assert visible("a\x1b\x9b\u202e\U000e0041\ud800\nb") == r"a\x1b\x9b\u202e\U000e0041\ud800\x0ab"
    assert visible("a\n\tb\r", lines=True) == "a\n\tb\\x0d"
    assert visible("x" * 9, 5) == "xxxxx…"
    assert visible("Zoë 日本 पर\u200dम") == "Zoë 日本 पर\u200dम"
    record = logging.LogRecord("a", logging.WARNING, "f", 1, "order %s", (EVIL,), None)
    said = VisibleFormatter().format(record)
    assert bad(said) == set()
    assert "\n  INJECTED" in said  # so that it looks like no other record


def test_joiners_marks_and_blanks_are_shown_where_they_hide_something() -> None:
    assert visible("pay\u200dpal \u200c\u200c") == r"pay\u200dpal \u200c\u200c"
    assert visible("日\u200d\u200d\u200d本") == r"日\u200d\u200d\u200d本"
    assert visible("❤\ufe0f\u200d🔥") == "❤\ufe0f\u200d🔥"
    assert visible("e\u0301\u0302\u0303\u0304") == "e\u0301\u0302\u0303\u0304"
    assert visible("e" + "\u0301" * 5 + "x") == "e" + "\u0301" * 4 + r"\u0301x"
    assert visible("a\u3164\u00ad\ufeff\u2066") == r"a\u3164\xad\ufeff\u2066"
    text = "e" + "\u0301" * 9 + "\u3164 a\u200db"
    assert json.loads(as_json(text)) == text
    assert not bad(as_json(text))


def test_a_pipe_breaks_no_name_and_a_terminal_does(broker: EmbeddedBroker) -> None:
    queue = "a." * 60 + "queue"
    broker.send("long", "x", properties={"originalDestination": f"queue://{queue}"})
    environment = {**os.environ, "REDELIVERY_URL": broker.stomp_url, "COLUMNS": "40"}
    command = (*COMMAND, "dlq", "groups", "long")
    piped = forked.run(command, env=environment)
    assert [line.split()[0] for line in piped.stdout.splitlines()] == ["letters", "1"]
    assert f"queue://{queue}" in piped.stdout
    assert f"queue://{queue}" not in at_terminal(broker, "dlq", "groups", "long")


def test_a_replay_shows_how_far_it_is_at_a_terminal(broker: EmbeddedBroker) -> None:
    for number in range(120):
        broker.send("many", str(number), properties={"originalDestination": "queue://back"})
    said = at_terminal(broker, "dlq", "replay", "many", "--yes")
    assert re.search(r"replay.*120/120.*\d+/s \d:\d\d:\d\d", said), said
    assert "120 replayed" in said
    assert broker.queue_depth("back") == 120
