"""Connections that nobody uses: heart-beats both ways, and nothing else."""

from __future__ import annotations

import threading
import time

from tests.transports.scripted import TIMEOUT, BrokerEnd, Client, ScriptedBroker


def test_heart_beats_keep_a_connection_alive_that_nobody_uses() -> None:
    beats: list[bytes] = []

    def script(end: BrokerEnd) -> None:
        end.log_in(heart_beat="300,300")
        deadline = time.monotonic() + 1.5
        while time.monotonic() < deadline:
            end.write(b"\n")
            end.sock.settimeout(0.6)  # two intervals without a byte fail the test: brokers hang up after them
            beats.append(end.sock.recv(100))
        end.sock.settimeout(TIMEOUT)
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port, heartbeat=0.3) as client:
        assert not client.lost_event.wait(1.8)
    assert len(beats) > 4
    assert set(b"".join(beats)) == {10}


def test_a_peer_that_promised_heart_beats_and_is_silent_is_lost() -> None:
    ended = threading.Event()

    def script(end: BrokerEnd) -> None:
        end.log_in(heart_beat="100,0")
        ended.wait(TIMEOUT)

    with ScriptedBroker(script) as broker:
        client = Client(broker.port, heartbeat=0.1)
        began = time.monotonic()
        assert client.lost_event.wait(TIMEOUT)
        assert time.monotonic() - began > 0.15
        assert "a heart-beat was promised every 0.1 s" in str(client.lost[0])
        ended.set()


def test_messages_that_nobody_takes_are_signs_of_life() -> None:
    def script(end: BrokerEnd) -> None:
        end.log_in(heart_beat="400,0")
        subscription = end.subscribed()
        for each in range(12):
            end.message(subscription, each)
            time.sleep(0.1)
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port, heartbeat=0.4) as client:
        session = client.session()
        session.attach()
        assert not client.lost_event.wait(1.1)
        assert len(session.receive_many(12)) == 12
