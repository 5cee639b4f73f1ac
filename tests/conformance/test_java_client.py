"""Each kind of message, property and header, both ways between us and a Java client on the same broker.

The Java client is ActiveMQ's (OpenWire) or Qpid JMS (AMQP 1.0); what does not get across stands in `java.sides`.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.conformance.java.cases import BODIES, HEADERS, KINDS, OBJECT, SERIALIZED, VALUES
from tests.conformance.java.client import JavaClients, JavaError, JavaMessage
from tests.conformance.java.meeting import Meeting
from tests.conformance.java.sides import SIDES, Side
from tests.conformance.stage import SOON

from redelivery import AckMode, Long, Message, Queue, RedeliveryPolicy, SharedDeadLetterStrategy, Topic
from redelivery.broker import EmbeddedBroker
from redelivery.testing.real import required

pytestmark = pytest.mark.timeout(400)  # the first test fetches the Java clients


@pytest.fixture(scope="session")
def java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaClients]:
    lacking = [tool for tool in ("javac", "mvn") if shutil.which(tool) is None]
    if lacking:
        reason = f"no Java client: {' and '.join(lacking)} not found (it needs a JDK and Maven)"
        pytest.fail(reason, pytrace=False) if required("activemq") else pytest.skip(reason)
    with JavaClients(tmp_path_factory.mktemp("java-clients")) as clients:
        yield clients


@pytest.fixture(scope="module")
def embedded(java: JavaClients) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(name=f"java-{uuid.uuid4().hex}", stomp_port=0, amqp_port=0) as broker:
        yield broker
        java.close_connections()


@pytest.fixture(params=list(SIDES.values()), ids=list(SIDES))
def meeting(request: pytest.FixtureRequest, java: JavaClients) -> Iterator[Meeting]:
    """Our connection and Java's to one broker, and a queue of the test's own."""
    side: Side = request.param
    broker = request.getfixturevalue(side.broker or "embedded")
    ours = getattr(broker, f"{side.ours}_url")
    theirs = broker.openwire_url if side.java == "openwire" else broker.amqp_url
    with ExitStack() as opened:
        yield Meeting(side, ours, java, theirs, opened)


@pytest.mark.parametrize("kind", BODIES)
def test_a_body_that_we_send(meeting: Meeting, kind: str) -> None:
    body = BODIES[kind]
    lack = meeting.side.lack("sent", "body", kind)
    if lack is not None and lack.raises is not None:
        with pytest.raises(lack.raises, match=lack.text):
            meeting.we_send(Message(body))
        return
    meeting.we_send(Message(body))
    if lack is not None and lack.java_fails:
        with pytest.raises(JavaError, match=lack.java_fails):
            meeting.java_receives()
        return
    got = meeting.java_receives()
    wanted_kind, wanted = KINDS[type(body)], body
    if lack is not None:
        wanted_kind, wanted = lack.kind or wanted_kind, lack.of(body)
    assert got.kind == wanted_kind
    if wanted is not ...:
        assert typed(got.body) == typed(wanted)


@pytest.mark.parametrize("kind", [*BODIES, "object"])
def test_a_body_that_java_sends(meeting: Meeting, kind: str) -> None:
    body = OBJECT if kind == "object" else BODIES[kind]
    lack = meeting.side.lack("got", "body", kind)
    meeting.java_sends(JavaMessage("object" if kind == "object" else KINDS[type(body)], body))
    if lack is not None and lack.raises is not None:
        with pytest.raises(lack.raises, match=lack.text):
            _ = meeting.we_receive().body
        return
    if lack is not None and lack.never:
        meeting.java_sends(JavaMessage("text", "the next"))
        assert meeting.we_receive().body == "the next"
        return
    got = meeting.we_receive().body
    wanted = body if lack is None else lack.of(body)
    if wanted is ...:
        assert isinstance(got, bytes)
        return
    if kind == "object" and lack is None:
        assert isinstance(got, bytes), "a Java object is its serialized bytes"
        assert got.startswith(SERIALIZED)
        return
    assert typed(got) == typed(wanted)


@pytest.mark.parametrize("name", VALUES)
def test_a_property_that_we_send(meeting: Meeting, name: str) -> None:
    value = VALUES[name]
    lack = meeting.side.lack("sent", "property", name)
    meeting.we_send(Message("", properties={name: value}))
    wanted = value if lack is None else lack.of(value)
    assert typed(meeting.java_receives().properties[name]) == typed(wanted)


@pytest.mark.parametrize("name", VALUES)
def test_a_property_that_java_sends(meeting: Meeting, name: str) -> None:
    value = VALUES[name]
    lack = meeting.side.lack("got", "property", name)
    meeting.java_sends(JavaMessage("text", "", {name: value}))
    wanted = value if lack is None else lack.of(value)
    assert typed(meeting.we_receive().properties[name]) == typed(wanted)


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_that_we_send(meeting: Meeting, name: str) -> None:
    header = HEADERS[name]
    lack = meeting.side.lack("sent", "header", name)
    message = Message("", **{HEADERS[key].ours: value for key, value in header.together.items()})
    if not header.option:
        setattr(message, header.ours, header.value)
    if lack is not None and lack.raises is not None:
        with pytest.raises(lack.raises, match=lack.text):
            meeting.we_send(message)
        return
    meeting.we_send(message, **({header.ours: header.value} if header.option else {}))
    wanted = meeting.in_java(header) if lack is None else lack.of(header.in_java)
    assert meeting.java_receives().headers.get(header.java) == wanted


@pytest.mark.parametrize("name", HEADERS)
def test_a_header_that_java_sends(meeting: Meeting, name: str) -> None:
    header = HEADERS[name]
    lack = meeting.side.lack("got", "header", name)
    together = {HEADERS[key].java: value for key, value in header.together.items()}
    value = header.value if isinstance(header.value, bytes) else meeting.in_java(header)
    meeting.java_sends(JavaMessage("text", "", headers={**together, header.java: value}))
    got = getattr(meeting.we_receive(), header.ours)
    wanted = header.value if lack is None else lack.of(header.value)
    if wanted is ...:
        assert got != header.value
        return
    assert (str(got) if isinstance(got, Queue | Topic) else got) == wanted


def test_what_the_broker_and_the_client_set_is_told_to_java(meeting: Meeting) -> None:
    before = datetime.now(UTC)
    sent = meeting.we_send(Message("a"), ttl=60)
    headers = meeting.java_receives().headers
    assert headers["destination"] == meeting.side.javas(f"queue://{meeting.queue}")
    lack = meeting.side.lack("sent", "id")
    if lack is not None:
        assert headers["id"] == lack.arrives
    else:
        assert headers["id"].startswith("ID:")
    if sent.message_id is not None:
        assert headers["id"] == sent.message_id
    assert abs(moment(headers["timestamp"]) - before) < timedelta(seconds=10)
    assert abs(moment(headers["expiration"]) - before - timedelta(seconds=60)) < timedelta(seconds=10)
    assert (headers["redelivered"], headers.get("count", 1)) == (False, 1)


def test_what_the_broker_and_java_set_is_told_to_us(meeting: Meeting) -> None:
    before = datetime.now(UTC)
    sent = meeting.java_sends(JavaMessage("text", "a", headers={"ttl": Long(60_000)}))
    message = meeting.we_receive()
    assert message.destination == Queue(meeting.queue)
    assert message.message_id == sent
    assert message.timestamp is not None
    assert message.expiration is not None
    assert abs(message.timestamp - before) < timedelta(seconds=10)
    assert abs(message.expiration - before - timedelta(seconds=60)) < timedelta(seconds=10)
    assert (message.redelivered, message.delivery_count) == (False, 1)


def test_unset_headers_are_unset_on_the_other_side(meeting: Meeting) -> None:
    meeting.we_send(Message("a"))
    headers = meeting.java_receives().headers
    unset = ("correlation", "type", "reply", "group")
    assert {name: headers.get(name) for name in unset} == dict.fromkeys(unset)
    assert headers["expiration"] == 0
    meeting.java_sends(JavaMessage("text", "a"))
    message = meeting.we_receive()
    assert (message.correlation_id, message.type, message.reply_to, message.group_id) == (None,) * 4
    assert message.expiration is None


def test_what_we_gave_back_is_redelivered_to_java(meeting: Meeting) -> None:
    meeting.we_send(Message("a"))
    session = meeting.connect().session(AckMode.CLIENT)
    assert session.consumer(meeting.queue).receive(timeout=SOON) is not None
    session.close()
    headers = meeting.java_receives().headers
    lack = meeting.side.lack("sent", "redelivered")
    expected = lack is None or lack.arrives
    assert (headers["redelivered"], headers["count"]) == (expected, 2 if expected else 1)


def test_what_java_gave_back_is_redelivered_to_us(meeting: Meeting) -> None:
    lack = meeting.side.lack("got", "rolled back")
    meeting.java_sends(JavaMessage("text", "a"))
    if lack is not None and lack.java_fails:
        with pytest.raises(JavaError, match=lack.java_fails):
            meeting.java.roll_back(meeting.java_url, meeting.javas_queue, 2)
        return
    first, second = meeting.java.roll_back(meeting.java_url, meeting.javas_queue, 2)
    assert (first.headers["redelivered"], second.headers["redelivered"]) == (False, True)
    message = meeting.we_receive()
    assert message.redelivered
    assert message.delivery_count >= 2, "of Java's rollbacks the broker hears one at least"


def test_a_reply_of_ours_to_a_temporary_queue_of_java(meeting: Meeting) -> None:
    lack = meeting.side.lack("got", "temporary")
    if lack is not None and lack.java_fails:
        with pytest.raises(JavaError, match=lack.java_fails):
            meeting.java.request(meeting.java_url, meeting.javas_queue)
        return
    meeting.java.request(meeting.java_url, meeting.javas_queue)
    request = meeting.we_receive()
    if lack is not None:
        assert request.reply_to == lack.arrives
        return
    assert request.reply_to is not None
    meeting.connection.session(AckMode.AUTO).producer(request.reply_to).send("the reply", correlation_id="c")
    reply = meeting.java.reply(meeting.java_url, meeting.javas_queue)
    assert reply.headers["correlation"] == "c"
    native = meeting.side.lack("sent", "body")
    assert reply.body == "the reply" if native is None else reply.kind == native.kind


def test_a_dead_letter_of_ours_tells_java_why(meeting: Meeting) -> None:
    letters = f"{meeting.queue}.DLQ"
    meeting.we_send(Message("bad"))
    session = meeting.connect(
        redelivery_policy=RedeliveryPolicy(maximum_redeliveries=0),
        dead_letter_strategy=SharedDeadLetterStrategy(letters),
    ).session(AckMode.CLIENT)
    assert session.consumer(meeting.queue).receive(timeout=SOON) is not None
    session.recover(cause=ValueError("no such account"))
    session.close()
    letter = meeting.java_receives(letters)
    lack = meeting.side.lack("sent", "body", "text")
    assert (letter.kind, letter.body) == ("text", "bad") if lack is None else letter.kind == lack.kind
    assert "no such account" in letter.properties["dlqDeliveryFailureCause"]
    assert letter.properties["originalDestination"] == f"queue://{meeting.queue}"


@pytest.mark.parametrize("meeting", [SIDES["amqp-rabbitmq-qpid"]], ids=["amqp-rabbitmq"], indirect=True)
def test_qpid_jms_cannot_attach_to_a_queue_of_ours_on_rabbitmq_by_its_plain_name(meeting: Meeting) -> None:
    meeting.we_send(Message("a"))
    bounded = f"{meeting.java_url}?jms.requestTimeout=1000&jms.closeTimeout=1000"  # it would wait for ever
    with pytest.raises(JavaError, match="TimedOut"):
        meeting.java.receive(bounded, f"queue:///queue/{meeting.queue}")
    assert meeting.java_receives().body == "a"


def moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def typed(value: Any) -> Any:
    """A value with its types, those of the elements too: 1, True and 1.0 are not the same here."""
    if isinstance(value, dict):
        return {name: typed(each) for name, each in value.items()}
    if isinstance(value, list):
        return [typed(each) for each in value]
    return type(value).__name__, value
