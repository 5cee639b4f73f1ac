"""Units of work over AMQP whose answer, link, coordinator, session or connection goes."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from tests.transports.amqp_frames import ACCEPTED, declared, transactional
from tests.transports.amqp_peer import PeerEnd, ScriptedPeer
from tests.transports.amqp_sessions import Client, declare_first, declared_first, entered, transacted, with_messages
from tests.transports.scripted import TIMEOUT, text

from redelivery.model.errors import ConnectionLostError, InDoubtError, RequestTimeoutError, TransactionRolledBackError
from redelivery.model.modes import AckMode


@pytest.mark.parametrize("way", ["silence", "hang up", "close", "end"])
def test_a_commit_whose_answer_does_not_come_is_in_doubt(way: str) -> None:
    ended = threading.Event()

    def then(end: PeerEnd) -> None:
        link = end.coordinated(b"t1")
        end.take("disposition"), end.take("transfer"), end.take("transfer")
        if way == "close":
            end.send("close")
        elif way == "end":
            end.end_session(link.channel, "amqp:internal-error", "oops")
        elif way == "silence":
            ended.wait(TIMEOUT)
        else:
            raise ConnectionError

    with ScriptedPeer(with_messages(1, then)) as peer, Client(peer.port) as client:
        session, deliveries = transacted(client, 1)
        with pytest.raises(InDoubtError) as caught:
            session.do(session.channel.commit(deliveries), timeout=0.3 if way == "silence" else TIMEOUT)
        ended.set()
        assert caught.value.transaction_id == b"t1".hex()
        causes = {"silence": RequestTimeoutError, "hang up": ConnectionLostError, "close": ConnectionLostError}
        assert isinstance(caught.value.__cause__, causes.get(way, Exception))


def test_a_connection_that_went_before_the_commit_rolls_back() -> None:
    def drop(_: PeerEnd) -> None:
        raise ConnectionError

    with ScriptedPeer(with_messages(1, drop)) as peer, Client(peer.port) as client:
        session, deliveries = transacted(client, 1)
        with pytest.raises(ConnectionLostError):
            client.transport.wait(session.waiter, TIMEOUT)
        with pytest.raises(TransactionRolledBackError, match="undone before the commit"):
            session.do(session.channel.commit(deliveries))


def test_a_connection_that_goes_while_the_commit_is_declared_rolls_back() -> None:
    def then(end: PeerEnd) -> None:
        end.attached(), end.take("transfer")
        raise ConnectionError

    with ScriptedPeer(with_messages(1, then)) as peer, Client(peer.port) as client:
        session, deliveries = transacted(client, 1)
        with pytest.raises(TransactionRolledBackError, match="undone before the commit"):
            session.do(session.channel.commit(deliveries))


@pytest.mark.parametrize("state", [ACCEPTED, declared(b""), transactional(b"t1")])
def test_a_transaction_that_was_declared_without_an_id_is_declared_again(state: Any) -> None:
    def then(end: PeerEnd) -> None:
        for _ in ("the sender", "the coordinator"):
            end.attached()
        assert end.settle(end.take("transfer"), state).order == ("declare",)
        end.declare(b"t2")
        assert end.take("disposition").outcome == "transactional t2 accepted"
        end.discharge(b"t2")

    with ScriptedPeer(with_messages(1, then)) as peer, Client(peer.port) as client:
        session, deliveries = transacted(client, 1)
        session.post(text(), transacted=True)
        with pytest.raises(TransactionRolledBackError, match="declared it without an id"):
            session.do(session.channel.commit(deliveries))
        session.do(session.channel.commit(deliveries))


@pytest.mark.parametrize("gone", ["coordinator", "session"])
def test_a_transaction_that_went_with_its_coordinator_is_not_committed_by_another(gone: str) -> None:
    ended = threading.Event()

    def then(end: PeerEnd) -> None:
        end.attached()
        link = declared_first(end, b"t1")
        entered(end, b"t1")
        if gone == "session":
            end.end_session(link.channel, "amqp:internal-error", "oops")
            end.gone("end")
        else:
            end.detach(link, "amqp:internal-error", "oops")
            end.gone("detach")
        ended.set()
        if gone == "session":
            end.attached()
        end.coordinated(b"t2")
        entered(end, b"t2")
        end.discharge(b"t2")

    with ScriptedPeer(with_messages(0, then)) as peer, Client(peer.port) as client:
        session, _ = transacted(client)
        session.attach()
        declare_first(session)
        sent = session.post(text("1"), transacted=True)
        session.until(ended.is_set)
        assert sent.error is None
        session.post(text("2"), transacted=True)
        with pytest.raises(TransactionRolledBackError, match="oops"):
            session.do(session.channel.commit([]))
        session.post(text("3"), transacted=True)
        session.do(session.channel.commit([]))


def test_a_delivery_of_a_link_that_has_ended_makes_nothing_of_the_commit_leave() -> None:
    ended = threading.Event()

    def script(end: PeerEnd) -> None:
        end.log_in()
        first, second = end.attached(), end.attached()
        end.message(first, 1)
        end.message(second, 2)
        end.detach(second, "amqp:resource-deleted", "queue deleted")
        assert end.take("disposition").outcome == "released"
        end.take("detach")
        ended.set()
        end.coordinated(b"t1")
        frame = end.take("disposition")  # of the second commit
        assert (frame["first"], frame.outcome) == (0, "transactional t1 accepted")
        end.discharge(b"t1")
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session(AckMode.TRANSACTED)
        session.attach("one")
        session.attach("two")
        first, second = session.receive_many(2)
        session.until(ended.is_set)
        with pytest.raises(TransactionRolledBackError, match="queue deleted") as caught:
            session.do(session.channel.commit([first, second]))
        assert not caught.value.redelivered_by_broker
        session.do(session.channel.commit([first]))
