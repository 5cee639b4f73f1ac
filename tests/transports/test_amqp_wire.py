"""An AMQP connection over a real socket: peers that fall silent, stop reading, talk nonsense; threads and fork."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from tests.transports.amqp_frames import Frame, error
from tests.transports.amqp_peer import PeerEnd, ScriptedPeer
from tests.transports.amqp_sessions import Client, Session
from tests.transports.scripted import TIMEOUT, text

from redelivery.model.errors import ConnectionLostError, JMSError, ProtocolError
from redelivery.model.modes import AckMode
from redelivery.transports.seam import Pending

ARTEMIS = "apache-activemq-artemis"


def hang_up(_: PeerEnd, __: Frame) -> None:
    raise ConnectionError


def say_why(end: PeerEnd, _: Frame) -> None:
    end.send("close", error=error("amqp:connection:forced", "shutting down"))
    end.take("close")


def send_nonsense(end: PeerEnd, _: Frame) -> None:
    end.write(b"\x00\x00\x00\x0c\x01\x00\x00\x00\x00\x53\x99\x45")
    end.goodbye()


def name_a_link_that_is_not_there(end: PeerEnd, frame: Frame) -> None:
    end.send("transfer", frame.channel, b"x", handle=77, delivery_id=0, delivery_tag=b"t")
    end.goodbye()


def test_a_frame_for_a_channel_that_is_not_there_breaks_the_protocol() -> None:
    """proton calls it `amqp:not-allowed`, which is a broker's word for what a user may not do."""

    def script(end: PeerEnd) -> None:
        end.log_in()
        end.attached()
        end.send("disposition", 9, role=True, first=0, settled=True)
        end.goodbye()

    with ScriptedPeer(script) as peer:
        client = Client(peer.port)
        session = client.session()
        session.post(text())
        with pytest.raises(ConnectionLostError, match=r"breaks the rules of AMQP 1\.0") as caught:
            session.receive()
        assert isinstance(caught.value.__cause__, ProtocolError)
        assert isinstance(client.lost[0], ProtocolError)


@pytest.mark.parametrize("phase", ["attach", "transfer", "receive", "detach", "commit"])
@pytest.mark.parametrize(
    ("way", "why"),
    [
        (hang_up, "closed the connection"),
        (say_why, "the broker closed the connection: .*connection:forced: shutting down"),
        (send_nonsense, "breaks the rules of AMQP 1.0|framing-error"),
        (name_a_link_that_is_not_there, "no such handle|breaks the rules of AMQP 1.0"),
    ],
)
def test_a_loss_in_any_phase_is_reported_once_and_why(
    phase: str, way: Callable[[PeerEnd, Frame], None], why: str
) -> None:
    def script(end: PeerEnd) -> None:
        end.log_in(ARTEMIS)
        frame = end.take("attach")
        if phase == "attach":
            way(end, frame)
            return
        end.confirm(frame)
        end.give(frame, 10) if not frame["role"] else end.message(frame, 1)
        if phase == "receive":
            end.take("flow")
        elif phase == "transfer":
            end.take("transfer")
        elif phase == "detach":
            end.take("flow")
            while not end.take("flow")["drain"]:
                pass
        else:
            end.coordinated(b"t1")
            end.take("disposition"), end.take("transfer"), end.take("transfer")
        way(end, frame)

    with ScriptedPeer(script) as peer:
        client = Client(peer.port)
        session = client.session(AckMode.TRANSACTED if phase == "commit" else AckMode.AUTO)
        with pytest.raises(JMSError) as caught:
            go_on_until(phase, session)
        assert any(isinstance(each, ConnectionLostError) for each in (caught.value, caught.value.__cause__))
        assert client.lost_event.wait(TIMEOUT)
        assert len(client.lost) == 1
        assert re.search(why, str(client.lost[0])), str(client.lost[0])
        client.close()


def go_on_until(phase: str, session: Session) -> None:
    if phase == "transfer":
        problem = session.send(text())
        assert problem is not None
        raise problem
    link = session.attach()
    delivery = session.receive()
    if phase == "detach":
        session.do(session.channel.detach(link))
    elif phase == "commit":
        session.do(session.channel.commit([delivery]))
    else:
        session.receive()


def test_two_full_pipes_do_not_wait_for_each_other() -> None:
    size = 48 << 20

    def script(end: PeerEnd) -> None:
        end.log_in(ARTEMIS, max_frame_size=1 << 16)
        link = end.attached()
        sender = end.attached()
        assert not sender["role"]
        first = end.take("transfer")
        end.message(link, 1, b"y" * size)  # before it reads anything more
        size_taken = len(first.payload)
        while first["more"]:
            first = end.take("transfer")
            size_taken += len(first.payload)
        assert size_taken > size
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session()
        session.attach()
        session.channel.send(text(b"x" * size), transacted=False, pending=Pending(session.waiter))
        assert len(session.receive(20).body()) == size


@pytest.mark.parametrize("frame_size", [512, 64 << 10, 1 << 20])
def test_a_large_message_both_ways_in_frames_as_both_allow(frame_size: int) -> None:
    size = (1 << 20) if frame_size == 512 else (16 << 20)

    def script(end: PeerEnd) -> None:
        end.log_in(ARTEMIS, max_frame_size=frame_size)
        link, sender = end.attached(), end.attached()
        assert sender.address == "orders"
        first = end.whole()
        assert len(first.payload) > size
        end.settle(first)
        end.message(link, 1, b"y" * size, frame_size=frame_size)
        end.goodbye()

    params = {"amqp.maxFrameSize": str(frame_size)}
    with ScriptedPeer(script) as peer, Client(peer.port, params=params) as client:
        session = client.session()
        session.attach()
        pending = Pending(session.waiter)
        session.channel.send(text(b"x" * size), transacted=False, pending=pending)
        delivery = session.receive(30)
        assert pending.done
        assert pending.error is None
        assert len(delivery.body()) == size
