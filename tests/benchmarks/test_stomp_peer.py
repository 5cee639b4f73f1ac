"""The STOMP peer that the benchmarks run against: what it sends is STOMP, and what it counts is true."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import pytest
import stomp

ROOT = Path(__file__).parents[2]


class Peer:
    """The fake peer's process; `counts` is what it says when a connection has ended."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.port = int(self._line())

    def counts(self) -> dict[str, int]:
        counts: dict[str, int] = json.loads(self._line())
        return counts

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


@pytest.fixture
def peer() -> Iterator[Peer]:
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.peers.stomp"], cwd=ROOT, stdout=subprocess.PIPE
    ) as process:
        try:
            yield Peer(process)
        finally:
            process.terminate()


class Collected(stomp.ConnectionListener):  # type: ignore[misc]  # stomp.py has no types
    def __init__(self) -> None:
        self.messages: SimpleQueue[Any] = SimpleQueue()
        self.receipts: SimpleQueue[str] = SimpleQueue()
        self.server = ""

    def on_connected(self, frame: Any) -> None:
        self.server = frame.headers["server"]

    def on_message(self, frame: Any) -> None:
        self.messages.put(frame)

    def on_receipt(self, frame: Any) -> None:
        self.receipts.put(frame.headers["receipt-id"])

    def take(self, count: int) -> list[Any]:
        return [self.messages.get(timeout=10) for _ in range(count)]

    def no_more(self) -> bool:
        """Nothing comes within a moment: a full window can only be seen by waiting."""
        with pytest.raises(Empty):
            self.messages.get(timeout=0.2)
        return True


@contextmanager
def raw_client(peer: Peer) -> Iterator[tuple[Any, Collected]]:
    connection = stomp.Connection12([("127.0.0.1", peer.port)])
    collected = Collected()
    connection.set_listener("", collected)
    connection.connect(wait=True)
    try:
        yield connection, collected
    finally:
        connection.disconnect(receipt="bye")


def test_peer_feeds_a_plain_client_distinct_messages_and_calls_itself_activemq(peer: Peer) -> None:
    with raw_client(peer) as (connection, collected):
        connection.subscribe("/queue/bench.230.100.text", id="7", ack="client-individual")
        messages = collected.take(230)
        assert collected.no_more()
        assert collected.server == "ActiveMQ/5.18.3"
        assert {len(message.body) for message in messages} == {100}
        assert {message.headers["subscription"] for message in messages} == {"7"}
        assert len({message.headers["message-id"] for message in messages}) == 230
        assert len({message.headers["ack"] for message in messages}) == 230


@pytest.mark.parametrize("transaction", [None, "t1"])
def test_peer_keeps_the_window_and_an_ack_moves_it_even_in_a_transaction(peer: Peer, transaction: str | None) -> None:
    with raw_client(peer) as (connection, collected):
        connection.subscribe(
            "/queue/bench.100.10.text", id="1", ack="client-individual", headers={"activemq.prefetchSize": "10"}
        )
        first = collected.take(10)
        assert collected.no_more()
        if transaction:
            connection.begin(transaction)
        for message in first:
            connection.ack(message.headers["ack"], transaction=transaction)
        collected.take(10)
        assert collected.no_more()
    assert peer.counts()["ACK"] == 10


@pytest.mark.parametrize("kind", ["text", "nul", "random"])
def test_peer_sends_large_bodies_whole(peer: Peer, kind: str) -> None:
    done = threading.Event()

    class Lengths(stomp.ConnectionListener):  # type: ignore[misc]  # stomp.py has no types
        lengths: list[int] = []  # noqa: RUF012  one instance

        def on_message(self, frame: Any) -> None:
            self.lengths.append(len(frame.body))
            if len(self.lengths) == 3:
                done.set()

    connection = stomp.Connection12([("127.0.0.1", peer.port)], auto_decode=False)
    lengths = Lengths()
    connection.set_listener("", lengths)
    connection.connect(wait=True)
    connection.subscribe(f"/queue/bench.3.100000.{kind}", id="1", ack="auto")
    assert done.wait(30)
    connection.disconnect(receipt="bye")
    assert lengths.lengths == [100_000] * 3


def test_peer_answers_every_receipt_and_counts_what_came(peer: Peer) -> None:
    with raw_client(peer) as (connection, collected):
        for number in range(20):
            connection.send("/queue/anything", "x" * 1024, receipt=f"r{number}")
        connection.begin("t")
        connection.commit("t", receipt="done")
        answered = [collected.receipts.get(timeout=10) for _ in range(21)]
        assert answered == [*(f"r{number}" for number in range(20)), "done"]
    counts = peer.counts()
    assert (counts["SEND"], counts["COMMIT"], counts["ABORT"]) == (20, 1, 0)
