"""One AMQP connection and many who use it: callbacks, threads, fork, a flow of messages."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.transports.amqp_peer import PeerEnd, ScriptedPeer
from tests.transports.amqp_sessions import Client, with_messages
from tests.transports.scripted import TIMEOUT

from redelivery.model.modes import AckMode

ARTEMIS = "apache-activemq-artemis"


@pytest.mark.parametrize("batched", [True, False])
def test_a_large_flow_of_messages_and_acknowledgements(batched: bool) -> None:
    number = 3000
    got: set[int] = set()

    def then(end: PeerEnd) -> None:
        while len(got) < number:
            frame = end.take("disposition")
            last = frame["first"] if frame["last"] is None else frame["last"]
            got.update(range(frame["first"], last + 1))

    with ScriptedPeer(with_messages(number, then, ARTEMIS)) as peer, Client(peer.port) as client:
        session = client.session(AckMode.INDIVIDUAL)
        session.attach()
        for each in range(1, number + 1):
            delivery = session.receive()
            assert delivery.header("message_id").endswith(f"m{each}")
            session.channel.accept([delivery], batched=batched)
        client.close()
    assert got == set(range(number))


def test_sessions_share_a_connection_and_get_what_is_theirs(pool: ThreadPoolExecutor) -> None:
    rounds = 100

    def script(end: PeerEnd) -> None:
        end.log_in(ARTEMIS)
        links = {frame.address: frame for frame in [end.attached() for _ in range(3)]}
        for each in range(rounds):
            for name, link in links.items():
                end.message(link, each, str(name).encode())
        end.goodbye()

    def consume(client: Client, name: str) -> None:
        session = client.session()
        session.attach(name, window=rounds)
        for each in range(rounds):
            delivery = session.receive()
            assert (delivery.body(), delivery.header("message_id")[-3:]) == (
                name.encode(),
                f"m{each}"[-3:].rjust(3, ":"),
            )
            session.channel.accept([delivery], batched=each % 2 == 0)

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        for each in [pool.submit(consume, client, str(number)) for number in range(3)]:
            each.result(TIMEOUT)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool
