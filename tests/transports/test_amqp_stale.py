"""What has ended is never given to the C library again: a pointer that dangles would end the interpreter."""

from __future__ import annotations

import gc
import random
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from tests.transports.amqp_frames import Frame
from tests.transports.amqp_peer import PeerEnd, ScriptedPeer
from tests.transports.amqp_sessions import Client, Session, with_messages
from tests.transports.scripted import TIMEOUT, text

from redelivery.model.errors import ConnectionLostError, IllegalStateError, JMSError
from redelivery.model.modes import AckMode
from redelivery.transports.seam import Link, Pending

ARTEMIS = "apache-activemq-artemis"


def everything(session: Session, link: Link, delivery: Any) -> None:
    """Whatever can be done with a delivery and its link; each is refused or does nothing, and none crashes."""
    channel = session.channel
    refused: list[Callable[[], object]] = [
        lambda: channel.accept([delivery], batched=False),
        lambda: channel.accept([delivery], batched=True),
        lambda: session.do(channel.poison(delivery, "why", None)),
        lambda: session.do(channel.commit([delivery])),
    ]
    for step in refused:
        with pytest.raises(JMSError):
            step()
    harmless: list[Callable[[], object]] = [
        lambda: channel.dispatched(delivery),
        lambda: channel.release([delivery]),
        lambda: session.do(channel.fetch(link)),
        lambda: session.do(channel.detach(link)),
        lambda: session.do(channel.rollback()),
    ]
    for step in harmless:
        try:
            step()
        except ConnectionLostError:
            assert session.channel._protocol.lost is not None  # type: ignore[attr-defined]  # said by nothing public
    assert delivery.body() == b"x"  # what was received can be read for ever
    assert delivery.wire_count() == 1


def done(_: PeerEnd) -> None:
    """All is said that the test needs."""


@pytest.mark.parametrize("mode", [AckMode.INDIVIDUAL, AckMode.CLIENT])
def test_after_the_link_was_detached_by_us(mode: AckMode) -> None:
    with ScriptedPeer(with_messages(2, done, "RabbitMQ")) as peer, Client(peer.port) as client:
        session = client.session(mode)
        link = session.attach()
        first, _ = session.receive_many(2)
        session.do(session.channel.detach(link))
        gc.collect()
        everything(session, link, first)


@pytest.mark.parametrize("way", ["detach", "end"])
def test_after_the_link_was_ended_by_the_peer(way: str) -> None:
    def script(end: PeerEnd) -> None:
        end.log_in(ARTEMIS)
        link = end.attached()
        end.message(link, 1)
        if way == "detach":
            end.detach(link, "amqp:resource-deleted", "gone")
        else:
            end.end_session(link.channel, "amqp:internal-error", "oops")
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session(AckMode.CLIENT)
        link = session.attach()
        delivery = session.receive()
        session.until(lambda: session.ended)
        gc.collect()
        everything(session, link, delivery)


@pytest.mark.parametrize("way", ["abort", "close", "loss"])
def test_after_the_connection_is_gone(way: str) -> None:
    def then(_: PeerEnd) -> None:
        if way == "loss":
            raise ConnectionError

    with ScriptedPeer(with_messages(1, then, ARTEMIS)) as peer:
        client = Client(peer.port)
        session = client.session(AckMode.CLIENT)
        link = session.attach()
        delivery = session.receive()
        if way == "loss":
            with pytest.raises(ConnectionLostError):
                session.receive()
        else:
            getattr(client, way)()
        gc.collect()
        everything(session, link, delivery)
        with pytest.raises(ConnectionLostError):
            session.channel.send(text(), transacted=False, pending=Pending(session.waiter))
        client.close()


def test_a_delivery_of_an_old_connection_is_not_acknowledged_on_the_next() -> None:
    with ScriptedPeer(with_messages(1, done, ARTEMIS)) as peer:
        with Client(peer.port) as client:
            session = client.session()
            session.attach()
            old = session.receive()
            client.transport.abort()
        with Client(peer.port) as again:
            other = again.session()
            other.attach()
            with pytest.raises(ConnectionLostError, match="cannot be acknowledged any more"):
                other.channel.accept([old], batched=False)
            assert other.receive().header("message_id") == old.header("message_id")
        assert "disposition" not in [frame.name for end in peer.peers for frame in end.taken if _outcome(frame)]


def _outcome(frame: Frame) -> bool:
    return frame.name == "disposition" and frame.outcome == "accepted"


def test_a_delivery_is_acknowledged_once() -> None:
    with ScriptedPeer(with_messages(2, done, ARTEMIS)) as peer, Client(peer.port) as client:
        session = client.session()
        session.attach()
        first, second = session.receive_many(2)
        session.channel.accept([first], batched=False)
        with pytest.raises(IllegalStateError, match="acknowledged already"):
            session.channel.accept([first], batched=False)
        with pytest.raises(IllegalStateError, match="acknowledged already"):
            session.channel.accept([second, first], batched=False)
        client.close()


def test_an_acknowledgement_of_many_leaves_none_out_for_the_sake_of_one_that_is_gone() -> None:
    accepted: list[int] = []

    def script(end: PeerEnd) -> None:
        end.log_in(ARTEMIS)
        first, second = end.attached(), end.attached()
        for each in range(2):
            end.message(first, each)
            end.message(second, each)
        end.detach(second, "amqp:resource-deleted", "gone")
        end.gone("detach")
        for _ in range(2):
            accepted.append(end.take("disposition")["first"])
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session(AckMode.CLIENT)
        session.attach("a")
        session.attach("b")
        deliveries = session.receive_many(4)
        session.until(lambda: session.ended)
        with pytest.raises(JMSError, match="gone"):
            session.do(session.channel.commit(deliveries))
        client.close()
    assert accepted == [0, 2]


def endless(end: PeerEnd) -> None:
    """Messages on every link for as long as it lasts; links end by themselves now and then."""
    dice = random.Random(7)  # noqa: S311  # no secret
    ended: set[tuple[int, int]] = set()  # by ourselves
    end.log_in(ARTEMIS)
    try:
        while True:
            frame = end.take()
            if frame.name == "attach":
                end.confirm(frame)
                if not frame["role"]:
                    end.give(frame, 1 << 20)
                else:
                    for each in range(20):
                        end.message(frame, each)
                    if dice.random() < 0.3:
                        end.detach(frame, "amqp:resource-deleted", "gone")
                        ended.add((frame.channel, frame["handle"]))
            elif frame.name == "transfer":
                end.settle(frame)
            elif frame.name == "detach" and (frame.channel, frame["handle"]) in ended:
                ended.remove((frame.channel, frame["handle"]))
            else:
                end.agree_to_end(frame)
    except OSError:
        return


def test_links_that_end_at_any_moment_crash_nothing(pool: ThreadPoolExecutor) -> None:
    def work(client: Client, seed: int) -> int:
        dice = random.Random(seed)  # noqa: S311  # no secret
        session = client.session(AckMode.CLIENT)
        stale: list[Any] = []
        acknowledged = 0
        for _ in range(40):
            link = session.attach(f"q{seed}", window=30)
            for _ in range(dice.randrange(12)):
                delivery = session.receive(0.02)
                if delivery is None:
                    break
                session.channel.dispatched(delivery)
                stale.append(delivery)
            for delivery in dice.sample(stale, len(stale) // 2):
                try:
                    session.channel.accept([delivery], batched=dice.random() < 0.5)
                    acknowledged += 1
                except JMSError:
                    stale.remove(delivery)
            session.channel.send(text(), transacted=False, pending=None)
            with suppress(JMSError):
                _detach(session, link)
            session.inbox.clear()
            if dice.random() < 0.2:
                gc.collect()
        return acknowledged

    with ScriptedPeer(endless) as peer, Client(peer.port, request_timeout=50) as client:  # it writes without an end
        working = [pool.submit(work, client, seed) for seed in range(4)]
        assert all(each.result(150) > 0 for each in working)
        assert len(client.transport._connection.protocol.table.endpoints) <= 12  # type: ignore[union-attr]  # sessions and senders


def _detach(session: Session, link: Link) -> None:
    """Without draining, which this peer does not answer."""
    channel: Any = session.channel  # the public detach drains
    receiver = channel._receivers[link]
    with channel._context.writing():
        receiver.release(list(receiver.unsettled)) if receiver.ended is None else None
        receiver.close(None)
    channel._receivers.pop(link)


def use(session: Session) -> None:
    while True:
        session.attach(window=30)
        for _ in range(10):
            delivery = session.receive(0.02)
            if delivery is not None:
                session.channel.dispatched(delivery)
                with suppress(IllegalStateError):  # its link has ended
                    session.channel.accept([delivery], batched=True)
        session.channel.send(text(), transacted=False, pending=None)


def test_a_connection_that_goes_while_threads_use_it_crashes_nothing(pool: ThreadPoolExecutor) -> None:
    ends: list[PeerEnd] = []

    def script(end: PeerEnd) -> None:
        ends.append(end)
        endless(end)

    def work(client: Client, started: threading.Barrier) -> None:
        session = client.session(AckMode.CLIENT)
        started.wait(TIMEOUT)
        with pytest.raises(JMSError):
            use(session)

    with ScriptedPeer(script) as peer:
        for way in ("abort", "close", "loss") * 3:
            client = Client(peer.port)
            started = threading.Barrier(5)
            working = [pool.submit(work, client, started) for _ in range(4)]
            started.wait(TIMEOUT)
            if way == "loss":
                ends[-1].sock.shutdown(socket.SHUT_RDWR)  # a close alone waits for the thread that reads
            else:
                getattr(client, way)()
            gc.collect()
            for each in working:
                each.result(TIMEOUT)
            client.close()


def test_links_and_sessions_that_have_ended_are_forgotten() -> None:
    with ScriptedPeer(with_messages(0, serve_links, "RabbitMQ")) as peer, Client(peer.port) as client:
        session = client.session()
        session.attach()
        for _ in range(50):
            other = client.session()
            link = other.attach()
            other.send(text())
            other.do(other.channel.detach(link))
            other.do(other.channel.close())
        connection = client.transport._connection
        assert connection is not None
        # the first link and its session, and that in which it looks for queues
        assert len(connection.protocol.table.endpoints) == 3


def serve_links(end: PeerEnd) -> None:
    while True:
        frame = end.take()
        if frame.name == "attach":
            end.confirm(frame)
            end.give(frame, 10) if not frame["role"] else None
        elif frame.name == "transfer":
            end.settle(frame)
        else:
            end.agree_to_end(frame)
            if frame.name == "close":
                return


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(8) as pool:
        yield pool
