"""Ctrl-C wherever Python looks for signals in a public call: afterwards the session works, and nothing is lost.

Over vm://, STOMP and, in the short form what matters most, AMQP; `tests.client.interrupts` finds the places.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from tests.client.interrupts import interrupted, named, places
from tests.run.forms import every

import redelivery
from redelivery import AckMode, Connection, Consumer, Message, Producer, RedeliveryPolicy, Session
from redelivery.broker import EmbeddedBroker

PATIENCE = 2.0  # seconds; who needs longer waits for something that an interrupt left taken
AT_ONCE = RedeliveryPolicy(maximum_redeliveries=-1, initial_redelivery_delay=0, redelivery_delay=0)
AUTO, CLIENT, TRANSACTED = AckMode.AUTO, AckMode.CLIENT, AckMode.TRANSACTED
LONG, pytestmark = pytest.mark.long_form, pytest.mark.in_turns("connected")
WIRES = ("vm", "stomp", "stomp as to ActiveMQ")
AMQP_TOO = pytest.mark.parametrize("connected", [*WIRES, "amqp"], indirect=True, scope="module")


@pytest.fixture(scope="module", params=[*WIRES, pytest.param("amqp", marks=LONG)])
def connected(request: pytest.FixtureRequest) -> Iterator[tuple[EmbeddedBroker, Connection]]:
    if request.param == "amqp":
        pytest.importorskip("proton")
    amqp_port = 0 if request.param == "amqp" else None
    with EmbeddedBroker(f"interrupts-{uuid.uuid4().hex}", stomp_port=0, amqp_port=amqp_port) as broker:
        url = broker.vm_url if request.param == "vm" else broker.stomp_url
        url = broker.amqp_url if amqp_port is not None else url
        dialect = "activemq" if "as to" in request.param else "auto"  # other frames: a commit of one is an ACK
        with redelivery.connect(
            url, redelivery_policy=AT_ONCE, request_timeout=5, close_timeout=5, dialect=dialect
        ) as connection:
            yield broker, connection


@dataclass
class Scene:
    """A session of its own on a queue of its own that holds m1, m2 and m3."""

    broker: EmbeddedBroker
    session: Session
    queue: str
    consumer: Consumer
    producer: Producer
    began: float
    messages: list[Message] = field(default_factory=list)

    @staticmethod
    def set_up(connected: tuple[EmbeddedBroker, Connection], mode: AckMode) -> Scene:
        broker, connection = connected
        queue = f"q-{uuid.uuid4().hex}"
        with connection.session(TRANSACTED) as sending:
            for body in ("m1", "m2", "m3"):
                sending.producer(queue).send(body)
            sending.commit()
        session = connection.session(mode)
        scene = Scene(
            broker, session, queue, session.consumer(queue), session.producer(f"{queue}-out"), time.monotonic()
        )
        return scene

    def receive(self) -> str:
        message = self.consumer.receive(PATIENCE)
        assert message is not None, "nothing came"
        return str(message.body)

    def take(self, *bodies: str) -> None:
        assert [self.receive() for _ in bodies] == list(bodies)

    def end(self) -> tuple[list[str], list[str]]:
        """What is left on the queue and what was sent, when all is closed, which is quick."""
        self.session.close()
        assert time.monotonic() - self.began < PATIENCE, "something waited for what will not come"
        return self.on(self.queue), self.on(f"{self.queue}-out")

    def on(self, queue: str) -> list[str]:
        return [str(message.body) for message in self.broker.messages(queue)]


Connected = tuple[EmbeddedBroker, Connection]


def everywhere(
    connected: Connected,
    mode: AckMode,
    prepare: Callable[[Scene], object],
    call: Callable[[Scene], object],
    check: Callable[[Scene], object],
) -> None:
    """One scene for each place; an interrupt that never came out of the call would prove nothing."""

    def scene() -> Scene:
        made = Scene.set_up(connected, mode)
        prepare(made)
        return made

    first = scene()
    found = dict.fromkeys(places(lambda: call(first)))
    second = scene()  # what is only there the second time, or was made by the first
    found.update(dict.fromkeys(places(lambda: call(second))))
    for each in (first, second):
        each.session.close()
    outcomes: Counter[bool] = Counter()
    for place in list(found)[:: every(2)]:
        made = scene()
        came = interrupted(place, lambda made=made: call(made))  # type: ignore[misc]  # bound at once
        outcomes[came] += 1
        if came:
            try:
                check(made)
            except Exception as error:
                error.add_note(f"after an interrupt at {named(place)}")
                raise
        made.session.close()
    assert outcomes[True] > 30 // every(2)
    assert outcomes[True] > 0.1 * sum(outcomes.values())  # what is read when, and where, differs between two runs


def nothing(_: Scene) -> None:
    pass


@AMQP_TOO
@pytest.mark.parametrize("mode", list(AckMode), ids=lambda mode: mode.name)
def test_receive(connected: Connected, mode: AckMode) -> None:
    def check(scene: Scene) -> None:
        scene.take("m1", "m2", "m3")
        if mode == TRANSACTED:
            scene.session.commit()
        elif mode in (CLIENT, AckMode.INDIVIDUAL):
            left, _ = scene.end()
            assert left == ["m1", "m2", "m3"]
            return
        assert scene.end() == ([], [])

    everywhere(connected, mode, nothing, lambda scene: scene.consumer.receive(PATIENCE), check)


@pytest.mark.parametrize("connected", ["stomp as to ActiveMQ"], indirect=True, scope="module")
def close_to_the_window(scene: Scene) -> None:
    scene.consumer.close()
    scene.consumer = scene.session.consumer(scene.queue, prefetch=2)


def test_a_receive_that_acknowledges_in_the_transaction(connected: Connected) -> None:
    def check(scene: Scene) -> None:
        scene.take("m1", "m2", "m3")
        scene.session.commit()
        assert scene.end() == ([], [])

    everywhere(connected, TRANSACTED, close_to_the_window, lambda scene: scene.consumer.receive(PATIENCE), check)


@pytest.mark.parametrize(("mode", "number"), [(AUTO, 2), (TRANSACTED, 2), pytest.param(AUTO, 3, marks=LONG)])
def test_receive_many(connected: Connected, mode: AckMode, number: int) -> None:
    def check(scene: Scene) -> None:
        scene.take("m1", "m2", "m3")
        if mode == TRANSACTED:
            scene.session.commit()
        assert scene.end() == ([], [])

    everywhere(connected, mode, close_to_the_window, lambda scene: scene.consumer.receive_many(number, PATIENCE), check)


def test_a_receive_that_finds_nothing(connected: Connected) -> None:
    def check(scene: Scene) -> None:
        assert scene.consumer.receive(0) is None
        scene.session.commit()
        assert scene.end() == ([], [])

    everywhere(
        connected,
        TRANSACTED,
        lambda scene: scene.take("m1", "m2", "m3"),
        lambda scene: scene.consumer.receive(0.01),
        check,
    )


def in_a_transaction(scene: Scene) -> None:
    scene.take("m1", "m2")
    scene.producer.send("r1")


def test_commit(connected: Connected) -> None:
    """All of it or nothing; the next transaction works."""

    def check(scene: Scene) -> None:
        scene.session.rollback()
        assert scene.receive() in ("m1", "m3")  # before the commit began, or after
        scene.session.rollback()
        left, sent = scene.end()
        assert (left, sent) in (((["m3"]), ["r1"]), (["m1", "m2", "m3"], []))

    everywhere(connected, TRANSACTED, in_a_transaction, lambda scene: scene.session.commit(), check)


def test_a_commit_after_an_interrupted_one(connected: Connected) -> None:
    def check(scene: Scene) -> None:
        scene.session.commit()  # of the same transaction, or of the next, where that one is committed or rolled back
        first = scene.receive()
        scene.take(*(("m2", "m3") if first == "m1" else ()))
        scene.session.commit()
        assert (first, *scene.end()) in (("m3", [], ["r1"]), ("m1", [], []))

    everywhere(connected, TRANSACTED, in_a_transaction, lambda scene: scene.session.commit(), check)


@pytest.mark.parametrize("bodies", [("m1",), ("m1", "m2")])
def test_a_commit_of_what_was_received(connected: Connected, bodies: tuple[str, ...]) -> None:
    """All of it or nothing, which one cannot know; it is rolled back where AMQP has not declared it yet."""
    rest = ["m1", "m2", "m3"][len(bodies) :]

    def check(scene: Scene) -> None:
        first = scene.receive()
        scene.session.rollback()
        again = scene.receive()
        scene.producer.send("r1")
        scene.session.commit()
        left, sent = scene.end()
        assert sent == ["r1"]
        outcome = again, tuple(left)
        untouched, lost, done = ("m1", ("m2", "m3")), (rest[0], (*bodies, *rest[1:])), (rest[0], tuple(rest[1:]))
        assert outcome in ((untouched, lost, done) if first == rest[0] else (untouched,))

    everywhere(connected, TRANSACTED, lambda scene: scene.take(*bodies), lambda scene: scene.session.commit(), check)


def test_rollback(connected: Connected) -> None:
    def check(scene: Scene) -> None:
        scene.session.rollback()
        scene.take("m1", "m2", "m3")
        scene.session.commit()
        assert scene.end() == ([], [])

    everywhere(connected, TRANSACTED, in_a_transaction, lambda scene: scene.session.rollback(), check)


def test_acknowledge(connected: Connected) -> None:
    def check(scene: Scene) -> None:
        scene.session.acknowledge()
        scene.take("m3")
        left, _ = scene.end()
        assert left == ["m3"]

    everywhere(
        connected, CLIENT, lambda scene: scene.take("m1", "m2"), lambda scene: scene.session.acknowledge(), check
    )


@AMQP_TOO
def test_acknowledge_one(connected: Connected) -> None:
    """INDIVIDUAL: it is acknowledged or can be, and what comes after it can be."""

    def take_two(scene: Scene) -> None:
        scene.messages = scene.consumer.receive_many(2, PATIENCE)

    def check(scene: Scene) -> None:
        for message in scene.messages:
            message.acknowledge()
        left, _ = scene.end()
        assert left == ["m3"]

    everywhere(connected, AckMode.INDIVIDUAL, take_two, lambda scene: scene.messages[0].acknowledge(), check)


@AMQP_TOO
def test_send_async(connected: Connected) -> None:
    """It is sent or it is not, once; what comes after it is sent, and answered though nobody reads."""

    def check(scene: Scene) -> None:
        assert scene.producer.send_async("r2").result(PATIENCE).body == "r2"
        left, sent = scene.end()
        assert left == ["m1", "m2", "m3"]
        assert sent in (["r0", "r2"], ["r0", "r1", "r2"])

    everywhere(
        connected,
        AUTO,
        lambda scene: scene.producer.send("r0"),  # the first makes the link
        lambda scene: scene.producer.send_async("r1"),
        check,
    )


@AMQP_TOO
@pytest.mark.parametrize("mode", [AUTO, TRANSACTED], ids=lambda mode: mode.name)
def test_send(connected: Connected, mode: AckMode) -> None:
    """It is sent or it is not, once; what comes after it is sent."""

    def check(scene: Scene) -> None:
        scene.producer.send("r2")
        if mode == TRANSACTED:
            scene.session.commit()
        left, sent = scene.end()
        assert left == ["m1", "m2", "m3"]
        assert sent in (["r2"], ["r1", "r2"])

    everywhere(connected, mode, nothing, lambda scene: scene.producer.send("r1"), check)


def test_a_second_send_of_a_transaction(connected: Connected) -> None:
    def check(scene: Scene) -> None:
        scene.session.commit()
        _, sent = scene.end()
        assert sent in (["r1"], ["r1", "r2"])

    everywhere(
        connected, TRANSACTED, lambda scene: scene.producer.send("r1"), lambda scene: scene.producer.send("r2"), check
    )


@pytest.mark.parametrize("mode", [CLIENT, TRANSACTED], ids=lambda mode: mode.name)
def test_close(connected: Connected, mode: AckMode) -> None:
    """It can be closed once more, and then everything goes back to the broker."""

    def prepare(scene: Scene) -> None:
        scene.take("m1", "m2")
        if mode == TRANSACTED:
            scene.producer.send("r1")

    def check(scene: Scene) -> None:
        assert scene.end() == (["m1", "m2", "m3"], [])
        with connected[1].session(AUTO) as other:
            consumer = other.consumer(scene.queue)
            bodies = [message.body for message in consumer.receive_many(3, PATIENCE)]
            assert sorted(map(str, bodies)) == ["m1", "m2", "m3"]

    everywhere(connected, mode, prepare, lambda scene: scene.session.close(), check)


def test_closing_a_consumer(connected: Connected) -> None:
    def check(scene: Scene) -> None:
        scene.consumer.close()
        scene.session.commit()
        scene.consumer = scene.session.consumer(scene.queue)
        scene.take("m2", "m3")
        scene.session.commit()
        assert scene.end() == ([], [])

    everywhere(connected, TRANSACTED, lambda scene: scene.take("m1"), lambda scene: scene.consumer.close(), check)
