"""The window of a consumer: credit at hand-out, batches of any size, draining, and what is not whole."""

from __future__ import annotations

import threading
from itertools import pairwise

import pytest
from tests.transports.amqp_frames import Frame, declared, transactional
from tests.transports.amqp_peer import PeerEnd, ScriptedPeer
from tests.transports.amqp_sessions import Client, Session, with_messages
from tests.transports.scripted import TIMEOUT, text

from redelivery.model.errors import RequestTimeoutError, UnsupportedError
from redelivery.model.modes import AckMode

ARTEMIS = "apache-activemq-artemis"


def granted(flow: Frame) -> int:
    """How many deliveries may have come in all."""
    total: int = flow["delivery_count"] + flow["link_credit"]
    return total


def done(_: PeerEnd) -> None:
    """All is said that the test needs."""


class Feeder:
    """A broker that sends exactly what it has credit for, and looks at the window that this makes."""

    def __init__(self, number: int, product: str = ARTEMIS, body: bytes = b"x") -> None:
        self.number = number
        self.body = body
        self.product = product
        self.sent = 0
        self.most = 0  # that was sent and not dispatched
        self.dispatched = 0

    def __call__(self, end: PeerEnd) -> None:
        end.log_in(self.product)
        link = end.attached()
        limit = 0
        while self.sent < self.number:
            frame = end.take("flow", "disposition")
            if frame.name == "flow":
                limit = max(limit, granted(frame))
            while self.sent < min(limit, self.number):
                self.sent += 1
                end.message(link, self.sent, self.body)
        end.goodbye()


@pytest.mark.parametrize("prefetch", [1, 2, 7, 100, 1000])
@pytest.mark.parametrize("number", [300])
def test_any_batch_is_held_by_any_window(prefetch: int, number: int) -> None:
    with ScriptedPeer(Feeder(number)) as peer, Client(peer.port) as client:
        session = client.session(AckMode.CLIENT)
        session.attach(window=prefetch)
        for each in range(1, number + 1):
            delivery = session.receive()
            assert delivery.header("message_id").endswith(f"m{each}")
            session.channel.dispatched(delivery)
            session.channel.dispatched(delivery)  # again, after a rollback: counts once
        limits = [granted(flow) for flow in peer.peers[0].flows]
    assert limits[0] == prefetch
    assert max(limits) <= number + prefetch
    assert len(limits) <= 1 + number // max(1, min(100, prefetch // 2)) + 1


def test_five_thousand_messages_are_held_in_one_batch() -> None:
    number = 5000
    with ScriptedPeer(Feeder(number, "ActiveMQ")) as peer, Client(peer.port) as client:
        session = client.session(AckMode.TRANSACTED)
        assert session.attach(window=1000).prefetch == 200  # Classic pages so many, and then sleeps
        for _ in range(number):
            session.channel.dispatched(session.receive())


@pytest.mark.parametrize(("size", "most"), [(10_000, range(1, 9)), (100, range(50, 101))], ids=["large", "small"])
def test_a_window_of_so_many_bytes_begins_small(size: int, most: range) -> None:
    """However large they are, at first ten may come; then as many as have so many bytes, and the default at most."""
    with ScriptedPeer(Feeder(300, body=b"x" * size)) as peer, Client(peer.port) as client:
        session = client.session(AckMode.TRANSACTED)
        session.attach(window=None, max_bytes=80_000)
        for _ in range(300):
            session.channel.dispatched(session.receive())
        limits = [granted(flow) for flow in peer.peers[0].flows]
    assert limits[0] == 10
    assert max(after - before for before, after in pairwise(limits)) in most


def test_what_is_not_dispatched_gets_no_more_than_the_window() -> None:
    with ScriptedPeer(with_messages(10, done)) as peer, Client(peer.port) as client:
        session = client.session()
        session.attach(window=10)
        deliveries = session.receive_many(10)
        for delivery in deliveries[:4]:
            session.channel.dispatched(delivery)
        session.receive(0.1)
        assert [granted(flow) for flow in peer.peers[0].flows] == [10]
        session.channel.dispatched(deliveries[4])
        session.receive(0.05)
        session.until(lambda: len(peer.peers[0].flows) == 2)
        assert granted(peer.peers[0].flows[1]) == 15


def test_an_acknowledgement_makes_room_as_handing_out_does() -> None:
    def then(end: PeerEnd) -> None:
        for _ in range(4):
            end.take("disposition")

    with ScriptedPeer(with_messages(4, then)) as peer, Client(peer.port) as client:
        session = client.session()
        session.attach(window=4)
        for delivery in session.receive_many(4):
            session.channel.dispatched(delivery)
            session.channel.accept([delivery], batched=False)  # once for both
        session.until(lambda: len(peer.peers[0].flows) >= 3)
        assert [granted(flow) for flow in peer.peers[0].flows[:3]] == [4, 6, 8]


@pytest.mark.parametrize("copy", [False, True])
def test_a_dead_letter_that_was_never_dispatched_makes_room_too(copy: bool) -> None:
    """Otherwise a window's worth of poison would starve the consumer."""
    number = 20

    with ScriptedPeer(Poisoned(number, copy)) as peer, Client(peer.port) as client:
        session = client.session()
        session.attach(window=4)
        for _ in range(number):
            delivery = session.receive()
            session.do(session.channel.poison(delivery, "why", text("copy", "DLQ") if copy else None))


class Poisoned(Feeder):
    """A broker with dead letters: it takes copies in transactions, too."""

    def __init__(self, number: int, copy: bool) -> None:
        super().__init__(number)
        self.copy = copy

    def __call__(self, end: PeerEnd) -> None:
        end.log_in(self.product)
        link = end.attached()
        limit = settled = 0
        while settled < self.number:
            frame = end.take("flow", "disposition", "attach", "transfer")
            if frame.name == "flow":
                limit = max(limit, granted(frame))
            elif frame.name == "attach":
                end.confirm(frame)
                end.give(frame, 1000)
            elif frame.name == "transfer":
                self.answer(end, frame)
            elif frame["settled"] and frame["role"]:
                settled += 1
                assert frame.outcome == ("accepted" if self.copy else "rejected")
            while self.sent < min(limit, self.number):
                self.sent += 1
                end.message(link, self.sent)
        end.goodbye()

    def answer(self, end: PeerEnd, frame: Frame) -> None:
        if frame["state"] is not None:
            end.settle(frame, transactional(frame["state"].value[0]))
        elif frame.order == ("declare",):
            end.settle(frame, declared(b"t"))
        else:
            end.settle(frame)


def drain(end: PeerEnd) -> Frame:
    frame = end.take("flow")
    while not frame["drain"]:
        frame = end.take("flow")
    return frame


def test_fetch_brings_what_there_is_and_gives_the_credit_again() -> None:
    def script(end: PeerEnd) -> None:
        end.log_in(ARTEMIS)
        link = end.attached()
        asked = drain(end)
        assert asked["link_credit"] == 10
        end.message(link, 1)
        end.message(link, 2)
        end.drained(link, 10)
        again = end.take("flow")
        assert (again["link_credit"], again["drain"]) == (8, False)
        asked = drain(end)
        assert asked["link_credit"] == 8
        end.drained(link, 18)
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session()
        link = session.attach(window=10)
        session.do(session.channel.fetch(link))
        assert len(session.inbox) == 2
        session.channel.dispatched(session.inbox.popleft())
        session.do(session.channel.fetch(link))
        assert len(session.inbox) == 1
        client.close()


def test_a_drain_that_is_used_up_needs_no_flow_to_say_so() -> None:
    def script(end: PeerEnd) -> None:
        end.log_in(ARTEMIS)
        link = end.attached()
        for each in range(1, 4):
            drain(end)
            end.message(link, each)
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session()
        link = session.attach(window=1)
        for _ in range(3):
            session.do(session.channel.fetch(link))
            session.channel.dispatched(session.inbox.popleft())
        client.close()


def test_asking_again_and_again_does_not_widen_the_window() -> None:
    with ScriptedPeer(with_messages(3, done, ARTEMIS)) as peer, Client(peer.port) as client:
        session = client.session()
        link = session.attach(window=3)
        session.receive_many(3)  # they came; none is dispatched
        for _ in range(5):
            session.do(session.channel.fetch(link))
        session.receive(0.1)
        assert max(granted(flow) for flow in peer.peers[0].flows) == 3


def test_a_drain_that_is_not_answered_is_bounded_and_the_next_one_works() -> None:
    release = threading.Event()

    def script(end: PeerEnd) -> None:
        end.log_in(ARTEMIS)
        link = end.attached()
        drain(end)
        release.wait(TIMEOUT)
        end.message(link, 1)
        end.drained(link, 10)
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session()
        link = session.attach(window=10)
        with pytest.raises(RequestTimeoutError):
            session.do(session.channel.fetch(link), timeout=0.2)
        release.set()
        assert session.receive() is not None
        session.until(lambda: granted(peer.peers[0].flows[-1]) >= 19)


def test_a_drain_that_the_broker_missed_is_asked_for_again() -> None:
    """As Artemis does where it is just about to end the one before; a close waits for one as well."""

    def script(end: PeerEnd) -> None:
        end.log_in(ARTEMIS)
        link = end.attached()
        drain(end)
        assert drain(end)["link_credit"] == 10
        end.message(link, 1)
        end.drained(link, 10)
        assert end.take("flow")["link_credit"] == 9
        drain(end)
        drain(end)
        end.drained(link, 19)
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session()
        link = session.attach(window=10)
        session.do(session.channel.fetch(link))
        assert len(session.inbox) == 1
        session.do(session.channel.detach(link))


@pytest.mark.parametrize("product", ["RabbitMQ", "some other"])
def test_where_a_drain_is_not_understood_none_is_sent(product: str) -> None:
    with ScriptedPeer(with_messages(0, done, product)) as peer, Client(peer.port) as client:
        session = client.session()
        link = session.attach()
        session.do(session.channel.fetch(link))
        session.receive(0.15)
        session.do(session.channel.detach(link))
        client.close()
        assert not [flow for flow in peer.peers[0].flows if flow["drain"]]


def test_a_message_in_many_frames_is_one_and_one_that_is_aborted_is_none() -> None:
    def script(end: PeerEnd) -> None:
        end.log_in(ARTEMIS)
        link = end.attached()
        end.send(
            "transfer", link.channel, b"\x00\x53\x75\xb0\x00\x00", handle=link["handle"], delivery_id=0,
            delivery_tag=b"a", more=True,
        )  # fmt: skip
        end.send("transfer", link.channel, handle=link["handle"], aborted=True)
        end._ids[link.channel] = 1
        end.message(link, 1, b"x" * 100_000, frame_size=1000)
        end.message(link, 2, b"", frame_size=1000)
        assert drain(end)["link_credit"] == 1
        end.message(link, 3)
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session()
        link = session.attach(window=3)
        first, second = session.receive_many(2)
        assert (len(first.body()), second.body()) == (100_000, b"")
        session.do(session.channel.fetch(link))
        client.close()


def test_an_empty_transfer_is_a_message_that_says_it_cannot_be_read() -> None:
    def then(end: PeerEnd) -> None:
        assert end.take("disposition").outcome == "accepted"

    def script(end: PeerEnd) -> None:
        end.log_in(ARTEMIS)
        end.transfer(end.attached(), b"")
        then(end)
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session()
        session.attach()
        delivery = session.receive()
        assert delivery.wire_count() == 1
        session.channel.accept([delivery], batched=False)
        client.close()


def test_poison_needs_a_copy_where_rejecting_does_not_dead_letter() -> None:
    with ScriptedPeer(with_messages(1, done, "Apache Qpid Broker-J Core")) as peer, Client(peer.port) as client:
        session: Session = client.session()
        session.attach()
        with pytest.raises(UnsupportedError, match="must be a copy"):
            session.do(session.channel.poison(session.receive(), "why", None))
