"""Both protocols' scripted peers behind the same words, for what is of no protocol: sockets, threads, TLS."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
from tests.transports import scripted
from tests.transports.scripted import TIMEOUT

Script = Callable[[Any], object]
SERVERS = {
    "activemq": "ActiveMQ/5.18.3",
    "artemis": "ActiveMQ-Artemis/2.44.0 ActiveMQ Artemis Messaging Engine",
    "hornetq": "HornetQ/2.5.0.SNAPSHOT (Wild Hornet, 124) HornetQ Messaging Engine",
    "rabbitmq": "RabbitMQ/3.10.8",
}
PRODUCTS = {
    "activemq": "ActiveMQ",
    "artemis": "apache-activemq-artemis",
    "qpid": "Apache Qpid Broker-J Core",
    "rabbitmq": "RabbitMQ",
}


@dataclass(frozen=True, slots=True)
class Side:
    """A peer that follows a script, and who connects to it.

    ``plain``: what it says to a client that it cannot read. ``serve``: a script that answers every send until the
    client has gone. ``answer_when``: makes one that answers the first send once the event is set. ``let_send``: begins
    one, until a client may send. ``sent``: the name of the frame that it sends, and ``answer`` answers. ``say_why``:
    ends one with an error. ``led``: True where somebody reads for each of a client's three sessions. ``servers``: what
    a broker says that it is, by its dialect; ``embedded``: what the embedded one says.
    """

    peer: Callable[..., Any]
    client: Callable[..., Any]
    scheme: str
    plain: bytes
    serve: Script
    answer_when: Callable[[threading.Event], Script]
    let_send: Script
    sent: str
    answer: Callable[[Any, Any], object]
    say_why: Callable[[Any, str], object]
    led: Callable[[Any], bool]
    servers: Mapping[str, str]
    embedded: str

    def greet(self, end: Any) -> None:
        """The script of a peer that lets a client in."""
        end.greet()


@pytest.fixture(params=["stomp", "amqp"])
def side(request: pytest.FixtureRequest) -> Side:
    if request.param == "stomp":
        return Side(
            peer=scripted.ScriptedBroker,
            client=scripted.Client,
            scheme="stomp+ssl",
            plain=b"ERROR\nmessage:what?\n\n\0",
            serve=_stomp,
            answer_when=_stomp_when,
            let_send=scripted.BrokerEnd.log_in,
            sent="SEND",
            answer=scripted.BrokerEnd.answer,
            say_why=lambda end, why: end.send("ERROR", message=why),
            led=lambda client: [wire.leader.led for wire in client.transport._wires._sessions] == [True] * 3,
            servers=SERVERS,
            embedded="redelivery/0.1",
        )
    pytest.importorskip("proton")
    from tests.transports import amqp_peer, amqp_sessions

    return Side(
        peer=amqp_peer.ScriptedPeer,
        client=amqp_sessions.Client,
        scheme="amqps",
        plain=b"AMQP\x00\x01\x00\x00",
        serve=_amqp,
        answer_when=_amqp_when,
        let_send=_amqp_attached,
        sent="transfer",
        answer=amqp_peer.PeerEnd.settle,
        say_why=_amqp_close,
        led=lambda client: bool(client.transport._connection.leader.led),
        servers=PRODUCTS,
        embedded="redelivery",
    )


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


def _amqp_attached(end: Any) -> None:
    end.log_in()
    end.attached()


def _amqp_close(end: Any, why: str) -> None:
    from tests.transports.amqp_frames import error

    end.send("close", error=error("amqp:connection:forced", why))
    end.take("close")


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
