"""Each kind of message, property and header, both ways between us and a Java client on the same broker.

The Java client is ActiveMQ's (OpenWire) or Qpid JMS (AMQP 1.0); what does not get across stands in `java.sides`.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.conformance.java.cases import BODIES, HEADER_ROWS, HEADERS, KINDS, SERIALIZED, VALUES
from tests.conformance.java.client import JavaClients, JavaError, JavaMessage
from tests.conformance.java.meeting import Meeting
from tests.conformance.java.sides import SIDES, Side
from tests.conformance.java.values import SENT_BY_JAVA, arrives, comes, moment, of_java, taken, typed
from tests.conformance.stage import SOON

from redelivery import AckMode, Long, Message, Queue, RedeliveryPolicy, SharedDeadLetterStrategy, Topic
from redelivery.broker import EmbeddedBroker
from redelivery.operate.letters.moving import Mover, plan
from redelivery.operate.letters.routes import back
from redelivery.operate.letters.selection import Selection
from redelivery.testing.brokers.real import required

pytestmark = pytest.mark.timeout(400)  # the first test fetches the Java clients


@pytest.fixture(scope="session")
def java() -> Iterator[JavaClients]:
    lacking = [tool for tool in ("javac", "mvn") if shutil.which(tool) is None]
    if lacking:
        reason = f"no Java client: {' and '.join(lacking)} not found (it needs a JDK and Maven)"
        pytest.fail(reason, pytrace=False) if required("activemq") else pytest.skip(reason)
    with JavaClients() as clients:
        yield clients


@pytest.fixture(scope="module")
def embedded(java: JavaClients) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(name=f"java-{uuid.uuid4().hex}", stomp_port=0, amqp_port=0) as broker:
        yield broker
        java.close_connections()


Cases = Callable[[str], AbstractContextManager[None]]


@pytest.fixture
def cases() -> Iterator[Cases]:
    """``with cases(name)``: what fails there is told with its name at the end, and the other cases go on."""
    failed: list[Exception] = []

    @contextmanager
    def case(name: str) -> Iterator[None]:
        try:
            yield
        except (AssertionError, KeyError) as error:
            error.add_note(f"case: {name}")
            failed.append(error)

    yield case
    if failed:
        raise ExceptionGroup(f"{len(failed)} cases failed", failed)


@pytest.fixture(params=list(SIDES.values()), ids=list(SIDES))
def meeting(request: pytest.FixtureRequest, java: JavaClients) -> Iterator[Meeting]:
    """Our connection and Java's to one broker, and a queue of the test's own."""
    side: Side = request.param
    broker = request.getfixturevalue(side.broker or "embedded")
    ours = getattr(broker, f"{side.ours}_url")
    theirs = broker.openwire_url if side.java == "openwire" else broker.amqp_url
    with ExitStack() as opened:
        yield Meeting(side, ours, java, theirs, opened)


def test_what_we_send_arrives_in_java(meeting: Meeting, cases: Cases) -> None:
    bodies = [kind for kind in BODIES if arrives(meeting.side.lack("sent", "body", kind))]
    for kind in bodies:
        meeting.we_send(Message(BODIES[kind]))
    meeting.we_send(Message("", properties=VALUES))
    *plain, valued = meeting.java_receives_all(len(bodies) + 1)
    for kind, got in zip(bodies, plain, strict=True):
        with cases(f"body {kind}"):
            body, lack = BODIES[kind], meeting.side.lack("sent", "body", kind)
            assert got.kind == ((lack and lack.kind) or KINDS[type(body)])
            wanted = body if lack is None else lack.of(body)
            if wanted is not ...:
                assert typed(got.body) == typed(wanted)
    for name, value in VALUES.items():
        with cases(f"property {name}"):
            lack = meeting.side.lack("sent", "property", name)
            assert typed(valued.properties[name]) == typed(value if lack is None else lack.of(value))
    for row in HEADER_ROWS:
        we_send_headers(meeting, row, cases)
    with cases("what the broker and we set"):
        we_set(meeting)
    with cases("unset headers"):
        meeting.we_send(Message("a"))
        headers = meeting.java_receives().headers
        unset = ("correlation", "type", "reply", "group")
        assert {name: headers.get(name) for name in unset} == dict.fromkeys(unset)
        assert headers["expiration"] == 0


def test_a_body_of_ours_that_cannot_get_across_is_an_error(meeting: Meeting, cases: Cases) -> None:
    for kind, body in BODIES.items():
        lack = meeting.side.lack("sent", "body", kind)
        if lack is None or arrives(lack):
            continue
        with cases(kind):
            if lack.raises is not None:
                with pytest.raises(lack.raises, match=lack.text):
                    meeting.we_send(Message(body))
            else:
                separate = meeting.separate()
                separate.we_send(Message(body))
                with pytest.raises(JavaError, match=lack.java_fails):
                    separate.java_receives()


def we_send_headers(meeting: Meeting, row: Sequence[str], cases: Cases) -> None:
    """All headers of the row on one message; one that cannot be sent is tried by itself."""
    message, options = Message(""), {}
    sent = []
    for name in row:
        header, lack = HEADERS[name], meeting.side.lack("sent", "header", name)
        if lack is not None and lack.raises is not None:
            with cases(f"header {name}"), pytest.raises(lack.raises, match=lack.text):
                meeting.we_send(Message("", **{header.ours: header.value}))
            continue
        sent.append(name)
        for key, value in header.together.items():
            setattr(message, HEADERS[key].ours, value)
        if header.option:
            options[header.ours] = header.value
        else:
            setattr(message, header.ours, header.value)
    if not sent:
        return
    meeting.we_send(message, **options)
    headers = meeting.java_receives().headers
    for name in sent:
        with cases(f"header {name}"):
            header, lack = HEADERS[name], meeting.side.lack("sent", "header", name)
            wanted = meeting.in_java(header) if lack is None else lack.of(header.in_java)
            assert headers.get(header.java) == wanted


def we_set(meeting: Meeting) -> None:
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


def test_what_java_sends_arrives_here(meeting: Meeting, cases: Cases) -> None:
    bodies = [kind for kind in SENT_BY_JAVA if arrives(meeting.side.lack("got", "body", kind))]
    for kind in bodies:
        meeting.java_sends(of_java(kind))
    meeting.java_sends(JavaMessage("text", "", VALUES))
    *plain, valued = meeting.we_receive_all(len(bodies) + 1)
    for kind, message in zip(bodies, plain, strict=True):
        with cases(f"body {kind}"):
            got, lack = message.body, meeting.side.lack("got", "body", kind)
            wanted = SENT_BY_JAVA[kind] if lack is None else lack.of(SENT_BY_JAVA[kind])
            if wanted is ...:
                assert isinstance(got, bytes)
            elif kind == "object" and lack is None:
                assert isinstance(got, bytes), "a Java object is its serialized bytes"
                assert got.startswith(SERIALIZED)
            else:
                assert typed(got) == typed(wanted)
    for name, value in VALUES.items():
        with cases(f"property {name}"):
            lack = meeting.side.lack("got", "property", name)
            assert typed(valued.properties[name]) == typed(value if lack is None else lack.of(value))
    for row in HEADER_ROWS:
        java_sends_headers(meeting, row, cases)
    with cases("what the broker and Java set"):
        java_sets(meeting)
    with cases("unset headers"):
        meeting.java_sends(JavaMessage("text", "a"))
        message = meeting.we_receive()
        assert (message.correlation_id, message.type, message.reply_to, message.group_id) == (None,) * 4
        assert message.expiration is None


def test_a_body_of_java_that_cannot_get_across_harms_nothing_else(meeting: Meeting, cases: Cases) -> None:
    for kind in SENT_BY_JAVA:
        lack = meeting.side.lack("got", "body", kind)
        if lack is None or arrives(lack):
            continue
        with cases(kind):
            separate = meeting.separate()
            separate.java_sends(of_java(kind))
            if lack.raises is not None:
                with pytest.raises(lack.raises, match=lack.text):
                    _ = separate.we_receive().body
            else:
                separate.java_sends(JavaMessage("text", "the next"))
                assert separate.we_receive().body == "the next"


def java_sends_headers(meeting: Meeting, row: Sequence[str], cases: Cases) -> None:
    """All headers of the row on one message."""
    headers: dict[str, Any] = {}
    for header in (HEADERS[name] for name in row):
        headers |= {HEADERS[key].java: value for key, value in header.together.items()}
        headers[header.java] = header.value if isinstance(header.value, bytes) else meeting.in_java(header)
    meeting.java_sends(JavaMessage("text", "", headers=headers))
    message = meeting.we_receive()
    for name in row:
        with cases(f"header {name}"):
            header, lack = HEADERS[name], meeting.side.lack("got", "header", name)
            got = getattr(message, header.ours)
            wanted = header.value if lack is None else lack.of(header.value)
            if wanted is ...:
                assert got != header.value
            else:
                assert (str(got) if isinstance(got, Queue | Topic) else got) == wanted


def java_sets(meeting: Meeting) -> None:
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


def test_what_one_gave_back_is_redelivered_to_the_other(meeting: Meeting) -> None:
    we_release(meeting)
    java_releases(meeting.separate())


def we_release(meeting: Meeting) -> None:
    meeting.we_send(Message("a"))
    session = meeting.connect().session(AckMode.CLIENT)
    assert session.consumer(meeting.queue).receive(timeout=SOON) is not None
    session.close()
    headers = meeting.java_receives().headers
    lack = meeting.side.lack("sent", "redelivered")
    expected = lack is None or lack.arrives
    assert (headers["redelivered"], headers["count"]) == (expected, 2 if expected else 1)


def java_releases(meeting: Meeting) -> None:
    lack = meeting.side.lack("got", "rolled back")
    meeting.java_sends(JavaMessage("text", "a"))
    if lack is not None and lack.java_fails:
        with pytest.raises(JavaError, match=lack.java_fails):
            meeting.java.roll_back(meeting.impatient, meeting.javas_queue, 2)
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
            meeting.java.request(meeting.impatient, meeting.javas_queue)
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


def test_what_java_sends_is_dead_lettered_as_it_came_and_replayed(meeting: Meeting) -> None:
    """Of all kinds, and not persistent, which a strategy that is named takes too."""
    kinds = [kind for kind in SENT_BY_JAVA if kind != "long text" and comes(meeting.side.lack("got", "body", kind))]
    for kind in kinds:
        message = of_java(kind)
        meeting.java_sends(JavaMessage(message.kind, message.body, headers={"persistent": False}))
    dead = Queue(f"{meeting.queue}.DLQ")
    connection = meeting.connect(
        redelivery_policy=RedeliveryPolicy(maximum_redeliveries=1, initial_redelivery_delay=0, redelivery_delay=0),
        dead_letter_strategy=SharedDeadLetterStrategy(dead),
    )
    failed: list[object] = []
    with connection.session(AckMode.INDIVIDUAL) as session, session.consumer(meeting.queue) as consumer:
        for _ in range(2 * len(kinds)):
            received = consumer.receive(timeout=SOON)
            assert received is not None, f"after {len(failed)} of {kinds} twice"
            failed.append(typed(received.body or None))
            session.recover(cause=ValueError("no such account"))
        assert consumer.receive(timeout=0.1) is None
    letters = taken(connection, dead, len(kinds))
    assert [each for letter in letters for each in (letter, letter)] == failed
    with meeting.connect() as operator:
        selection, route = Selection(dead), back(None, "run")
        assert Mover(operator, selection, route).move(plan(operator, selection, route)) == len(kinds)
    assert taken(meeting.connect(), Queue(meeting.queue), len(kinds)) == letters


def test_a_dead_letter_of_ours_shows_java_why(meeting: Meeting) -> None:
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
    with pytest.raises(JavaError, match="TimedOut"):
        meeting.java.receive(meeting.impatient, f"queue:///queue/{meeting.queue}")
    assert meeting.java_receives().body == "a"
