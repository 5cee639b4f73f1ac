"""A transaction over AMQP is undone when everything of it has left or was taken back, and not before.

What leaves under a transaction that is over is delivered by Artemis, and ends the connection on others.
"""

from __future__ import annotations

import threading

import pytest
from tests.transports.amqp_frames import Frame, rejected, transactional
from tests.transports.amqp_peer import PeerEnd, ScriptedPeer
from tests.transports.amqp_sessions import Client, Session, entered, knows_the_transaction, transacted
from tests.transports.scripted import TIMEOUT, text

from redelivery.client.session.epoch import Bare
from redelivery.client.sync.driver import run
from redelivery.model.errors import InvalidDestinationError, ResourceAllocationError, TransactionRolledBackError
from redelivery.transports.seam import Pending

LARGE = "x" * 20_000


class Stage:
    """A peer at whose links sends wait, and a transacted session whose transaction t1 is known."""

    def __init__(self, end: PeerEnd, links: int = 1) -> None:
        self.end = end
        self.links = [end.attached(credit=0)]
        end.coordinated(b"t1")
        self.links += [end.attached(credit=0) for _ in range(links - 1)]

    def credit(self) -> None:
        """Every link gets credit: now nothing of t1 may come any more."""
        for link in self.links:
            self.end.give(link, 100)


def waiting(client: Client, links: int = 1) -> tuple[Session, list[Pending]]:
    """One that waits for the transaction's id at first, and all for credit then."""
    session, _ = transacted(client)
    sent = [session.post(text("never", "queue0"), transacted=True)]
    knows_the_transaction(session)
    sent += [session.post(text("never", f"queue{at}"), transacted=True) for at in range(links)]
    return session, sent


@pytest.mark.parametrize("links", [1, 5, 20])
def test_a_rollback_takes_back_what_waits_for_credit(links: int) -> None:
    undone, credited = threading.Event(), threading.Event()

    def script(end: PeerEnd) -> None:
        end.log_in()
        stage = Stage(end, links)
        end.discharge(b"t1", fail=True)
        end.declare(b"t2")
        stage.credit()
        credited.set()
        end.nothing()
        undone.set()
        assert entered(end, b"t2").body == "kept"
        end.discharge(b"t2")
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session, sent = waiting(client, links)
        session.do(session.channel.rollback())
        assert all(isinstance(each.error, TransactionRolledBackError) for each in sent)
        session.until(undone.is_set)
        session.post(text("kept", "queue0"), transacted=True)
        session.do(session.channel.commit([]))
        assert (client.errors, client.lost) == ([], [])


def test_a_close_takes_back_what_waits_for_credit() -> None:
    def script(end: PeerEnd) -> None:
        end.log_in()
        stage = Stage(end, 3)
        end.discharge(b"t1", fail=True)
        stage.credit()
        assert end.take("transfer").order == ("declare",)
        assert end.take().name == "end"
        end.send("end", 0)
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session, sent = waiting(client, 3)
        session.do(session.channel.close())
        assert all(isinstance(each.error, TransactionRolledBackError) for each in sent)
        assert client.errors == []


def test_a_session_that_is_closed_before_the_peer_has_agreed_to_it_ends_afterwards() -> None:
    """Nothing of it has left but what opens it, so that its end would come first; proton fails then."""
    began = threading.Event()

    def script(end: PeerEnd) -> None:
        end.log_in()
        begin = end.take("begin")
        assert [end.take().name for _ in range(3)] == ["attach"] * 3
        end.nothing()
        began.set()
        end.begun(begin)
        assert end.take("end").channel == begin.channel
        end.send("end", begin.channel)
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session, _ = transacted(client)
        for at in range(2):
            session.post(text("never", f"queue{at}"), transacted=True)
        session.do(session.channel.close())
        assert began.is_set()
        assert (client.errors, client.lost) == ([], [])


def test_a_refused_send_takes_back_those_that_wait() -> None:
    undone = threading.Event()

    def script(end: PeerEnd) -> None:
        end.log_in()
        first, second = Stage(end, 2).links
        end.give(first, 100)
        refused = end.take("transfer")
        entered(end, b"t1")
        end.settle(refused, transactional(b"t1", rejected("amqp:resource-limit-exceeded", "full")))
        end.discharge(b"t1", fail=True)
        end.declare(b"t2")
        end.give(second, 100)
        end.nothing()
        undone.set()
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session, sent = waiting(client, 2)
        with pytest.raises(TransactionRolledBackError, match="full"):
            session.do(session.channel.commit([]))
        assert isinstance(sent[2].error, TransactionRolledBackError)
        session.until(undone.is_set)


@pytest.mark.parametrize("way", ["refused", "session ended"])
def test_a_link_that_ends_while_sends_wait_fails_them_and_the_transaction(way: str) -> None:
    sent_all = threading.Event()

    def script(end: PeerEnd) -> None:
        end.log_in()
        attach = end.take("attach")
        coordinator = end.coordinated(b"t1")
        assert sent_all.wait(TIMEOUT)
        if way == "refused":
            end.refuse(attach, "amqp:not-found", "no such queue")
            end.gone("detach")
        else:
            end.end_session(coordinator.channel, "amqp:not-found", "no such queue")
            end.gone("end")
            end.goodbye()
            return
        end.discharge(b"t1", fail=True)
        end.declare(b"t2")
        end.attached()
        assert entered(end, b"t2").body == "kept"
        end.discharge(b"t2")
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session, _ = transacted(client)
        sent = [session.post(text("never"), transacted=True) for _ in range(3)]
        knows_the_transaction(session)
        sent.append(session.post(text("never"), transacted=True))
        sent_all.set()
        with pytest.raises(TransactionRolledBackError, match="no such queue"):
            session.do(session.channel.commit([]))
        assert all(each.done and each.error is not None for each in sent)
        assert isinstance(sent[0].error, InvalidDestinationError)
        if way == "refused":
            session.post(text("kept"), transacted=True)
            session.do(session.channel.commit([]))


@pytest.mark.parametrize("way", ["rollback", "refused commit", "time-out", "close"])
def test_a_message_that_is_half_written_leaves_before_the_discharge(way: str) -> None:
    """The peer's session takes two frames, and later more."""
    half, reported, done = threading.Event(), threading.Event(), threading.Event()
    came: list[Frame] = []

    def script(end: PeerEnd) -> None:
        end.log_in(max_frame_size=4096)
        end.window = 4
        link = end.attached()
        end.coordinated(b"t1")
        entered(end, b"t1")
        came.extend((end.take("transfer"), end.take("transfer")))
        half.set()
        assert reported.wait(TIMEOUT)
        if way == "refused commit":
            end.settle(came[0], transactional(b"t1", rejected("amqp:internal-error", "no")))
        end.nothing()
        end.open_window(link.channel)
        while came[-1]["more"]:
            came.append(end.take("transfer"))
        if way != "refused commit":
            end.settle(came[0], transactional(b"t1"))
        if way != "refused commit":  # which is undone when all of it has left
            end.declare(b"t2")
        end.discharge(b"t1", fail=True)
        done.set()
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session, _ = transacted(client)
        session.post(text("small"), transacted=True)
        knows_the_transaction(session)
        session.post(text(LARGE), transacted=True)
        session.until(half.is_set)
        if way == "time-out":
            with pytest.raises(TransactionRolledBackError, match="did not answer"):
                session.do(session.channel.commit([]), timeout=0.1)
        elif way == "rollback":
            session.do(session.channel.rollback())
        reported.set()
        if way == "refused commit":
            with pytest.raises(TransactionRolledBackError, match="internal-error"):
                session.do(session.channel.commit([]))
        if way == "close":
            session.do(session.channel.close())
        session.until(done.is_set)
        assert client.lost == []


def test_a_commit_waits_for_what_waits_for_credit() -> None:
    def script(end: PeerEnd) -> None:
        end.log_in()
        stage = Stage(end, 3)
        end.nothing()
        stage.credit()
        for _ in range(4):
            entered(end, b"t1")
        end.discharge(b"t1")
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session, sent = waiting(client, 3)
        session.do(session.channel.commit([]))
        assert [each.error for each in sent] == [None] * 4


@pytest.mark.parametrize("way", ["time-out", "interrupt"])
def test_a_commit_that_is_given_up_takes_back_what_waits(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    undone = threading.Event()

    def script(end: PeerEnd) -> None:
        end.log_in()
        stage = Stage(end, 2)
        end.discharge(b"t1", fail=True)
        end.declare(b"t2")
        stage.credit()
        end.nothing()
        undone.set()
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session, sent = waiting(client, 2)
        if way == "time-out":
            with pytest.raises(TransactionRolledBackError, match="no credit: nothing was sent"):
                session.do(session.channel.commit([]), timeout=0.1)
        else:
            with monkeypatch.context() as patch:
                patch.setattr(session.transport, "wait", _interrupt)
                with pytest.raises(KeyboardInterrupt):
                    run(session.channel.commit([]), Bare(session.transport), session.waiter, TIMEOUT)
        kind = ResourceAllocationError if way == "time-out" else TransactionRolledBackError
        assert all(isinstance(each.error, kind) for each in sent)
        session.until(undone.is_set)


def test_a_dead_letter_that_waits_for_credit_is_taken_back_when_its_time_is_over() -> None:
    undone = threading.Event()

    def script(end: PeerEnd) -> None:
        end.log_in("something")
        link = end.attached()
        end.message(link, 1)
        dead = end.attached(credit=0)
        end.coordinated(b"t1")
        end.discharge(b"t1", fail=True)
        end.give(dead, 100)
        end.nothing()
        undone.set()
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session, (delivery,) = transacted(client, 1)
        with pytest.raises(ResourceAllocationError, match="no credit: nothing was sent"):
            session.do(session.channel.poison(delivery, "no", text("copy", "dead")), timeout=0.2)
        session.until(undone.is_set)


def test_a_transaction_whose_coordinator_has_gone_takes_back_what_waits() -> None:
    sent, ended, rolled_back, undone = (threading.Event() for _ in range(4))

    def script(end: PeerEnd) -> None:
        end.log_in()
        link = end.attached(credit=0)
        coordinator = end.coordinated(b"t1")
        assert sent.wait(TIMEOUT)
        end.detach(coordinator, "amqp:transaction:timeout", "too old")
        end.gone("detach")
        ended.set()
        assert rolled_back.wait(TIMEOUT)
        end.give(link, 100)
        end.nothing()
        undone.set()
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session, _ = waiting(client)
        sent.set()
        session.until(ended.is_set)
        session.do(session.channel.rollback())
        rolled_back.set()
        session.until(undone.is_set)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
