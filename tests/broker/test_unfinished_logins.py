"""Clients that connect and never log in: others get in, and the broker does not keep thousands of them."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from time import monotonic

import pytest

import redelivery
from redelivery.broker import EmbeddedBroker


def ended(sock: socket.socket) -> bool:
    """Whether the broker has closed it."""
    try:
        return sock.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


@pytest.mark.parametrize(("protocol", "said"), [("amqp", b"AMQP\0"), ("amqp", b""), ("stomp", b"CONN"), ("stomp", b"")])
def test_no_more_than_a_hundred_of_them_stay(protocol: str, said: bytes) -> None:
    if protocol == "amqp":
        pytest.importorskip("proton")
    with (
        EmbeddedBroker("logins", stomp_port=0, amqp_port=0 if protocol == "amqp" else None) as broker,
        ExitStack() as opened,
    ):
        port = int(broker.urls[protocol].rpartition(":")[2])
        sockets = []
        for _ in range(200):
            sock = opened.enter_context(socket.create_connection(("127.0.0.1", port)))
            sock.send(said)
            sock.setblocking(False)
            sockets.append(sock)
        with redelivery.connect(broker.urls[protocol]) as connection:
            end = monotonic() + 10
            while sum(map(ended, sockets)) < 100 and monotonic() < end:
                with connection.session() as session:
                    session.consumer("orders").receive(timeout=0.1)
            assert 100 <= sum(map(ended, sockets)) <= 101  # our own login was one of them for a while
            assert not ended(sockets[-1])
