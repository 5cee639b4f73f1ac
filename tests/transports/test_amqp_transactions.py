"""Units of work over AMQP: a transaction declared ahead, deliveries enlisted at the commit and not before."""

from __future__ import annotations

from typing import Any

import pytest
from tests.transports.amqp_frames import RELEASED, declared, rejected, transactional
from tests.transports.amqp_peer import PeerEnd, ScriptedPeer
from tests.transports.amqp_sessions import (
    Client,
    declare_first,
    declared_first,
    entered,
    knows_the_transaction,
    transacted,
    with_messages,
)
from tests.transports.scripted import text

from redelivery.model.errors import SecurityError, TransactionRolledBackError, UnsupportedError
from redelivery.model.modes import AckMode
from redelivery.transports.amqp.channel import transactions
from redelivery.transports.seam import Pending
from redelivery.transports.wire.clock import monotonic


def test_a_commit_enlists_discharges_and_declares_the_next_at_once() -> None:
    seen: list[str] = []

    def then(end: PeerEnd) -> None:
        assert end.attached().address == "coordinator"
        end.declare(b"t1")
        for _ in range(2):
            frame = end.take("disposition")
            seen.append(f"{frame['first']} {frame['settled']} {frame.outcome}")
        discharge = end.take("transfer")
        assert discharge.order == ("discharge", b"t1", False)
        following = end.take("transfer")  # before the discharge is answered
        assert following.order == ("declare",)
        end.settle(discharge)
        seen.append("committed")

    with ScriptedPeer(with_messages(2, then)) as peer, Client(peer.port) as client:
        session, deliveries = transacted(client, 2)
        session.do(session.channel.commit([]))  # nothing: not even a declare
        session.do(session.channel.commit(deliveries))
    assert seen == ["0 True transactional t1 accepted", "1 True transactional t1 accepted", "committed"]


def test_a_second_commit_uses_what_was_declared_ahead() -> None:
    def then(end: PeerEnd) -> None:
        end.coordinated(b"t1")
        for number in (1, 2):
            end.take("disposition")
            end.discharge(b"t%d" % number)
            end.declare(b"t%d" % (number + 1))

    with ScriptedPeer(with_messages(2, then)) as peer, Client(peer.port) as client:
        session, deliveries = transacted(client, 2)
        for each in deliveries:
            session.do(session.channel.commit([each]))


def test_a_rollback_undoes_the_sends_and_touches_no_delivery() -> None:
    orders: list[object] = []

    def then(end: PeerEnd) -> None:
        end.attached()  # the queue
        end.coordinated(b"t1")
        entered(end, b"t1")
        entered(end, b"t1")
        orders.extend(end.take("transfer").order for _ in range(2))
        end.nothing()

    with ScriptedPeer(with_messages(1, then)) as peer:
        with Client(peer.port) as client:
            session, deliveries = transacted(client, 1)
            session.channel.dispatched(deliveries[0])
            first = session.post(text("1"), transacted=True)
            knows_the_transaction(session)
            second = session.post(text("2"), transacted=True)  # takes the first with it
            session.until(lambda: first.done and second.done)
            session.do(session.channel.rollback())
            session.do(session.channel.rollback())  # nothing
            session.receive(0.15)
        assert "disposition" not in [frame.name for frame in peer.peers[0].taken]
    assert orders == [("discharge", b"t1", True), ("declare",)]


def test_a_rollback_before_the_transaction_is_known_costs_nothing() -> None:
    sent_before: list[Pending] = []

    def then(end: PeerEnd) -> None:
        end.attached()
        end.attached()
        frame = end.take("transfer")
        end.nothing()
        end.settle(frame, declared(b"t1"))
        entered(end, b"t1")
        end.discharge(b"t1")

    with ScriptedPeer(with_messages(0, then)) as peer, Client(peer.port) as client:
        session, _ = transacted(client)
        session.attach()
        sent_before.append(session.post(text("never"), transacted=True))
        session.do(session.channel.rollback())
        assert isinstance(sent_before[0].error, TransactionRolledBackError)
        session.post(text("2"), transacted=True)
        session.do(session.channel.commit([]))
        assert client.errors == []


def test_a_refused_send_undoes_the_transaction_and_the_deliveries_stay_ours() -> None:
    orders: list[object] = []

    def then(end: PeerEnd) -> None:
        end.attached()
        end.coordinated(b"t1")
        entered(end, b"t1")
        refusal = rejected("amqp:unauthorized-access", "ann may not write")
        end.settle(end.take("transfer"), transactional(b"t1", refusal))
        orders.append(end.take("transfer").order)
        end.declare(b"t2")
        orders.append(end.take("disposition").outcome)
        end.discharge(b"t2")

    with ScriptedPeer(with_messages(1, then)) as peer, Client(peer.port) as client:
        session, deliveries = transacted(client, 1)
        session.post(text("1"), transacted=True)
        session.post(text("2"), transacted=True)
        with pytest.raises(TransactionRolledBackError, match="ann may not write") as caught:
            session.do(session.channel.commit(deliveries))
        assert isinstance(caught.value.__cause__, SecurityError)
        assert not caught.value.redelivered_by_broker
        session.do(session.channel.commit(deliveries))
        assert client.errors == []
    assert orders == [("discharge", b"t1", True), "transactional t2 accepted"]


@pytest.mark.parametrize(
    ("state", "named"),
    [
        (rejected("amqp:resource-limit-exceeded", "full"), "resource-limit-exceeded: full"),
        (RELEASED, "released: nobody wanted it, it was not stored"),
        (transactional(b"t1", RELEASED), "released: nobody wanted it, it was not stored"),
        (transactional(b"t1", None), "no outcome"),
        (transactional(b"t1", rejected("x:y")), "x:y"),
    ],
)
def test_whatever_is_not_accepted_is_no_part_of_a_commit(state: Any, named: str) -> None:
    def then(end: PeerEnd) -> None:
        end.attached()
        end.coordinated(b"t1")
        end.settle(end.take("transfer"), state)
        end.discharge(b"t1", fail=True)

    with ScriptedPeer(with_messages(0, then)) as peer, Client(peer.port) as client:
        session, _ = transacted(client)
        session.attach()
        session.post(text(), transacted=True)
        with pytest.raises(TransactionRolledBackError, match=named):
            session.do(session.channel.commit([]))


@pytest.mark.parametrize("way", ["rejected", "detached"])
def test_a_refused_discharge_gives_the_deliveries_back(way: str) -> None:
    def then(end: PeerEnd) -> None:
        link = end.coordinated(b"t1")
        end.take("disposition")
        discharge = end.take("transfer")
        if way == "rejected":
            end.settle(discharge, rejected("amqp:transaction:rollback", "too late"))
            end.declare(b"t2")
        else:
            end.detach(link, "amqp:transaction:rollback", "too late")
            end.take("transfer")
            end.gone("detach")
            end.coordinated(b"t2")
        end.take("disposition")
        end.discharge(b"t2")

    with ScriptedPeer(with_messages(2, then)) as peer, Client(peer.port) as client:
        session, (first, second) = transacted(client, 2)
        with pytest.raises(TransactionRolledBackError, match=r"the commit was refused: .*too late") as caught:
            session.do(session.channel.commit([first]))
        assert caught.value.redelivered_by_broker
        session.do(session.channel.commit([second]))


def test_a_refused_discharge_of_sends_alone_redelivers_nothing() -> None:
    def then(end: PeerEnd) -> None:
        end.attached()
        end.coordinated(b"t1")
        entered(end, b"t1")
        end.discharge(b"t1", state=rejected("amqp:internal-error", "no"))

    with ScriptedPeer(with_messages(0, then)) as peer, Client(peer.port) as client:
        session, _ = transacted(client)
        session.attach()
        session.post(text(), transacted=True)
        with pytest.raises(TransactionRolledBackError, match="internal-error: no") as caught:
            session.do(session.channel.commit([]))
        assert not caught.value.redelivered_by_broker


def test_an_idle_transaction_is_replaced_before_anything_enters_it(monkeypatch: pytest.MonkeyPatch) -> None:
    orders: list[object] = []

    def then(end: PeerEnd) -> None:
        end.coordinated(b"t1")
        end.take("disposition")
        end.discharge(b"t1")
        end.declare(b"t2")
        orders.append(end.discharge(b"t2", fail=True).order)
        end.declare(b"t3")
        orders.append(end.take("disposition").outcome)
        end.discharge(b"t3")

    with ScriptedPeer(with_messages(2, then)) as peer, Client(peer.port) as client:
        session, (first, second) = transacted(client, 2)
        session.do(session.channel.commit([first]))
        knows_the_transaction(session)
        _hours_later(monkeypatch)
        session.do(session.channel.commit([second]))
    assert orders == [("discharge", b"t2", True), "transactional t3 accepted"]


def test_an_idle_transaction_is_replaced_before_a_send_enters_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fresh for 20 s and no longer; the shortest limit of a broker is 60 s."""
    for seconds, used in ((15, b"t1"), (25, b"t2")):

        def then(end: PeerEnd, seconds: int = seconds, used: bytes = used) -> None:
            declared_first(end, b"t0")
            entered(end, b"t0")
            end.discharge(b"t0", fail=True)
            end.declare(b"t1")
            if seconds > 20:
                end.discharge(b"t1", fail=True)
                end.declare(b"t2")
            entered(end, used)
            end.discharge(used)

        with ScriptedPeer(with_messages(0, then)) as peer, Client(peer.port) as client, monkeypatch.context() as patch:
            session, _ = transacted(client)
            declare_first(session)
            session.post(text("undone"), transacted=True)
            session.do(session.channel.rollback())
            knows_the_transaction(session)
            now = monotonic() + seconds
            patch.setattr(transactions, "monotonic", lambda now=now: now)
            session.post(text("kept"), transacted=True)
            session.do(session.channel.commit([]))


def test_a_transaction_that_holds_a_send_is_never_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    def then(end: PeerEnd) -> None:
        end.attached()
        declared_first(end, b"t1")
        entered(end, b"t1")
        end.discharge(b"t1")

    with ScriptedPeer(with_messages(1, then)) as peer, Client(peer.port) as client:
        session, deliveries = transacted(client, 1)
        declare_first(session)
        session.post(text("1"), transacted=True)
        _hours_later(monkeypatch)
        session.do(session.channel.commit([]))
        del deliveries


def _hours_later(monkeypatch: pytest.MonkeyPatch) -> None:
    now = monotonic() + 7200
    monkeypatch.setattr(transactions, "monotonic", lambda: now)


def test_a_broker_without_transactions_says_so_at_the_commit() -> None:
    def then(end: PeerEnd) -> None:
        end.attached()
        end.refuse(end.take("attach"), "amqp:not-implemented", "no transactions here")

    with ScriptedPeer(with_messages(0, then)) as peer, Client(peer.port) as client:
        session, _ = transacted(client)
        session.attach()
        session.post(text(), transacted=True)
        with pytest.raises(TransactionRolledBackError, match="no transactions here") as caught:
            session.do(session.channel.commit([]))
        assert isinstance(caught.value.__cause__, UnsupportedError)
        assert client.lost == []


def test_two_sessions_have_transactions_of_their_own() -> None:
    def script(end: PeerEnd) -> None:
        end.log_in()
        for transaction in (b"t1", b"t2"):
            end.attached()
            end.coordinated(transaction)
        for _ in range(2):
            frame = end.take("transfer")
            end.settle(frame, transactional(frame["state"].value[0]))
        end.discharge(b"t2")
        end.declare(b"t4")
        end.discharge(b"t1")
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        one, two = client.session(AckMode.TRANSACTED), client.session(AckMode.TRANSACTED)
        for session in (one, two):
            session.post(text("declares"), transacted=True)
            session.do(session.channel.rollback())
            knows_the_transaction(session)
        sent = [session.post(text(), transacted=True) for session in (one, two)]
        one.until(lambda: all(each.done for each in sent))
        two.do(two.channel.commit([]))
        one.do(one.channel.commit([]))
