"""Dead letters over AMQP: `rejected` with its cause, or a copy and the original's acknowledgement as one."""

from __future__ import annotations

import threading

import pytest
from tests.transports.amqp_frames import ACCEPTED, Frame, code, declared, rejected, transactional
from tests.transports.amqp_peer import PeerEnd, ScriptedPeer
from tests.transports.amqp_sessions import Client, with_messages
from tests.transports.scripted import TIMEOUT, text

from redelivery.model.errors import InDoubtError, JMSError, ResourceAllocationError
from redelivery.model.modes import AckMode

ARTEMIS = "apache-activemq-artemis"
QPID = "Apache Qpid Broker-J Core"


def reason(frame: Frame) -> tuple[str, str]:
    condition = frame["state"].value[0]
    assert code(condition) == 0x1D
    name, *description = condition.value
    return str(name), description[0] if description else ""


@pytest.mark.parametrize(
    ("cause", "reported", "frame_size"),
    [
        ("ValueError: no such order", "ValueError: no such order", None),
        ("", "", None),
        ("half \ud800 a character, and a \0", "half ? a character, and a ?", None),
        ("ö" * 100_000, "ö" * 2000, None),
        ("ö" * 100_000, "ö" * 2000, 1 << 20),
        ("ö" * 100_000, "ö" * 412, 1024),
        ("ö" * 100_000, "ö" * 156, 512),
    ],
)
def test_a_rejection_has_its_cause_as_far_as_it_fits_into_a_frame(
    cause: str, reported: str, frame_size: int | None
) -> None:
    def then(end: PeerEnd) -> None:
        frame = end.take("disposition")
        assert (frame["first"], frame["settled"], frame.outcome) == (0, True, "rejected")
        assert reason(frame) == ("redelivery:poison", reported)
        assert end.take("disposition").outcome == "accepted"

    script = with_messages(2, then, max_frame_size=frame_size)
    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session()
        session.attach()
        poison, good = session.receive_many(2)
        session.do(session.channel.poison(poison, cause, None))
        with pytest.raises(JMSError, match="acknowledged already"):
            session.do(session.channel.poison(poison, cause, None))
        session.channel.accept([good], batched=False)
        client.close()


def test_a_copy_and_the_acknowledgement_are_one() -> None:
    seen: list[object] = []

    def then(end: PeerEnd) -> None:
        while len(seen) < 5:
            frame = end.take("attach", "transfer", "disposition")
            if frame.name == "attach":
                end.confirm(frame)
                end.give(frame, 100)
            elif frame.name == "disposition":
                seen.append(f"{frame.outcome} {bool(frame['settled'])}")
            elif frame["state"] is not None:
                seen.append(frame.body)
                end.settle(frame, transactional(frame["state"].value[0]))
            else:
                seen.append(frame.order)
                end.settle(frame, declared(b"t") if frame.order == ("declare",) else ACCEPTED)

    with ScriptedPeer(with_messages(1, then, QPID)) as peer, Client(peer.port) as client:
        session = client.session()
        session.attach()
        session.do(session.channel.poison(session.receive(), "why", text("copy", "DLQ")))
        client.close()
    assert seen == [("declare",), "copy", "transactional t accepted False", ("discharge", b"t", False), "accepted True"]


def dead_letter_link(end: PeerEnd, transaction: bytes = b"t") -> Frame:
    """The links to the dead-letter queue and to the coordinator, a transaction, and the copy in it."""
    copy = None
    while copy is None:
        frame = end.take("attach", "transfer")
        if frame.name == "attach":
            end.confirm(frame)
            end.give(frame, 100)
        elif frame["state"] is not None:
            copy = frame
        else:
            end.settle(frame, declared(transaction))
    return copy


def test_a_refused_copy_leaves_the_delivery_ours() -> None:
    def then(end: PeerEnd) -> None:
        copy = dead_letter_link(end)
        end.settle(copy, transactional(b"t", rejected("amqp:resource-limit-exceeded", "DLQ is full")))
        end.discharge(b"t", fail=True)
        assert end.take("disposition").outcome == "accepted"

    with ScriptedPeer(with_messages(1, then, QPID)) as peer, Client(peer.port) as client:
        session = client.session()
        session.attach()
        delivery = session.receive()
        with pytest.raises(ResourceAllocationError, match="DLQ is full"):
            session.do(session.channel.poison(delivery, "why", text("copy", "DLQ")))
        session.channel.accept([delivery], batched=False)
        client.close()


@pytest.mark.parametrize("afterwards", ["accepted", "released", "modified failed", "rejected"])
def test_a_refused_discharge_leaves_the_delivery_ours(afterwards: str) -> None:
    """What is notified of it next must not name the transaction, which is unknown to the broker by now."""
    outcomes: list[str] = []

    def then(end: PeerEnd) -> None:
        copy = dead_letter_link(end)
        end.settle(copy, transactional(b"t"))
        assert end.take("disposition").outcome == "transactional t accepted"
        end.discharge(b"t", state=rejected("amqp:transaction:rollback", "too late"))
        frame = end.take("disposition", "flow")
        while frame.name == "flow":
            if frame["drain"]:
                end.drained(next(each for each in end.taken if each.name == "attach"), 100)
            frame = end.take("disposition", "flow")
        outcomes.append(frame.outcome)

    with ScriptedPeer(with_messages(1, then, ARTEMIS)) as peer, Client(peer.port) as client:
        session = client.session(AckMode.CLIENT)
        link = session.attach()
        delivery = session.receive()
        with pytest.raises(JMSError, match="too late"):
            session.do(session.channel.poison(delivery, "why", text("copy", "DLQ")))
        if afterwards == "accepted":
            session.channel.accept([delivery], batched=False)
        elif afterwards == "rejected":
            session.do(session.channel.poison(delivery, "why", None))
        else:
            if afterwards == "modified failed":
                session.channel.dispatched(delivery)
            session.do(session.channel.detach(link))
        client.close()
    assert outcomes == [afterwards]


@pytest.mark.parametrize("way", ["silence", "hang up"])
def test_a_dead_letter_whose_answer_does_not_come_is_in_doubt(way: str) -> None:
    ended = threading.Event()

    def then(end: PeerEnd) -> None:
        end.settle(dead_letter_link(end), transactional(b"t"))
        end.take("disposition"), end.take("transfer")
        if way == "hang up":
            raise ConnectionError
        ended.wait(TIMEOUT)

    with ScriptedPeer(with_messages(1, then, QPID)) as peer, Client(peer.port) as client:
        session = client.session()
        session.attach()
        with pytest.raises(InDoubtError):
            session.do(
                session.channel.poison(session.receive(), "why", text("copy", "DLQ")),
                timeout=0.3 if way == "silence" else TIMEOUT,
            )
        ended.set()


def test_a_dead_letter_keeps_out_of_the_session_s_own_transaction() -> None:
    def then(end: PeerEnd) -> None:
        queue = end.attached()
        assert queue.address == "orders"
        end.coordinated(b"t1")
        frame = end.take("transfer")
        assert frame.outcome == "transactional t1 none"
        end.settle(frame, transactional(b"t1"))
        copy = dead_letter_link(end, b"t2")
        assert copy.outcome == "transactional t2 none"
        end.settle(copy, transactional(b"t2"))
        assert end.take("disposition").outcome == "transactional t2 accepted"
        end.discharge(b"t2")
        frames = [end.take("disposition") for _ in range(2)]
        assert [frame.outcome for frame in frames] == ["accepted", "transactional t1 accepted"]
        end.discharge(b"t1")

    with ScriptedPeer(with_messages(2, then, QPID)) as peer, Client(peer.port) as client:
        session = client.session(AckMode.TRANSACTED)
        session.attach()
        poison, good = session.receive_many(2)
        session.post(text("declares"), transacted=True)
        session.until(lambda: session.channel._transactions._declared.done)  # type: ignore[attr-defined]  # on no wire
        session.do(session.channel._transactions._ready())  # type: ignore[attr-defined]  # the send has left
        session.do(session.channel.poison(poison, "why", text("copy", "DLQ")))
        session.do(session.channel.commit([good]))


def test_a_link_that_has_ended_takes_no_dead_letter_along() -> None:
    ended = threading.Event()

    def script(end: PeerEnd) -> None:
        end.log_in(QPID)
        link = end.attached()
        end.message(link, 1)
        end.detach(link, "amqp:resource-deleted", "gone")
        end.gone("detach")
        ended.set()
        end.settle(dead_letter_link(end), transactional(b"t"))
        end.discharge(b"t", fail=True)
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session()
        session.attach()
        delivery = session.receive()
        session.until(ended.is_set)
        with pytest.raises(JMSError, match="cannot be acknowledged any more"):
            session.do(session.channel.poison(delivery, "why", text("copy", "DLQ")))
        session.receive(0.1)
        client.close()


def test_without_transactions_the_copy_is_confirmed_before_the_original_is_acknowledged() -> None:
    def then(end: PeerEnd) -> None:
        end.attached()
        copy = end.take("transfer")
        assert (copy["state"], copy.body) == (None, "copy")
        end.nothing()
        end.settle(copy)
        assert end.take("disposition").outcome == "accepted"

    with ScriptedPeer(with_messages(1, then, "RabbitMQ")) as peer, Client(peer.port) as client:
        session = client.session()
        session.attach()
        session.do(session.channel.poison(session.receive(), "why", text("copy", "DLQ")))
        client.close()
