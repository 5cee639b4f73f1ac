"""Consumers' links: what an attach says, how it is refused, and how either side ends a link or its session."""

from __future__ import annotations

import pytest
from proton import Described
from tests.transports.amqp_frames import Frame, code
from tests.transports.amqp_peer import PeerEnd, ScriptedPeer
from tests.transports.amqp_sessions import Client
from tests.transports.scripted import text

from redelivery.model.destinations import Queue, Topic
from redelivery.model.errors import (
    InvalidDestinationError,
    InvalidSelectorError,
    JMSError,
    RequestTimeoutError,
    ResourceAllocationError,
    SecurityError,
    UnsupportedError,
)
from redelivery.model.modes import AckMode
from redelivery.transports.seam import Link, LinkSpec

ARTEMIS = "apache-activemq-artemis"


def sources(frame: Frame) -> dict[str, object]:
    """Of an attach: what it asks of the source."""
    assert code(frame["source"]) == 0x28
    fields = [*frame["source"].value, *[None] * 11]
    filters = {str(key): value for key, value in (fields[7] or {}).items()}
    outcomes, capabilities = fields[9], fields[10]
    return {
        "address": fields[0],
        "filters": {name: code(each) for name, each in filters.items() if isinstance(each, Described)},
        "selector": filters["jms-selector"].value if "jms-selector" in filters else None,
        "outcomes": [str(each) for each in outcomes.elements],
        "capabilities": [
            str(each) for each in getattr(capabilities, "elements", [capabilities] if capabilities else [])
        ],
    }


def test_an_attach_says_what_is_wanted_and_credit_follows_the_agreement() -> None:
    def script(end: PeerEnd) -> None:
        end.log_in(ARTEMIS)
        first = end.take("attach")
        end.nothing()
        assert end.flows == []  # no credit for what is not agreed upon
        end.confirm(first)
        end.take("flow")
        for _ in range(3):
            end.attached()
            end.take("flow")
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session()
        assert session.attach().prefetch == 100
        session.attach(Topic("news"), window=7, selector="a = 'b'", no_local=True)
        assert session.attach(window=0).prefetch == 1
        session.attach(window=5000)
        client.close()
        end = peer.peers[0]
        attaches = [frame for frame in end.taken if frame.name == "attach"]
        assert [flow["link_credit"] for flow in end.flows] == [100, 7, 1, 5000]
    asked = [sources(frame) for frame in attaches]
    assert [each["address"] for each in asked] == ["orders", "news", "orders", "orders"]
    assert [each["capabilities"] for each in asked][:2] == [["queue"], ["topic"]]
    assert asked[0]["filters"] == {}
    assert asked[1]["filters"] == {"jms-selector": 0x0000468C00000004, "no-local": 0x0000468C00000003}
    assert asked[1]["selector"] == "a = 'b'"
    assert "amqp:modified:list" in str(asked[0]["outcomes"])
    assert len({frame["name"] for frame in attaches}) == 4
    assert {(frame["snd_settle_mode"], frame["rcv_settle_mode"]) for frame in attaches} == {(0, 0)}


def test_a_selector_that_the_broker_would_ignore_is_refused_without_asking_it() -> None:
    def script(end: PeerEnd) -> None:
        end.log_in("RabbitMQ")
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session()
        with pytest.raises(UnsupportedError, match="selectors"):
            session.attach(selector="a = 1")
        with pytest.raises(UnsupportedError, match="no_local"):
            session.attach(no_local=True)
        client.close()
        assert [frame.name for frame in peer.peers[0].taken] == ["sasl-init", "open", "close"]


REFUSALS = [
    ("amqp:not-found", "no node 'orders'", InvalidDestinationError),
    ("amqp:invalid-field", "Invalid selector: a = = b", InvalidSelectorError),
    ("amqp:unauthorized-access", "User ann is not authorized to read from: queue://orders", SecurityError),
    ("amqp:not-allowed", "exclusive", JMSError),
    ("amqp:not-allowed", "too big", JMSError),
    ("amqp:not-allowed", "access to vhost 'x' refused for user 'ann'", SecurityError),
    ("amqp:resource-limit-exceeded", "too many consumers", ResourceAllocationError),
    ("amqp:not-implemented", "no topics", UnsupportedError),
    ("amqp:internal-error", "something else", JMSError),
    ("weird", "ß" * 2000, JMSError),
]


@pytest.mark.parametrize(("condition", "description", "kind"), REFUSALS)
def test_a_refused_consumer_is_the_error_that_the_broker_means(
    condition: str, description: str, kind: type[JMSError]
) -> None:
    def script(end: PeerEnd) -> None:
        end.log_in(ARTEMIS)
        end.refuse(end.take("attach"), condition, description)
        end.take("detach")
        end.message(end.attached(), 1)
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session()
        with pytest.raises(kind, match=f"the consumer of queue://orders: the broker says: {condition}") as caught:
            session.attach()
        assert len(str(caught.value)) < 700
        session.attach()  # connection and session live on
        assert session.receive().header("message_id").endswith("m1")
        assert client.errors == []
        assert not session.ended


def test_a_refusal_without_a_reason_says_so() -> None:
    def script(end: PeerEnd) -> None:
        end.log_in(ARTEMIS)
        frame = end.take("attach")
        end.confirm(frame, source=None)
        end.detach(frame)
        end.goodbye()

    with (
        ScriptedPeer(script) as peer,
        Client(peer.port) as client,
        pytest.raises(JMSError, match="refuses, without a reason"),
    ):
        client.session().attach()


def test_a_consumer_that_is_agreed_to_and_ended_at_once_is_reported() -> None:
    def script(end: PeerEnd) -> None:
        end.log_in(ARTEMIS)
        frame = end.take("attach")
        end.confirm(frame)
        end.detach(frame, "amqp:unauthorized-access", "ann may not read")
        end.take("detach")
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session()
        link = session.attach()
        session.until(lambda: session.ended)
        assert session.ended[0][0] is link
        assert isinstance(session.ended[0][1], SecurityError)


@pytest.mark.parametrize("product", ["RabbitMQ", "some other"])
def test_where_a_refusal_ends_the_whole_session_the_others_live_on(product: str) -> None:
    def script(end: PeerEnd) -> None:
        end.log_in(product)
        first = end.attached()
        refused = end.take("attach")
        assert refused.channel != first.channel
        end.end_session(refused.channel, "amqp:not-found", "no queue 'b'")
        end.gone("end")
        end.message(first, 1)
        end.message(end.attached(), 2)
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session()
        session.attach("a")
        with pytest.raises(InvalidDestinationError, match="no queue 'b'"):
            session.attach("b")
        session.attach("c")
        assert [each.header("message_id")[-2:] for each in session.receive_many(2)] == ["m1", "m2"]
        assert not session.ended


@pytest.mark.parametrize("closed", [True, False])
def test_a_consumer_that_the_broker_ends_is_reported_and_the_others_live_on(closed: bool) -> None:
    def script(end: PeerEnd) -> None:
        end.log_in(ARTEMIS)
        first, second = end.attached(), end.attached()
        end.message(first, 1)
        end.detach(first, "amqp:resource-deleted", "queue deleted", closed=closed)
        end.message(second, 2)
        seen = [end.take("disposition", "detach").name for _ in range(2)]
        assert seen == ["disposition", "detach"]
        assert end.take("disposition").outcome == "accepted"
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session(AckMode.INDIVIDUAL)
        link = session.attach("a")
        session.attach("b")
        first, second = session.receive_many(2)
        session.until(lambda: session.ended)
        assert session.ended[0][0] is link
        assert isinstance(session.ended[0][1], InvalidDestinationError)
        with pytest.raises(JMSError, match=r"cannot be acknowledged any more: .*queue deleted"):
            session.channel.accept([first], batched=False)
        session.channel.accept([second], batched=False)
        session.do(session.channel.detach(link))  # nothing is left to do
        client.close()


def test_a_session_that_the_broker_ends_takes_its_consumers_along_and_no_others() -> None:
    def script(end: PeerEnd) -> None:
        end.log_in(ARTEMIS)
        first, second, other = end.attached(), end.attached(), end.attached()
        assert first.channel == second.channel != other.channel
        end.end_session(first.channel, "amqp:internal-error", "oops")
        end.gone("end")
        end.message(other, 1)
        again = end.attached()  # in a session anew
        end.message(again, 2)
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session, other = client.session(), client.session()
        links = {session.attach("a"), session.attach("b")}
        other.attach("c")
        session.until(lambda: len(session.ended) == 2)
        assert {link for link, _ in session.ended} == links
        assert "oops" in str(session.ended[0][1])
        assert other.receive().header("message_id").endswith("m1")
        assert not other.ended
        session.attach("d")
        assert session.receive().header("message_id").endswith("m2")


def test_a_send_in_a_session_that_ends_fails_and_the_next_one_makes_a_new_one() -> None:
    def script(end: PeerEnd) -> None:
        end.log_in(ARTEMIS)
        link = end.attached()
        end.take("transfer")
        end.end_session(link.channel, "amqp:internal-error", "oops")
        end.gone("end")
        end.attached()
        end.settle(end.take("transfer"))
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session()
        assert "oops" in str(session.send(text()))
        assert session.send(text()) is None


@pytest.mark.parametrize("answer", ["none", "agreement", "refusal"])
def test_an_attach_without_an_answer_is_given_up_and_closed(answer: str) -> None:
    outcomes: list[str] = []

    def script(end: PeerEnd) -> None:
        end.log_in(ARTEMIS)
        frame = end.take("attach")
        end.take("detach")
        if answer == "agreement":
            end.confirm(frame)
            end.message(frame, 1)  # sent before it knew
        elif answer == "refusal":
            end.refuse(frame, "amqp:not-found", "no")
        again = end.take("attach")
        if answer == "agreement":
            outcomes.append(end.take("disposition").outcome)
            end.detach(frame)
        end.confirm(again)
        end.message(again, 2)
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session()
        with pytest.raises(RequestTimeoutError):
            session.do(session.channel.attach(Link(LinkSpec(Queue("a")))), timeout=0.2)
        session.attach("b")
        assert session.receive().header("message_id").endswith("m2")
        assert not session.ended
        assert client.errors == []
    assert outcomes == (["released"] if answer == "agreement" else [])


def test_more_sessions_than_the_broker_allows_are_refused_and_the_others_live_on() -> None:
    def script(end: PeerEnd) -> None:
        end.log_in(ARTEMIS, channel_max=1)
        first, second = end.attached(), end.attached()
        end.message(first, 1)
        while True:
            frame = end.take("flow", "detach", "end")
            if frame.name == "flow" and frame["drain"]:
                end.drained(second, 100)
            end.agree_to_end(frame)
            if frame.name == "end":
                break
        third = end.attached()
        assert third.channel == second.channel
        end.message(third, 3)
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        one, two, three = (client.session() for _ in range(3))
        one.attach()
        two.attach()
        with pytest.raises(ResourceAllocationError, match="allows 2 sessions of AMQP on one connection"):
            three.attach()
        assert one.receive() is not None
        two.do(two.channel.close())
        three.attach()
        assert three.receive() is not None
