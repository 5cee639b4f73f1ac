"""The AMQP peer that the benchmarks run against, seen by plain proton: it speaks AMQP and counts right."""

from __future__ import annotations

import json
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("proton")

from benchmarks.naming import AMQP
from benchmarks.peers.values import Encoded, number
from benchmarks.plain_amqp import DISPOSITION, TRANSFER, PlainAmqp, session_at
from proton import Delivery, Message, Terminus, Timeout, symbol
from proton.handlers import MessagingHandler, TransactionHandler
from proton.reactor import Container
from proton.utils import BlockingConnection

ROOT = Path(__file__).parents[2]
BOUND = 20  # seconds, of everything that waits


class Peer:
    """The peer's process; `counts` is what it says when a connection has ended."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.url = f"amqp://127.0.0.1:{int(self._line())}"

    def counts(self) -> dict[str, int]:
        counts: dict[str, int] = json.loads(self._line())
        return counts

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        assert select.select([self._process.stdout], [], [], BOUND)[0], "the peer wrote nothing"
        return self._process.stdout.readline()


@pytest.fixture
def peer() -> Iterator[Peer]:
    command = [sys.executable, "-m", "benchmarks.peers.amqp"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, bufsize=0) as process:  # noqa: S603  fixed words
        try:
            yield Peer(process)
        finally:
            process.terminate()


@contextmanager
def client(peer: Peer) -> Iterator[Any]:
    connection = BlockingConnection(peer.url, timeout=BOUND, allowed_mechs="ANONYMOUS")
    try:
        yield connection
    finally:
        connection.close()


class Transactions(MessagingHandler, TransactionHandler):  # type: ignore[misc]  # proton is an extra, and so Any
    """Receives batches, each in a transaction that is committed or aborted."""

    def __init__(self, peer: Peer, batches: list[bool]) -> None:
        super().__init__(prefetch=0, auto_accept=False)
        self.url, self.batches = peer.url, batches
        self.held = 0
        self.settled = 0
        self.ended: list[bool] = []

    def on_start(self, event: Any) -> None:
        self.container = event.container
        self.connection = event.container.connect(self.url, allowed_mechs="ANONYMOUS", reconnect=False)
        self.receiver = event.container.create_receiver(self.connection, "bench.100.10.text")
        event.container.declare_transaction(self.connection, handler=self)

    def on_transaction_declared(self, event: Any) -> None:
        self.transaction = event.transaction
        self.receiver.flow(5)

    def on_message(self, event: Any) -> None:
        self.transaction.accept(event.delivery)
        self.held += 1
        if self.held % 5 == 0:
            self.transaction.discharge(not self.batches.pop(0))

    def on_settled(self, event: Any) -> None:
        self.settled += event.delivery.link.is_receiver

    def on_transaction_committed(self, _event: Any) -> None:
        self.go_on(committed=True)

    def on_transaction_aborted(self, _event: Any) -> None:
        self.go_on(committed=False)

    def go_on(self, *, committed: bool) -> None:
        self.ended.append(committed)
        if self.batches:
            self.container.declare_transaction(self.connection, handler=self)
        else:
            self.connection.close()


def test_the_peer_names_itself_activemq_and_feeds_distinct_messages(peer: Peer) -> None:
    with client(peer) as connection:
        receiver = connection.create_receiver("bench.600.100.text", credit=600)
        messages = [receiver.receive(BOUND) for _ in range(600)]
        for _ in messages:
            receiver.accept()
        properties = connection.conn.remote_properties
    assert (properties["product"], properties["version"]) == ("ActiveMQ", "5.18.3")
    assert {message.body for message in messages} == {"x" * 100}
    assert len({message.id for message in messages}) == 600
    assert messages[0].annotations["x-opt-jms-msg-type"] == 5
    assert messages[0].durable
    assert peer.counts()["accepted"] == 600


def test_the_peer_keeps_to_the_credit_and_to_its_number_of_messages(peer: Peer) -> None:
    with client(peer) as connection:
        receiver = connection.create_receiver("bench.12.10.text", credit=0)
        for credit, wanted in ((5, 5), (5, 5), (100, 2)):
            receiver.flow(credit)
            connection.wait(lambda: receiver.fetcher.has_message == wanted, timeout=BOUND)  # noqa: B023  at once
            with pytest.raises(Timeout):
                connection.wait(lambda: receiver.fetcher.has_message > wanted, timeout=0.2)  # noqa: B023  at once
            for _ in range(wanted):
                receiver.fetcher.pop()
                receiver.accept()
    assert peer.counts()["accepted"] == 12


def test_the_peer_answers_a_drain(peer: Peer) -> None:
    with client(peer) as connection:
        receiver = connection.create_receiver("bench.3.10.text", credit=0)
        receiver.link.drain(10)
        for _ in range(3):
            receiver.receive(BOUND)
        connection.wait(lambda: not receiver.link.credit, timeout=BOUND, msg="drained")


@pytest.mark.parametrize("outcome", ["accepted", "released", "rejected"])
def test_the_peer_counts_each_outcome(peer: Peer, outcome: str) -> None:
    with client(peer) as connection:
        receiver = connection.create_receiver("bench.3.10.text", credit=3)
        for _ in range(3):
            receiver.receive(BOUND)
            receiver.settle(getattr(Delivery, outcome.upper()))
    counts = peer.counts()
    assert [counts[name] for name in ("accepted", "released", "rejected", "modified")] == [
        3 * (name == outcome) for name in ("accepted", "released", "rejected", "modified")
    ]


@pytest.mark.parametrize("kind", ["text", "nul", "random"])
def test_the_peer_sends_large_bodies_whole(peer: Peer, kind: str) -> None:
    with client(peer) as connection:
        receiver = connection.create_receiver(f"bench.3.1000000.{kind}", credit=2)
        messages = []
        for _ in range(3):
            messages.append(receiver.receive(BOUND))
            receiver.accept()
    assert [len(message.body) for message in messages] == [1_000_000] * 3
    assert len({message.id for message in messages}) == 3
    assert peer.counts()["accepted"] == 3


def test_the_peer_accepts_every_send_once(peer: Peer) -> None:
    with client(peer) as connection:
        sender = connection.create_sender("anything")
        answers = [sender.send(Message(body="x" * size), timeout=BOUND) for size in (1, 1024, 200_000)]
    assert {answer.remote_state for answer in answers} == {Delivery.ACCEPTED}
    assert all(answer.settled for answer in answers)
    assert peer.counts()["transfers"] == 3


def test_a_send_in_several_frames_is_one_and_each_send_is_answered_once(peer: Peer) -> None:
    answered = []
    with session_at(peer.url) as session:
        session.attach(AMQP["fake"], "anything", receives=False)
        for delivery in range(3):
            tag = Encoded(b"\xa0\x01" + bytes((delivery,)))
            session.say(TRANSFER, 0, delivery, tag, 0, False, True, payload=b"one half")
            session.say(TRANSFER, 0, None, None, None, False, False, payload=b"the other")
            answered.append([number(field) for field in session.next(DISPOSITION)[1:3]])
    assert answered == [[0, 0], [1, 1], [2, 2]]
    assert peer.counts()["transfers"] == 3


def test_an_acceptance_counts_when_its_transaction_is_committed(peer: Peer) -> None:
    handler = Transactions(peer, [True, False, True, True])
    Container(handler).run()
    counts = peer.counts()
    assert handler.ended == [True, False, True, True]
    assert (counts["declared"], counts["committed"], counts["rolled back"]) == (4, 3, 1)
    assert counts["accepted"] == 15
    assert handler.settled >= 15


def test_the_peer_opens_a_coordinator_and_counts_nothing_sent_to_it(peer: Peer) -> None:
    class Coordinator:
        def apply(self, link: Any) -> None:
            link.target.type = Terminus.COORDINATOR
            link.target.capabilities.put_object(symbol("amqp:local-transactions"))

        def test(self, _link: Any) -> bool:
            return True

    with client(peer) as connection:
        link = connection.create_sender(None, name="control", options=Coordinator()).link
        connection.wait(lambda: link.credit > 0, timeout=BOUND, msg="credit")
    assert peer.counts() == dict.fromkeys(
        ("transfers", "declared", "committed", "rolled back", "accepted", "rejected", "released", "modified"), 0
    )


def test_the_peer_outlives_a_client_that_breaks_off(peer: Peer) -> None:
    address = ("127.0.0.1", int(peer.url.rpartition(":")[2]))
    with socket.create_connection(address, timeout=BOUND) as connection:
        connection.sendall(b"AMQP\x03\x01\x00\x00")
        assert connection.recv(8) == b"AMQP\x03\x01\x00\x00"
    assert peer.counts()["transfers"] == 0
    with client(peer):
        pass
    assert peer.counts()["transfers"] == 0


def test_queues_are_filled_and_emptied_by_plain_frames(peer: Peer) -> None:
    plain = PlainAmqp(peer.url, AMQP["fake"])
    plain.fill("anything", 120, 1024)
    assert peer.counts()["transfers"] == 120
    plain.empty("bench.230.1024.text", 230)
    assert peer.counts()["accepted"] == 230
    assert plain.is_empty("bench.0.1024.text", 0.1)
    assert not plain.is_empty("bench.1.1024.text", BOUND)
