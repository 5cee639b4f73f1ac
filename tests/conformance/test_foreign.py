"""Messages that other programs wrote, by each protocol of a broker: consumed, failed, dead-lettered and replayed.

They have no id, no time and no type, are not persistent, and some of them nobody can decode. Each is received once, is
redelivered after a failure, and leaves the dead letters as it came.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any

import pytest
from tests.conformance import foreign_cases
from tests.conformance.foreign import Foreign
from tests.conformance.pairs import PAIRS, Kind, Pair
from tests.conformance.stage import SOON, Stage

import redelivery
from redelivery import Message, MessageFormatError, RedeliveryPolicy, SharedDeadLetterStrategy
from redelivery.broker import EmbeddedBroker
from redelivery.model.destinations import destination
from redelivery.operate.letters.moving import Mover, plan
from redelivery.operate.letters.routes import back
from redelivery.operate.letters.selection import Selection

ONCE = RedeliveryPolicy(maximum_redeliveries=1, initial_redelivery_delay=0.0, redelivery_delay=0.0)
# Who can write to a broker: by STOMP, by AMQP 1.0, and by RabbitMQ's own protocol.
_RABBIT = ("stomp", "amqp", "rabbit")
WRITERS = {"qpid": ("amqp",), "hornetq": ("stomp",), "rabbitmq": _RABBIT, "rabbitmq4": _RABBIT}
_CANNOT_CONVERT = "Artemis cannot convert it, and ends the connection of each consumer that it would come to"
# What a broker does not take of a writer, or cannot give to another protocol.
NOT_TAKEN: Mapping[str, Mapping[str, str]] = {
    "stomp-artemis-by-amqp": dict.fromkeys(
        ("half a character", "a nested map", "a map with numbers as keys", "a nested list"), _CANNOT_CONVERT
    ),
    "stomp-rabbitmq-by-amqp": {"a nested list": "RabbitMQ ends the connection of who sends it"},
    "amqp-rabbitmq-by-amqp": {"a nested list": "RabbitMQ ends the connection of who sends it"},
}
_DID_NOT_COME = "over STOMP it has no body: no copy is made of what did not come (tests/client/test_uncopyable.py)"
# Of what is received, what cannot be dead-lettered and replayed.
NOT_REPLAYED: Mapping[str, Mapping[str, str]] = {
    "stomp-embedded-by-amqp": dict.fromkeys(
        ("a number", "a date", "a nested map", "a nested list", "a sequence"), _DID_NOT_COME
    ),
    "amqp-activemq-by-amqp": {"half a character": "Classic delivers it over AMQP once (docs/brokers/activemq.md)"},
}


@dataclass(frozen=True, slots=True)
class Way:
    """A pair, and how the messages are written that it gets."""

    kind: Kind
    writer: str

    @property
    def name(self) -> str:
        return self.kind.name

    @property
    def broker(self) -> str | None:
        return self.kind.broker

    def __str__(self) -> str:
        return f"{self.name}-by-{self.writer}"

    @property
    def cases(self) -> list[str]:
        written: Mapping[str, Any] = {
            "stomp": foreign_cases.STOMP,
            "amqp": foreign_cases.AMQP,
            "rabbit": foreign_cases.RABBIT,
        }[self.writer]
        return [case for case in written if case not in NOT_TAKEN.get(str(self), {})]


WAYS = [
    Way(kind, writer)
    for kind in PAIRS.values()
    if not kind.stored
    # Classic ends the connection of who acknowledges over STOMP what was sent over AMQP (docs/brokers/activemq.md)
    for writer in WRITERS.get(kind.broker or "", ("stomp", "amqp"))
    if (kind.name, writer) != ("stomp-activemq", "amqp")
]


@pytest.fixture(params=WAYS, ids=[str(each) for each in WAYS])
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """Each pair, and the embedded broker with a port of each protocol."""
    way: Way = request.param
    if "amqp" in (way.kind.protocol, way.writer):
        pytest.importorskip("proton")
    if way.broker is not None:
        yield Pair(way.kind, getattr(request.getfixturevalue(way.broker), f"{way.kind.protocol}_url"))
        return
    with EmbeddedBroker(f"foreign-{uuid.uuid4().hex}", stomp_port=0, amqp_port=0) as broker:
        yield Pair(way.kind, getattr(broker, f"{way.kind.protocol}_url"), broker)


class Others:
    """They have written to the queue of the stage: one message of each case, and a good one behind them."""

    def __init__(self, stage: Stage, way: Way, broker: Any) -> None:
        self.stage, self.way = stage, way
        url = getattr(broker, "amqp_url" if way.writer == "rabbit" else f"{way.writer}_url")
        self._foreign = Foreign(way.writer, way.broker or "embedded", url)

    def write(self, *, but_for: Collection[str] = ()) -> list[str]:
        """The names, in order."""
        with self.stage.connect() as connection, connection.session() as session:
            session.consumer(self.stage.queue).close()  # on most brokers that makes it
        cases = [each for each in self.way.cases if each not in but_for]
        if self.way.writer == "rabbit":
            for case in cases:
                body, content_type = foreign_cases.RABBIT[case]
                self._foreign.publish(self.stage.queue, body, {"case": case}, content_type)
        else:
            written = foreign_cases.STOMP if self.way.writer == "stomp" else foreign_cases.AMQP
            self._foreign.send(self.stage.queue, *(written[case] for case in cases))
        return cases


@pytest.fixture
def others(request: pytest.FixtureRequest, stage: Stage) -> Others:
    way: Way = request.node.callspec.params["pair"]
    broker = stage.pair.embedded if way.broker is None else request.getfixturevalue(way.broker)
    return Others(stage, way, broker)


def _body(message: Message) -> str:
    """As it is read. A copy may be bytes where nobody can read the original."""
    try:
        return repr(message.body)
    except MessageFormatError:
        return repr(message.raw_body)


def _what_can_be_read(message: Message) -> str:
    try:
        return repr(message.body)
    except MessageFormatError:
        return "unreadable"


def _body_and_bytes(message: Message) -> str:
    return f"{message.raw_body!r} {_body(message)}"


def case(message: Message) -> object:
    """RabbitMQ's protocols do not hand on one another's properties, and one of them cannot be read over STOMP."""
    try:
        return message.properties.get("case")
    except MessageFormatError:
        return None


def taken(consumer: redelivery.Consumer, count: int) -> list[Message]:
    """So many, and no more."""
    found: list[Message] = []
    for _ in range(count):
        message = consumer.receive(timeout=SOON)
        assert message is not None, f"after {len(found)}: {[case(each) for each in found]}"
        found.append(message)
    assert consumer.receive(timeout=0.1) is None
    return found


def test_each_is_received_once_and_again_after_a_failure(stage: Stage, others: Others) -> None:
    cases = others.write()
    session, consumer = stage.consuming(redelivery.AckMode.CLIENT)
    first = taken(consumer, len(cases))
    assert Counter(map(case, first)) in (Counter(cases), Counter({None: len(cases)}))
    assert {message.delivery_count for message in first} == {1}
    session.recover(cause=ValueError("bad order"))
    again = taken(consumer, len(cases))
    assert list(map(_body_and_bytes, again)) == list(map(_body_and_bytes, first))
    assert {message.delivery_count for message in again} == {2}
    session.acknowledge()
    session.close()
    assert stage.left() == []


def test_each_is_dead_lettered_as_it_came_and_replayed(stage: Stage, others: Others) -> None:
    cases = others.write(but_for=NOT_REPLAYED.get(str(others.way), ()))
    pair = stage.pair.kind.name
    seen = _body if pair == "vm" else _body_and_bytes  # there the body is made anew
    again = _what_can_be_read if pair == "amqp-activemq" else seen  # Classic encodes anew what it redelivers
    origin, dead = destination(stage.queue), destination(f"{stage.queue}.dlq")
    connection = stage.connect(redelivery_policy=ONCE, dead_letter_strategy=SharedDeadLetterStrategy(dead))
    failed = fail(connection, stage.queue, len(cases), seen)
    assert failed.total() == 2 * len(cases)
    with connection.session("client") as session, session.consumer(dead) as consumer:
        letters = taken(consumer, len(cases))
        for letter in letters:
            said = letter.dead_letter
            assert said is not None
            assert said.origin == origin
            assert "bad order" in str(said.cause)
        came = Counter(map(seen, letters))
        assert came + came == failed
        session.recover()
    with stage.connect() as operator:
        selection, route = Selection(dead), back(None, "run")
        assert Mover(operator, selection, route).move(plan(operator, selection, route)) == len(cases)
    with stage.connect() as another, another.session("client") as session, session.consumer(origin) as consumer:
        replayed = taken(consumer, len(cases))
        assert Counter(map(again, replayed)) == Counter(map(again, letters))
        assert all(message.dead_letter is None for message in replayed)
        session.acknowledge()


def fail(connection: redelivery.Connection, queue: str, count: int, seen: Callable[[Message], str]) -> Counter[str]:
    """Let each fail until no more come: how often each came."""
    found: Counter[str] = Counter()
    with connection.session("individual") as session, session.consumer(queue) as consumer:
        end = monotonic() + 3 * SOON
        while monotonic() < end and found.total() < 2 * count:
            message = consumer.receive(timeout=1)
            if message is not None:
                found[seen(message)] += 1
                session.recover(cause=ValueError("bad order"))
        assert consumer.receive(timeout=0.1) is None
    return found
