"""close() in a signal handler which interrupts a call of the same thread: nothing waits in vain, and nothing breaks."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.client.connection import threads

PROGRAM = Path(__file__).with_name("program.py")
PATIENCE = 15.0  # seconds; the close_timeout of the program is longer
CASES = [
    ("connection", "receive"),
    ("connection", "send"),
    ("connection", "wait"),
    ("connection", "acknowledge"),
    ("session", "receive"),
    ("session", "send"),
    ("consumer", "receive"),
    ("publisher", "publish"),
    ("connection", "publish"),
    ("browser", "browse"),
    ("session", "browse"),
    ("connection", "browse"),
]
FORMS = [pytest.param(*each, marks=pytest.mark.long_form if number else []) for number, each in enumerate(CASES)]


@pytest.fixture(scope="module", params=["stomp", "amqp"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "amqp":
        pytest.importorskip("proton")
    amqp_port = 0 if request.param == "amqp" else None
    with EmbeddedBroker(f"signals-{uuid4().hex}", stomp_port=0, amqp_port=amqp_port) as broker:
        yield getattr(broker, f"{request.param}_url")


@pytest.mark.parametrize(("what", "call"), FORMS)
def test_a_signal_handler_may_close_what_its_thread_is_busy_with(url: str, what: str, call: str) -> None:
    ended = subprocess.run(  # noqa: S603  a program of ours
        [sys.executable, str(PROGRAM), url, what, call], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith(f"['{what}'] ")
    assert "closed" in ended.stdout or "ended" in ended.stdout, "the call ends as by any other close"
    assert float(ended.stdout.split()[-1]) < PATIENCE, "since the signal: a busy machine starts programs slowly"


def test_the_end_of_the_program_waits_for_such_a_close_no_longer_than_close_timeout(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    with redelivery.connect(url, close_timeout=3) as connection, connection.session() as session:
        closing = [connection.publisher(), session.browser("in"), session.consumer("in"), session]
        with monkeypatch.context() as patch:
            patch.setattr(threads, "interrupts", lambda _whose: True)
            patch.setattr(threads.Elsewhere, "begin", lambda _self, _close, patience: waits.append(patience))
            for each in closing:
                each.close()
    assert waits == [3.0] * len(closing)
