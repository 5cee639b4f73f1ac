"""A body of more than 1 MiB does not pass through memory twice, and is in the file once for all of its messages."""

from __future__ import annotations

import sqlite3
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import redelivery
from redelivery import Connection
from redelivery.broker import BrokerConfig, EmbeddedBroker
from redelivery.broker.engine.stored import StoredBody, StoredMessage
from redelivery.broker.servers.stomp.addresses import Addresses
from redelivery.broker.servers.stomp.bodies import ArrivedBody
from redelivery.broker.servers.stomp.messages import MAP_JSON, read_send
from redelivery.broker.store.bodies import PIECE, pieces
from redelivery.broker.store.encoding import encode_body
from redelivery.model.destinations import Queue
from redelivery.model.values import Body, Byte, Float, Long
from redelivery.testing import fast_forward
from redelivery.transports.stomp.codec.frames import Frame, encode_head
from redelivery.transports.stomp.codec.maps import write_map

SIZE = 4 << 20  # bytes
LITTLE = SIZE // 2
HOUR = 3600.0  # seconds
BODY = "x" * SIZE
FAST = BrokerConfig(store_synchronous="normal")


@dataclass
class Wire:
    """What came over AMQP."""

    raw: bytearray


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker("large", store=tmp_path / "shop.db", config=FAST) as broker:
        yield broker


@pytest.fixture
def connection(broker: EmbeddedBroker) -> Iterator[Connection]:
    with redelivery.connect(broker.vm_url, client_id="shop") as connection:
        yield connection


@contextmanager
def measured() -> Iterator[Callable[[], int]]:
    """How many bytes Python had at most, more than at the beginning."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        yield lambda: tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def stored(broker: EmbeddedBroker) -> int:
    """Bytes of large bodies in the file; nothing in it is larger than a piece."""
    path = broker.core._store
    assert path is not None
    broker.close()
    with closing(sqlite3.connect(path.path)) as database:
        for table, column in (("message", "body"), ("delayed", "body"), ("piece", "data")):
            largest = f"SELECT coalesce(max(length({column})), 0) FROM {table}"  # noqa: S608 - names of this file
            assert database.execute(largest).fetchone()[0] <= PIECE
        found: int = database.execute("SELECT coalesce(sum(length(data)), 0) FROM piece").fetchone()[0]
    return found


def test_a_send_goes_to_the_file_in_pieces(broker: EmbeddedBroker, connection: Connection) -> None:
    with measured() as peak, connection.session() as session:
        session.producer("q").send(BODY)
        assert peak() < LITTLE
    with measured() as peak, connection.session() as session:
        message = session.consumer("q").receive(timeout=10)
        assert message is not None
        assert len(str(message.body)) == SIZE
        assert peak() < 3 * SIZE, "the bytes, and the text that they are"
    del message
    assert stored(broker) == 0


def test_a_delayed_one_is_written_once_and_not_read_when_it_is_due(
    broker: EmbeddedBroker, connection: Connection
) -> None:
    with measured() as peak, fast_forward(broker) as clock:
        with connection.session() as session:
            session.producer("q").send(BODY, delivery_delay=HOUR)
        clock.advance(HOUR)
        broker.wait_for("q", depth=1)
        assert peak() < LITTLE
    assert [message.body for message in broker.messages("q")] == [BODY]
    assert stored(broker) == SIZE


@pytest.mark.parametrize("restarted", [False, True])
def test_a_delayed_one_is_there_after_a_restart(broker: EmbeddedBroker, tmp_path: Path, restarted: bool) -> None:
    with fast_forward(broker) as clock:
        broker.send("q", BODY, delivery_delay=HOUR)
        if not restarted:
            clock.advance(HOUR)
    broker.kill()
    with EmbeddedBroker("again", store=tmp_path / "shop.db") as again:
        if restarted:
            with fast_forward(again) as clock:
                clock.advance(2 * HOUR)
        with redelivery.connect(again.vm_url) as connection, connection.session() as session:
            message = session.consumer("q").receive(timeout=10)
            assert message is not None
            assert message.body == BODY
        del message
        assert stored(again) == 0


def test_a_dead_letter_has_the_body_that_is_there(broker: EmbeddedBroker, connection: Connection) -> None:
    with measured() as peak:
        with connection.session() as session:
            session.producer("q").send(BODY, ttl=0.001)
        broker.wait_for("ActiveMQ.DLQ", depth=1)
        assert peak() < LITTLE
    assert stored(broker) == SIZE


@pytest.mark.parametrize("delay", [0, HOUR])
def test_the_subscriptions_of_a_topic_share_it(
    broker: EmbeddedBroker, connection: Connection, tmp_path: Path, delay: float
) -> None:
    with connection.session() as session:
        for name in ("first", "second"):
            session.durable_consumer("topic://t", name).close()
        with measured() as peak, fast_forward(broker) as clock:
            session.producer("topic://t").send(BODY, delivery_delay=delay)
            clock.advance(delay)
            assert peak() < LITTLE
    assert stored(broker) == SIZE
    with (
        EmbeddedBroker("again", store=tmp_path / "shop.db") as again,
        redelivery.connect(again.vm_url, client_id="shop") as later,
        later.session() as session,
    ):
        for name in ("first", "second"):
            message = session.durable_consumer("topic://t", name).receive(timeout=10)
            assert message is not None
            assert message.body == BODY
        del message
        assert stored(again) == 0


@pytest.mark.parametrize("consumed", ["", "a", "ab"])
def test_messages_of_one_transaction_share_it(broker: EmbeddedBroker, connection: Connection, consumed: str) -> None:
    with connection.session("transacted") as session:
        for name in "ab":
            session.producer(name).send(BODY)
        session.commit()
    with connection.session() as session:
        for name in consumed:
            assert session.consumer(name).receive(timeout=10) is not None
    for name in {*"ab"} - {*consumed}:
        assert [message.body for message in broker.messages(name)] == [BODY]
    assert stored(broker) == (0 if consumed == "ab" else SIZE)


MAPS: dict[str, Body] = {
    "long text": {"a": 'ä"' * (SIZE // 2), "\n": None},
    "long bytes": {"a": b"x" * (SIZE - 1), "b": Long(1)},
    "many entries": {f"entry {number}": "x" * 1024 for number in range(SIZE >> 10)},
    "stream": ["x" * SIZE, Float(1.5), b"x", True, None],
}


def test_a_map_goes_to_the_file_in_pieces(broker: EmbeddedBroker, connection: Connection) -> None:
    body = MAPS["long bytes"]
    with measured() as peak, connection.session() as session:
        session.producer("q").send(body)
        assert peak() < LITTLE
    (message,) = broker.messages("q")
    assert message.body == body
    del message
    stored(broker)


@pytest.mark.parametrize(
    "body",
    [
        *MAPS.values(),
        {},
        [],
        {"": ""},
        ["𝄞ä" * 99_000, "\ud800" * 99_000],
        {"a": Byte(1), "b": bytes(99_999), "c": "x"},
    ],
)
def test_the_pieces_of_a_map_are_what_is_read(body: Body) -> None:
    message = StoredMessage("ID:1", Queue("q"), body)
    found = [bytes(piece) for piece in pieces(message)]
    assert b"".join(found) == encode_body(message).data
    assert {len(piece) for piece in found[:-1]} <= {PIECE}


def test_a_map_over_stomp_is_there_as_text_and_as_a_map_while_it_is_read(broker: EmbeddedBroker) -> None:
    """And in the frame: JSON is read as a whole."""
    headers = {"destination": "/queue/q", "transformation": MAP_JSON, "content-length": "0"}
    frame = Frame(encode_head("SEND", headers, "1.2"), write_map({"a": "x" * SIZE}), "1.2")
    with measured() as peak:
        message = read_send(frame, "ID:1", Addresses(broker.core, "client"), now=0, origin="")
        assert isinstance(message.body, dict)
        assert sum(len(piece) for piece in pieces(message)) > SIZE
        assert peak() < 2 * SIZE + LITTLE


@pytest.mark.parametrize(
    "body", ["ä" * (SIZE // 2), b"x" * SIZE, None, ArrivedBody("bytes", [b"x" * SIZE]), *MAPS.values()]
)
def test_its_pieces_are_no_copy(body: StoredBody) -> None:
    wire = None if body is not None else Wire(bytearray(SIZE))
    message = StoredMessage("ID:1", Queue("q"), body, wire=wire)
    with measured() as peak:
        assert sum(len(piece) for piece in pieces(message)) >= SIZE
        assert peak() < LITTLE


def test_an_empty_body_with_large_properties_is_kept(broker: EmbeddedBroker, tmp_path: Path) -> None:
    for body in (None, "", b""):
        broker.send("q", body, properties={"large": "x" * (2 << 20)})
    broker.close()
    with EmbeddedBroker("again", store=tmp_path / "shop.db") as again:
        assert [message.body for message in again.messages("q")] == [None, "", b""]
