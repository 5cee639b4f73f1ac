"""Units of work on a broker that behaves as ActiveMQ does, frame by frame."""

from __future__ import annotations

import threading

import pytest
from tests.transports.scripted import TIMEOUT, BrokerEnd, Client, ScriptedBroker, lines, text, with_messages

from redelivery.model.errors import (
    ConnectionLostError,
    InDoubtError,
    RequestTimeoutError,
    SecurityError,
    TransactionRolledBackError,
)
from redelivery.model.modes import AckMode
from redelivery.transports.seam import Pending

COMMITTING = pytest.mark.parametrize("mode", [AckMode.TRANSACTED, AckMode.CLIENT])


def test_what_is_enlisted_is_not_acknowledged_again_at_the_commit() -> None:
    frames: list[list[str]] = []

    def then(end: BrokerEnd) -> None:
        frames.extend(lines(end.take()) for _ in range(4))
        end.answer(end.take("COMMIT"))

    with ScriptedBroker(with_messages(3, then)) as broker, Client(broker.port) as client:
        session = client.session(AckMode.TRANSACTED)
        session.attach(window=4)
        deliveries = session.receive_many(3)
        for delivery in deliveries:
            session.channel.dispatched(delivery)
        session.do(session.channel.commit(deliveries))
    assert [frame[:-1] for frame in frames] == [["BEGIN"], ["ACK", "a:1"], ["ACK", "a:2"], ["ACK", "a:3"]]


def test_a_commit_without_sends_is_one_write() -> None:
    packets: list[bytes] = []

    def then(end: BrokerEnd) -> None:
        packets.append(end.sock.recv(65536))
        end.send("RECEIPT", receipt_id=packets[0].rpartition(b"receipt:")[2].split(b"\n")[0].decode())

    with ScriptedBroker(with_messages(3, then)) as broker, Client(broker.port) as client:
        session = client.session(AckMode.TRANSACTED)
        session.attach()
        session.do(session.channel.commit([]))
        session.do(session.channel.commit(session.receive_many(3)))
    assert [frame.split(b"\n")[0] for frame in packets[0].split(b"\0")] == [
        b"BEGIN",
        b"ACK",
        b"ACK",
        b"ACK",
        b"COMMIT",
        b"BEGIN",  # an empty transaction, undone: the broker's list of what was transacted begins anew
        b"ABORT",
        b"",
    ]


def test_what_is_dispatched_enters_the_transaction_before_the_window_is_full() -> None:
    frames: list[list[str]] = []

    def then(end: BrokerEnd) -> None:
        frames.extend(lines(end.take()) for _ in range(6 + 3))
        end.answer(end.take("COMMIT"))

    with ScriptedBroker(with_messages(5, then)) as broker, Client(broker.port) as client:
        session = client.session(AckMode.TRANSACTED)
        session.attach(window=4)
        deliveries = session.receive_many(5)
        for delivery in deliveries[:4]:
            session.channel.dispatched(delivery)
        session.do(session.channel.rollback())
        session.channel.dispatched(deliveries[0])
        session.do(session.channel.commit(deliveries[:2]))
    (first,), (second,) = {tuple(frame[-1:]) for frame in frames[:6]}, {tuple(frame[-1:]) for frame in frames[6:]}
    assert [frame[:-1] for frame in frames] == [
        ["BEGIN"], ["ACK", "a:1"], ["ACK", "a:2"], ["ACK", "a:3"], ["ACK", "a:4"], ["ABORT"], ["BEGIN"], ["ACK", "a:1"],
        ["ACK", "a:2"],
    ]  # fmt: skip
    assert first != second


def test_a_commit_acknowledges_nothing_that_is_not_in_it() -> None:
    frames: list[list[str]] = []

    def then(end: BrokerEnd) -> None:
        frames.extend(lines(end.take()) for _ in range(8))
        end.answer(end.take("COMMIT"))

    with ScriptedBroker(with_messages(3, then)) as broker, Client(broker.port) as client:
        session = client.session(AckMode.CLIENT)
        session.attach(window=6)
        first, second, third = session.receive_many(3)
        for delivery in (first, second, third):
            session.channel.dispatched(delivery)
        session.do(session.channel.commit([first, second]))
    assert [frame[:-1] for frame in frames] == [
        ["BEGIN"],
        ["ACK", "a:1"],
        ["ACK", "a:2"],
        ["ACK", "a:3"],
        ["ABORT"],
        ["BEGIN"],
        ["ACK", "a:1"],
        ["ACK", "a:2"],
    ]


def test_a_refused_send_undoes_the_transaction() -> None:
    frames: list[str] = []

    def then(end: BrokerEnd) -> None:
        frames.append(end.take("BEGIN").command)
        end.answer(end.take("SEND"))
        end.refuse(end.take("SEND"), "User ann is not authorized to write to: queue://orders")
        frames.append(end.take().command)

    with ScriptedBroker(with_messages(1, then)) as broker, Client(broker.port) as client:
        session = client.session(AckMode.TRANSACTED)
        session.attach()
        delivery = session.receive()
        session.channel.send(text("1"), transacted=True, pending=None)
        session.channel.send(text("2"), transacted=True, pending=None)
        with pytest.raises(TransactionRolledBackError, match="not authorized") as caught:
            session.do(session.channel.commit([delivery]))
        assert isinstance(caught.value.__cause__, SecurityError)
    assert frames == ["BEGIN", "ABORT"]


def test_sends_are_confirmed_before_the_commit_leaves() -> None:
    frames: list[str] = []

    def then(end: BrokerEnd) -> None:
        sends = [end.take("BEGIN", "SEND") for _ in range(3)][1:]
        end.sock.settimeout(0.2)
        with pytest.raises(TimeoutError):
            end.take()
        end.sock.settimeout(TIMEOUT)
        for send in sends:
            end.answer(send)
        frames.extend(end.take().command for _ in range(1))
        end.answer(end.take("COMMIT"))

    with ScriptedBroker(with_messages(1, then)) as broker, Client(broker.port) as client:
        session = client.session(AckMode.TRANSACTED)
        session.attach()
        delivery = session.receive()
        reported: list[bool] = []
        session.channel.send(
            text("1"), transacted=True, pending=Pending(on_done=lambda pending: reported.append(pending.done))
        )
        session.channel.send(text("2"), transacted=True, pending=None)
        session.do(session.channel.commit([delivery]))
        assert reported == [True]
    assert frames == ["ACK"]


def test_a_refused_commit_leaves_the_deliveries_ours() -> None:
    def then(end: BrokerEnd) -> None:
        end.take("BEGIN"), end.take("ACK"), end.take("ACK")
        commit = end.take("COMMIT")
        end.refuse(commit, "no")
        end.take("BEGIN"), end.take("ABORT")
        abort = end.take("ABORT")  # or the broker would hold the ACK, and refuse the next one
        assert abort.headers["transaction"] == commit.headers["transaction"]
        end.refuse(abort, "no such transaction")
        end.take("BEGIN"), end.take("ACK"), end.take("ACK")
        end.answer(end.take("COMMIT"))

    with ScriptedBroker(with_messages(2, then)) as broker, Client(broker.port) as client:
        session = client.session(AckMode.TRANSACTED)
        session.attach()
        deliveries = session.receive_many(2)
        with pytest.raises(TransactionRolledBackError, match="the commit was refused: the broker says: no"):
            session.do(session.channel.commit(deliveries))
        session.do(session.channel.commit(deliveries))


@pytest.mark.parametrize("silence", [True, False])
def test_a_commit_whose_answer_does_not_come_is_in_doubt(silence: bool) -> None:
    release = threading.Event()

    def then(end: BrokerEnd) -> None:
        end.take("BEGIN"), end.take("ACK"), end.take("ACK"), end.take("COMMIT")
        if not silence:
            raise ConnectionError
        release.wait(TIMEOUT)

    with ScriptedBroker(with_messages(2, then)) as broker, Client(broker.port) as client:
        session = client.session(AckMode.TRANSACTED)
        session.attach()
        deliveries = session.receive_many(2)
        with pytest.raises(InDoubtError) as caught:
            session.do(session.channel.commit(deliveries), timeout=0.3 if silence else TIMEOUT)
        assert caught.value.transaction_id == broker.ends[0].taken[-1].headers["transaction"]
        assert isinstance(caught.value.__cause__, RequestTimeoutError if silence else ConnectionLostError)
        release.set()


@COMMITTING
def test_a_commit_of_one_delivery_is_its_ack(mode: AckMode) -> None:
    """Atomic by itself."""
    frames: list[list[str]] = []

    def then(end: BrokerEnd) -> None:
        ack = end.take("ACK")
        frames.append(lines(ack))
        end.answer(ack)

    with ScriptedBroker(with_messages(1, then)) as broker, Client(broker.port) as client:
        session = client.session(mode)
        session.attach()
        session.do(session.channel.commit([session.receive()]))
    assert frames == [["ACK", "a:1"]]


@COMMITTING
def test_a_commit_beside_what_is_parked_is_a_transaction(mode: AckMode) -> None:
    """An ACK outside any would make Classic take back the room in the window that the parked one has made."""
    frames: list[str] = []

    def then(end: BrokerEnd) -> None:
        frames.extend(end.take().command for _ in range(5))
        commit = end.take("COMMIT")
        end.answer(commit)
        frames.extend(end.take().command for _ in range(5))

    with ScriptedBroker(with_messages(2, then)) as broker, Client(broker.port) as client:
        session = client.session(mode)
        session.attach(window=2)
        first, second = session.receive_many(2)
        session.channel.park([first])
        session.do(session.channel.commit([second]))
        session.channel.unpark([first])
    assert frames == ["BEGIN", "ACK", "ABORT", "BEGIN", "ACK", "BEGIN", "ABORT", "BEGIN", "ACK", "ABORT"]


def test_a_commit_of_one_delivery_that_is_refused_leaves_it_ours() -> None:
    def then(end: BrokerEnd) -> None:
        end.refuse(end.take("ACK"), "no")
        end.answer(end.take("ACK"))

    with ScriptedBroker(with_messages(1, then)) as broker, Client(broker.port) as client:
        session = client.session(AckMode.TRANSACTED)
        session.attach()
        delivery = session.receive()
        with pytest.raises(TransactionRolledBackError, match="the commit was refused: the broker says: no"):
            session.do(session.channel.commit([delivery]))
        session.do(session.channel.commit([delivery]))


def test_an_error_about_another_frame_says_nothing_of_a_commit_of_one_delivery() -> None:
    def then(end: BrokerEnd) -> None:
        ack = end.take("ACK")
        end.send("ERROR", message="Unexpected ACK received for message-id [m0]")
        end.answer(ack)

    with ScriptedBroker(with_messages(1, then)) as broker, Client(broker.port) as client:
        session = client.session(AckMode.TRANSACTED)
        session.attach()
        session.do(session.channel.commit([session.receive()]))


@pytest.mark.parametrize("silence", [True, False])
def test_a_commit_of_one_delivery_whose_answer_does_not_come_is_in_doubt(silence: bool) -> None:
    release = threading.Event()

    def then(end: BrokerEnd) -> None:
        end.take("ACK")
        if not silence:
            raise ConnectionError
        release.wait(TIMEOUT)

    with ScriptedBroker(with_messages(1, then)) as broker, Client(broker.port) as client:
        session = client.session(AckMode.TRANSACTED)
        session.attach()
        delivery = session.receive()
        with pytest.raises(InDoubtError, match="the broker's answer to the commit did not come") as caught:
            session.do(session.channel.commit([delivery]), timeout=0.3 if silence else TIMEOUT)
        assert caught.value.transaction_id is None  # the broker knows of none
        assert isinstance(caught.value.__cause__, RequestTimeoutError if silence else ConnectionLostError)
        release.set()


def test_a_commit_of_one_delivery_and_a_send_is_a_transaction() -> None:
    frames: list[str] = []

    def then(end: BrokerEnd) -> None:
        frames.append(end.take().command)
        frames.append(end.answer(end.take()).command)
        frames.append(end.take().command)
        frames.append(end.answer(end.take()).command)

    with ScriptedBroker(with_messages(1, then)) as broker, Client(broker.port) as client:
        session = client.session(AckMode.TRANSACTED)
        session.attach()
        delivery = session.receive()
        session.channel.send(text("1"), transacted=True, pending=None)
        session.do(session.channel.commit([delivery]))
    assert frames == ["BEGIN", "SEND", "ACK", "COMMIT"]


def test_a_connection_that_went_before_the_commit_rolls_back() -> None:
    def drop(_: BrokerEnd) -> None:
        raise ConnectionError

    with ScriptedBroker(with_messages(1, drop)) as broker, Client(broker.port) as client:
        session = client.session(AckMode.TRANSACTED)
        session.attach()
        delivery = session.receive()
        with pytest.raises(ConnectionLostError):
            client.transport.wait(session.waiter, TIMEOUT)
        with pytest.raises(TransactionRolledBackError, match="lost before the commit"):
            session.do(session.channel.commit([delivery]))
