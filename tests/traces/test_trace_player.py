"""A slow machine is no fault: what is sure to come is waited for, and a cut has ended the connection at the broker."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import ExitStack
from dataclasses import replace

import pytest
from tests.traces.compare import Sight, compare, only_late
from tests.traces.courses import courses
from tests.traces.places import EmbeddedPlace
from tests.traces.player import Player
from tests.traces.relay import Relay
from tests.traces.scenario import Scenario, Step, Trace, scenarios

import redelivery

QUICK_MS = 50
STEPS = (
    Step("0", "connect", {}),
    Step("1", "session", {"mode": "auto"}),
    Step("2", "consumer", {"from": "q"}),
    Step("3", "send_soon", {}),
    Step("4", "receive", {"timeout": QUICK_MS}),
)
RECEIVED = {"step": "4", "op": "receive", "body": "m1", "redelivered": False, "count": 1, "ms": 0}
NOTHING = {"step": "4", "op": "receive", "body": None, "ms": QUICK_MS}


class LatePlayer(Player):
    def do_send_soon(self, _: Step) -> None:
        self.background = threading.Timer(0.3, self._send_late)
        self.background.start()

    def _send_late(self) -> None:
        with redelivery.connect(self.place.url({})) as connection:
            connection.session("auto").producer(self.place.physical("q")).send("m1")


def played(*right: Trace) -> Trace:
    """What comes of `STEPS`: a message is sent 300 ms after its receive has begun."""
    scenario: Scenario = replace(scenarios()["commit-empty"], steps=STEPS)
    with ExitStack() as stack:
        return LatePlayer(scenario, EmbeddedPlace("vm", stack), right).play()


def test_a_message_that_every_right_course_has_is_waited_for_and_only_late() -> None:
    right = Trace((RECEIVED,), {"q": []})

    assert only_late(compare(right, played(right), Sight()))


@pytest.mark.parametrize("others", [(), (Trace((NOTHING,), {}),)], ids=["unknown", "may be absent"])
def test_a_message_that_may_be_absent_is_waited_for_as_long_as_the_step_says(others: tuple[Trace, ...]) -> None:
    (event,) = played(*(Trace((RECEIVED,), {}), *others) if others else ()).events

    assert event["body"] is None
    assert event["ms"] < 300


def test_calls_of_a_listener_that_our_course_has_beyond_javas_are_waited_for() -> None:
    scenario = scenarios()["topic-dups-ok-listener-throw"]
    last = scenario.steps[-1]
    scenario = replace(scenario, steps=(*scenario.steps[:-1], replace(last, fields={**last.fields, "linger": 0})))
    right = courses(scenario, "vm")
    with ExitStack() as stack:
        got = Player(scenario, EmbeddedPlace("vm", stack), right).play()

    assert len(got.events) == len(right[0].events) > last.get("deliveries")


class Sleepy:
    """A consumer of a machine that does not come to it in time."""

    def receive(self, timeout: float) -> None:
        time.sleep(timeout + 0.08)


def test_what_a_wait_took_beyond_its_time_out_excuses_its_event() -> None:
    class SleepyPlayer(Player):
        def _consumer(self, _: Step) -> Sleepy:
            return Sleepy()

    scenario: Scenario = replace(scenarios()["commit-empty"], steps=(Step("0", "receive", {"timeout": QUICK_MS}),))
    with ExitStack() as stack:
        (event,) = SleepyPlayer(scenario, EmbeddedPlace("vm", stack), ()).play().events
    assert event["setup"] >= 80 > QUICK_MS
    assert event["ms"] >= QUICK_MS + 80


def test_a_relay_is_cut_when_the_other_side_has_closed_its_end() -> None:
    closing = threading.Event()

    def serve(listener: socket.socket) -> None:
        end, _ = listener.accept()
        with end:
            assert end.recv(1) == b"a"
            end.sendall(b"b")
            assert end.recv(1) == b"", "ended, not reset"
            end.sendall(b"nobody reads this")
            time.sleep(0.2)
            closing.set()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=serve, args=(listener,))
        server.start()
        relay = Relay(*listener.getsockname())
        with socket.create_connection(("127.0.0.1", relay.port)) as client:
            client.sendall(b"a")
            assert client.recv(1) == b"b"
            relay.cut()
            assert closing.is_set()
            assert client.recv(1) == b""
        server.join()
