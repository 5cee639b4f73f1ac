"""A browsing link, frame by frame: what it asks for, how it finds the end, and what it does not tell."""

from __future__ import annotations

from typing import Any

import pytest
from tests.transports.amqp_frames import Frame
from tests.transports.amqp_peer import PeerEnd, ScriptedPeer
from tests.transports.amqp_sessions import Client, Session

from redelivery.model.errors import (
    ConnectionLostError,
    InvalidDestinationError,
    JMSError,
    RequestTimeoutError,
    UnsupportedError,
)
from redelivery.model.modes import AckMode
from redelivery.transports.seam import Link

CLASSIC, ARTEMIS = "ActiveMQ", "apache-activemq-artemis"


class Shelf:
    """A broker that shows a queue of so many messages to every link, window by window.

    ``oddities``: what it does instead of answering the next questions: "empty", "one" or "miss".
    ``questions``: the credit of each, by the link's handle.
    """

    def __init__(self, number: int, *oddities: str, product: str = CLASSIC, **message: Any) -> None:
        self.number = number
        self.oddities = list(oddities)
        self.product = product
        self.message = message
        self.questions: list[tuple[int, int]] = []
        self._links: dict[int, tuple[Frame, list[int]]] = {}

    def __call__(self, end: PeerEnd) -> None:
        end.log_in(self.product)
        try:
            while True:
                frame = end.take("attach", "flow", "detach", "end", "close", "begin")
                if frame.name == "attach":
                    end.confirm(frame)
                    self._links[frame["handle"]] = (frame, [0])
                elif frame.name == "flow" and frame["drain"]:
                    self._answer(end, frame)
                elif frame.name == "begin":
                    end.begun(frame)
                elif frame.name != "flow":
                    end.agree_to_end(frame)
        except OSError:
            return

    def _answer(self, end: PeerEnd, flow: Frame) -> None:
        link, sent = self._links[flow["handle"]]
        credit, before = flow["link_credit"], flow["delivery_count"]
        self.questions.append((flow["handle"], credit))
        oddity = self.oddities.pop(0) if self.oddities else "answer"
        if oddity == "miss":
            return
        here = min({"empty": 0, "one": 1}.get(oddity, credit), self.number - sent[0])
        for _ in range(here):
            sent[0] += 1
            end.message(link, sent[0], settled=True, **self.message)
        if here < credit:
            end.drained(link, before + credit)


def asked(end: PeerEnd) -> tuple[int, int]:
    """The window of the next question, and how many have come before."""
    frame = end.take("flow")
    while not frame["drain"]:
        frame = end.take("flow")
    return frame["link_credit"], frame["delivery_count"]


def names(number: int) -> list[str]:
    return [f"m{each}" for each in range(1, number + 1)]


def browse(session: Session, link: Link) -> list[str]:
    """All that is shown."""
    found: list[str] = []
    more = True
    while more:
        more = session.do(session.channel.browse_more(link))
        found += [str(each.header("message_id")).rpartition(":")[2] for each in session.inbox]
        session.inbox.clear()
    return found


def sources(frame: Frame) -> list[Any]:
    return [*frame["source"].value, *[None] * 11]


@pytest.mark.parametrize("product", [CLASSIC, ARTEMIS])
@pytest.mark.parametrize("number", [0, 1, 6, 7, 8, 13, 14, 15, 50])
def test_it_asks_for_a_window_at_a_time_until_nothing_more_comes(number: int, product: str) -> None:
    shelf = Shelf(number, product=product)
    with ScriptedPeer(shelf) as peer, Client(peer.port) as client:
        session = client.session(AckMode.TRANSACTED)
        link = session.attach(browse=True, window=7)
        assert browse(session, link) == names(number)
        session.do(session.channel.detach(link))
        taken = peer.peers[0].taken
        attach = next(frame for frame in taken if frame.name == "attach")
        assert "disposition" not in [frame.name for frame in taken]
        assert taken[-1].name in ("detach", "end")
    assert {credit for handle, credit in shelf.questions if handle == attach["handle"]} == {7}
    assert (sources(attach)[6], attach["snd_settle_mode"]) == ("copy", 1)
    assert {flow["drain"] for flow in peer.peers[0].flows if flow["link_credit"]} <= {True}


@pytest.mark.parametrize("product", [CLASSIC, ARTEMIS])
def test_messages_of_many_frames_are_whole(product: str) -> None:
    with ScriptedPeer(Shelf(5, product=product, body=bytes(5000), frame_size=700)) as peer, Client(peer.port) as client:
        session = client.session()
        assert browse(session, session.attach(browse=True, window=2)) == names(5)


@pytest.mark.parametrize(("window", "stale"), [(7, 1), (100, 1), (1, 1), (2, 2), (1, 3)])
def test_answers_that_earlier_questions_left_behind_are_not_taken_for_the_end(window: int, stale: int) -> None:
    """As on ActiveMQ: each question may leave one behind, and a question meets as many as its window, and one."""
    full = stale * (window + 1)
    shelf = Shelf(full * window + 3, *["answer"] * full, *["empty"] * stale)
    with ScriptedPeer(shelf) as peer, Client(peer.port) as client:
        session = client.session()
        assert browse(session, session.attach(browse=True, window=window)) == names(full * window + 3)


@pytest.mark.parametrize("product", [CLASSIC, ARTEMIS])
def test_an_answer_that_is_not_full_is_not_taken_for_the_end(product: str) -> None:
    shelf = Shelf(20, "one", "one", "answer", "one", product=product)
    with ScriptedPeer(shelf) as peer, Client(peer.port) as client:
        session = client.session()
        assert browse(session, session.attach(browse=True, window=7)) == names(20)


@pytest.mark.parametrize("stale", [1, 2, 5])
def test_an_answer_that_was_the_one_before_is_not_taken_for_the_end(stale: int) -> None:
    """As on Artemis: it goes on for ever, until something else of the queue was shown by another link."""

    class Overlapping(Shelf):
        def _answer(self, end: PeerEnd, flow: Frame) -> None:
            if len(self._links) > 1:
                self.oddities.clear()
            super()._answer(end, flow)

    shelf = Overlapping(20, "answer", *["empty"] * stale, product=ARTEMIS)
    with ScriptedPeer(shelf) as peer, Client(peer.port) as client:
        session = client.session()
        assert browse(session, session.attach(browse=True, window=7)) == names(20)
        attached = [frame for frame in peer.peers[0].taken if frame.name == "attach"]
    assert len(attached) > 1
    assert {sources(frame)[0] for frame in attached} == {"orders"}


@pytest.mark.parametrize("misses", [1, 2])
def test_a_question_that_was_missed_is_asked_again_with_the_credit_that_it_had(misses: int) -> None:
    """As on Artemis."""
    shelf = Shelf(9, "answer", *["miss"] * misses, product=ARTEMIS)
    with ScriptedPeer(shelf) as peer, Client(peer.port) as client:
        session = client.session()
        assert browse(session, session.attach(browse=True, window=7)) == names(9)
    assert [credit for _, credit in shelf.questions[: misses + 2]] == [7] * (misses + 2)


def test_a_question_that_is_never_answered_is_a_time_out() -> None:
    with ScriptedPeer(Shelf(9, "miss")) as peer, Client(peer.port) as client:
        session = client.session()
        link = session.attach(browse=True)
        with pytest.raises(RequestTimeoutError):
            session.do(session.channel.browse_more(link), timeout=0.1)


@pytest.mark.parametrize("product", ["RabbitMQ", "Something"])
def test_a_broker_that_would_consume_is_not_asked(product: str) -> None:
    def script(end: PeerEnd) -> None:
        end.log_in(product)
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        assert not client.transport.peer.capabilities.browse
        session = client.session()
        with pytest.raises(UnsupportedError, match="no browsing over AMQP: it would consume"):
            session.attach(browse=True)
        session.do(session.channel.close())
        assert "attach" not in [frame.name for frame in peer.peers[0].taken]


@pytest.mark.parametrize("shown", [0, 1])
def test_a_link_that_the_broker_ends_is_an_error_and_not_the_end_of_the_queue(shown: int) -> None:
    def script(end: PeerEnd) -> None:
        end.log_in(ARTEMIS)
        link = end.attached()
        asked(end)
        for each in range(shown):
            end.message(link, each + 1, settled=True)
        end.detach(link, "amqp:not-found", "queue deleted")
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session()
        link = session.attach(browse=True)
        for _ in range(2):
            with pytest.raises(InvalidDestinationError, match="queue deleted") as caught:
                browse(session, link)
            assert isinstance(caught.value, JMSError)
        session.do(session.channel.detach(link))


def test_a_lost_connection_is_no_end() -> None:
    def script(end: PeerEnd) -> None:
        end.log_in(ARTEMIS)
        end.attached()
        asked(end)

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session()
        link = session.attach(browse=True)
        with pytest.raises(ConnectionLostError):
            session.do(session.channel.browse_more(link))
