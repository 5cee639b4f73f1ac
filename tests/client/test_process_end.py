"""How a process ends whose connections are open: soon, whatever they are doing, and by the signal that it got."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import Final

import pytest
from tests.client.gated import Site

LIMIT: Final = 10.0  # close_timeout is 3 s there
BEGIN: Final = """
import signal, sys, threading
import redelivery
from redelivery import ReconnectPolicy
url = sys.argv[1]
away = threading.Event()
def observe(event):
    if isinstance(event, redelivery.events.ConnectionLost):
        away.set()
connection = redelivery.connect(url, reconnect=ReconnectPolicy(), close_timeout=3, observer=observe)
session = connection.session("transacted")
consumer, producer = session.consumer("orders"), session.producer("orders")
listening = connection.session()
listening.consumer("others").listen(print)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
print("ready", flush=True)
"""
LOST: Final = "away.wait()\nprint('away', flush=True)\n"
CALLS: Final = {
    "receive": "consumer.receive()\n",
    "for": "for message in consumer: pass\n",
    "wait": "connection.wait()\n",
    "send": "producer.send('x')\n",
    "session": "connection.session()\n",
    "consumer": "session.consumer('more')\n",
}


class Program:
    """A process of Python that says in lines how far it is."""

    def __init__(self, code: str, url: str) -> None:
        command = [sys.executable, "-c", code, url]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # noqa: S603  # ours

    def says(self, word: str) -> None:
        assert self._process.stdout is not None
        assert self._process.stdout.readline().strip() == word

    def signal(self, number: int) -> None:
        time.sleep(0.2)  # until it is within the call
        self._process.send_signal(number)

    def ends(self) -> tuple[int, str]:
        """Its exit code, and what it says on standard error."""
        began = time.monotonic()
        try:
            _, error = self._process.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()
            raise
        assert time.monotonic() - began < LIMIT
        return self._process.returncode, error


@pytest.mark.parametrize("away", [False, True], ids=["there", "away"])
def test_a_process_that_ends_is_not_held_up_by_open_connections(site: Site, away: bool) -> None:
    program = Program(BEGIN + (LOST if away else ""), site.url)
    program.says("ready")
    if away:
        site.gate.shut()
        program.says("away")
    code, error = program.ends()
    assert code == 0, error


SHORT: Final = (("receive", False, signal.SIGINT), ("send", True, signal.SIGTERM))
CASES = [
    pytest.param(call, away, number, id=f"{call}-{'away' if away else 'there'}-{number.name}", marks=marks)
    for call in CALLS
    for away in (False, True)
    for number in (signal.SIGINT, signal.SIGTERM)
    if away or call in ("receive", "for", "wait")  # the others return at once
    for marks in ([] if (call, away, number) in SHORT else [pytest.mark.long_form],)
]


@pytest.mark.parametrize(("call", "away", "number"), CASES)
def test_a_signal_ends_a_call_and_the_process(site: Site, call: str, away: bool, number: signal.Signals) -> None:
    program = Program(BEGIN + (LOST if away else "") + CALLS[call], site.url)
    program.says("ready")
    if away:
        site.gate.shut()
        program.says("away")
    program.signal(number)
    code, error = program.ends()
    assert code == (3 if number == signal.SIGTERM else -signal.SIGINT), error
    assert number == signal.SIGTERM or error.rstrip().endswith("KeyboardInterrupt")


OUTLIVES: Final = """
import asyncio, sys
import redelivery
from redelivery import aio
how, closed, url = sys.argv[1:]
async def made():
    connection = await aio.connect(url)
    await (await connection.session()).consumer("orders")
    if closed == "closed":
        await connection.close()
    return connection
if how == "aio":
    connection = asyncio.run(made())
else:
    connection = redelivery.connect(url)
    connection.session().consumer("orders")
    if closed == "closed":
        connection.close()
sys.excepthook = lambda *_, kept=connection: None  # it is there until the interpreter has cleared all modules
del connection
"""


@pytest.mark.parametrize("closed", ["closed", "open"])
@pytest.mark.parametrize("how", ["threads", "aio"])
def test_a_connection_that_outlives_the_modules_says_nothing(how: str, closed: str) -> None:
    command = [sys.executable, "-c", OUTLIVES, how, closed, "vm://outlives"]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603  # ours
    assert ended.stderr == ended.stdout == ""
