"""AMQP connections that nobody uses: signs of life both ways, and nothing else."""

from __future__ import annotations

import re
import threading
import time

import pytest
from tests.transports.amqp_peer import PeerEnd, ScriptedPeer
from tests.transports.amqp_sessions import Client
from tests.transports.scripted import TIMEOUT, text

from redelivery.model.errors import ConnectionLostError

EMPTY = b"\x00\x00\x00\x08\x02\x00\x00\x00"


def test_signs_of_life_keep_a_connection_that_nobody_uses() -> None:
    beats: list[bytes] = []

    def script(end: PeerEnd) -> None:
        end.log_in(idle_time_out=1000)
        deadline = time.monotonic() + 2.5
        end.sock.settimeout(1.0)  # an interval without a byte fails the test
        while time.monotonic() < deadline:
            beats.append(end.read(8))
        end.sock.settimeout(TIMEOUT)
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        assert not client.lost_event.wait(2.8)
    assert len(beats) > 3
    assert set(beats) == {EMPTY}


def test_an_application_that_is_busy_keeps_its_connection() -> None:
    """Its thread neither reads nor writes for longer than both sides' patience."""

    def script(end: PeerEnd) -> None:
        end.log_in(idle_time_out=600)
        end.attached()
        end.settle(end.take("transfer"))
        deadline = time.monotonic() + 2
        end.sock.settimeout(0.9)
        while time.monotonic() < deadline:
            end.write(EMPTY)
            end.read(8)
        end.sock.settimeout(TIMEOUT)
        end.settle(end.take("transfer"))
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port, heartbeat=0.6) as client:
        session = client.session()
        assert session.send(text()) is None
        time.sleep(2.2)  # the application's work
        assert session.send(text()) is None
        assert client.lost == []


def test_a_peer_that_is_silent_is_lost() -> None:
    ended = threading.Event()

    def script(end: PeerEnd) -> None:
        frame = end.log_in()
        assert frame["idle_time_out"] == 150  # half of what is waited for
        ended.wait(TIMEOUT)

    with ScriptedPeer(script) as peer:
        client = Client(peer.port, heartbeat=0.15)
        began = time.monotonic()
        assert client.lost_event.wait(TIMEOUT)
        assert time.monotonic() - began > 0.25
        assert re.search(r"was silent for 0\.\d+ s; the idle time-out is 0\.3 s", str(client.lost[0]))
        ended.set()


@pytest.mark.parametrize("request_of", ["send", "attach", "drain"])
def test_a_peer_that_is_silent_while_it_works_on_a_request_is_not_lost(request_of: str) -> None:
    """ActiveMQ Classic says nothing for as long as it works on the discharge of a large transaction."""

    def script(end: PeerEnd) -> None:
        end.log_in()
        if request_of == "attach":
            frame = end.take("attach")
            time.sleep(1.2)
            end.confirm(frame)
        elif request_of == "send":
            end.attached()
            frame = end.take("transfer")
            time.sleep(1.2)
            end.settle(frame)
        else:
            link = end.attached()
            while not end.take("flow")["drain"]:
                pass
            time.sleep(1.2)
            end.drained(link, 100)
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port, heartbeat=0.15, request_timeout=5) as client:
        session = client.session()
        if request_of == "send":
            assert session.send(text()) is None
        else:
            link = session.attach()
            if request_of == "drain":
                session.do(session.channel.fetch(link))
        assert client.lost == []


def test_a_peer_that_is_dead_is_lost_though_an_answer_is_awaited() -> None:
    ended = threading.Event()

    def script(end: PeerEnd) -> None:
        end.log_in()
        end.attached()
        end.take("transfer")
        ended.wait(TIMEOUT)

    with ScriptedPeer(script) as peer:
        client = Client(peer.port, heartbeat=0.15, request_timeout=0.5)
        session = client.session()
        answer = session.post(text())
        began = time.monotonic()
        assert client.lost_event.wait(TIMEOUT)
        assert 0.7 < time.monotonic() - began < 2.5  # the idle time-out of 0.3 s, and the time of a request
        assert isinstance(answer.error, ConnectionLostError)
        ended.set()


def test_a_peer_that_is_silent_after_its_answer_has_the_idle_time_out_again() -> None:
    ended = threading.Event()

    def script(end: PeerEnd) -> None:
        end.log_in()
        end.attached()
        end.settle(end.take("transfer"))
        ended.wait(TIMEOUT)

    with ScriptedPeer(script) as peer:
        client = Client(peer.port, heartbeat=0.15, request_timeout=30)
        assert client.session().send(text()) is None
        assert client.lost_event.wait(1.5)
        ended.set()


def test_messages_that_nobody_takes_are_signs_of_life() -> None:
    def script(end: PeerEnd) -> None:
        end.log_in()
        link = end.attached()
        for each in range(10):
            end.message(link, each)
            time.sleep(0.1)
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port, heartbeat=0.3) as client:
        session = client.session()
        session.attach()
        assert not client.lost_event.wait(0.9), client.lost
        assert len(session.receive_many(10)) == 10


def test_a_child_s_connection_ticks_of_its_own_after_the_first_has_closed() -> None:
    def script(end: PeerEnd) -> None:
        end.log_in(idle_time_out=400)
        end.sock.settimeout(1.0)
        for _ in range(3):
            assert end.read(8) == EMPTY
        end.sock.settimeout(TIMEOUT)
        end.goodbye()

    for _ in range(2):
        with ScriptedPeer(script) as peer, Client(peer.port) as client:
            assert not client.lost_event.wait(0.8)
