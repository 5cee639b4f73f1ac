"""Both protocols' scripted peers behind the same words, for what is of no protocol: sockets, threads, TLS."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
from tests.transports import scripted
from tests.transports.scripted import TIMEOUT

Script = Callable[[Any], None]


@dataclass(frozen=True, slots=True)
class Side:
    """A peer that follows a script, and who connects to it.

    ``plain``: what it says to a client that it cannot read. ``serve``: a script that answers every send until the
    client has gone. ``answer_when``: makes one that answers the first send once the event is set.
    """

    peer: Callable[..., Any]
    client: Callable[..., Any]
    scheme: str
    plain: bytes
    serve: Script
    answer_when: Callable[[threading.Event], Script]

    def greet(self, end: Any) -> None:
        """The script of a peer that lets a client in."""
        end.log_in()
        end.goodbye()


@pytest.fixture(params=["stomp", "amqp"])
def side(request: pytest.FixtureRequest) -> Side:
    if request.param == "stomp":
        plain = b"ERROR\nmessage:what?\n\n\0"
        return Side(scripted.ScriptedBroker, scripted.Client, "stomp+ssl", plain, _stomp, _stomp_when)
    pytest.importorskip("proton")
    from tests.transports import amqp_peer, amqp_sessions

    plain = b"AMQP\x00\x01\x00\x00"
    return Side(amqp_peer.ScriptedPeer, amqp_sessions.Client, "amqps", plain, _amqp, _amqp_when)


def _stomp(end: scripted.BrokerEnd) -> None:
    end.log_in(scripted.SHARING, heart_beat="1000,1000")
    with suppress(OSError):
        while True:
            end.answer(end.take())


def _stomp_when(event: threading.Event) -> Script:
    def script(end: scripted.BrokerEnd) -> None:
        end.log_in(scripted.SHARING)
        frame = end.take("SEND")
        event.wait(TIMEOUT)
        end.answer(frame)
        end.goodbye()

    return script


def _amqp(end: Any) -> None:
    end.log_in("apache-activemq-artemis")
    with suppress(OSError):
        while True:
            frame = end.take()
            if frame.name == "attach":
                end.confirm(frame)
                if not frame["role"]:
                    end.give(frame, 1 << 30)
            elif frame.name == "transfer":
                end.settle(frame)
            else:
                end.agree_to_end(frame)


def _amqp_when(event: threading.Event) -> Script:
    def script(end: Any) -> None:
        end.log_in()
        end.attached()
        frame = end.take("transfer")
        event.wait(TIMEOUT)
        end.settle(frame)
        end.goodbye()

    return script
