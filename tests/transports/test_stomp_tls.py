"""STOMP over TLS: both ways at the same time, on each wire."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.transports.scripted import SHARING, TIMEOUT, BrokerEnd, Client, ScriptedBroker, text


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def test_tls_carries_messages_both_ways_at_the_same_time(
    server_tls: ssl.SSLContext, trusting: ssl.SSLContext, pool: ThreadPoolExecutor
) -> None:
    number = 1000

    def script(end: BrokerEnd) -> None:
        end.log_in(SHARING)
        subscription = end.subscribed()
        for each in range(number):
            end.message(subscription, each, b"x" * 3000)
            end.take("ACK", "SEND")
        for _ in range(number):
            end.take("ACK", "SEND")
        end.message(subscription, 0, b"y" * (3 << 20))
        assert len(end.take("SEND").body) == 3 << 20
        end.goodbye()

    def produce(client: Client) -> None:
        session = client.session()
        for _ in range(number):
            session.channel.send(text(b"z" * 3000), transacted=False, pending=None)

    with (
        ScriptedBroker(script, server_tls) as broker,
        Client(broker.port, host="localhost", scheme="stomp+ssl", tls=trusting) as client,
    ):
        session = client.session()
        session.attach()
        producing = pool.submit(produce, client)
        for _ in range(number):
            session.channel.accept([session.receive()], batched=False)
        producing.result(TIMEOUT)
        assert len(session.receive().body()) == 3 << 20
        session.channel.send(text(b"z" * (3 << 20)), transacted=False, pending=None)


def test_each_wire_of_a_connection_is_encrypted_and_verified(
    server_tls: ssl.SSLContext, trusting: ssl.SSLContext
) -> None:
    """A further one goes to the address of the first, and is asked for the certificate of the host all the same."""

    def script(end: BrokerEnd) -> None:
        end.log_in()
        end.answer(end.take("SEND"))
        end.goodbye()

    with (
        ScriptedBroker(script, server_tls) as broker,
        Client(broker.port, host="localhost", scheme="stomp+ssl", tls=trusting) as client,
    ):
        sessions = [client.session() for _ in range(2)]
        assert [session.send(text()) for session in sessions] == [None, None]
        assert [isinstance(end.sock, ssl.SSLSocket) for end in broker.ends] == [True, True]
