"""Dead letters that cannot be written as they should be: what is done instead, and how others of the queue go on."""

from __future__ import annotations

from typing import Any

import pytest
from tests.client.shell import SOON, receive
from tests.conformance.blocking import Shell

import redelivery
from redelivery import Message, MessageFormatError, RedeliveryPolicy, SharedDeadLetterStrategy
from redelivery.broker import EmbeddedBroker
from redelivery.client.dead_letters import without_unfit
from redelivery.model.destinations import Queue
from redelivery.testing import FastForward

OPTIONS: dict[str, Any] = {
    "redelivery_policy": RedeliveryPolicy(maximum_redeliveries=0),
    "dead_letter_strategy": SharedDeadLetterStrategy("my.dlq"),
    "prefetch": 1,
}


@pytest.fixture(params=["vm", "stomp", "amqp"])
def protocol(request: pytest.FixtureRequest) -> str:
    if request.param == "amqp":
        pytest.importorskip("proton")
    return str(request.param)


def _copies(protocol: str) -> str:
    return "NACK" if protocol == "vm" else "SEND"


@pytest.mark.parametrize("mode", ["transacted", "client", "individual"])
def test_others_of_the_queue_go_on_with_a_window_of_one(
    mode: str, protocol: str, broker: EmbeddedBroker, clock: FastForward, shell: Shell
) -> None:
    for body in ("bad", "good", "better"):
        broker.send("orders", body)
    with shell.connect(getattr(broker, f"{protocol}_url"), **OPTIONS) as connection:
        session = connection.session(mode)
        consumer = session.consumer("orders")
        fault = broker.faults.error(_copies(protocol), "no", times=2)
        receive(consumer)
        fail(session, ValueError("bad order"))
        assert fault.hits == 1
        assert connection.stuck(Queue("orders")) == 1
        for body in ("good", "better"):
            message = receive(consumer)
            assert message.body == body
            session.commit() if session.transacted else message.acknowledge()
        clock.advance(1)
        assert consumer.receive(timeout=0) is None
        assert fault.hits == 2
        clock.advance(1)
        assert consumer.receive(timeout=0) is None
        assert connection.stuck(Queue("orders")) == 0
    assert [letter.body for letter in broker.messages("my.dlq")] == ["bad"]
    assert not broker.queue_depth("orders")


def test_a_container_says_so(broker: EmbeddedBroker) -> None:
    handled: list[object] = []

    def handle(message: Message) -> None:
        handled.append(message.body)
        if message.body == "bad":
            raise ValueError("bad order")

    for body in ("bad", "good"):
        broker.send("orders", body)
    with redelivery.connect(broker.stomp_url, **OPTIONS) as connection:
        broker.faults.error("SEND", "no", times=None)
        with connection.listener_container("orders", handle) as container:
            broker.wait_for("orders", depth=1, timeout=SOON)
            assert handled == ["bad", "good"]
            assert not container.healthy


def test_a_non_persistent_message_is_copied_as_such_where_the_broker_takes_nothing_else(
    protocol: str, broker: EmbeddedBroker
) -> None:
    broker.send("orders", "bad", persistent=False)
    with redelivery.connect(getattr(broker, f"{protocol}_url"), **OPTIONS) as connection:
        session = connection.session("transacted")
        consumer = session.consumer("orders")
        receive(consumer)
        broker.faults.error(_copies(protocol), "Non-durable message store cannot accept durable message")
        session.rollback(cause=ValueError("bad order"))
        (letter,) = broker.messages("my.dlq")
    assert not letter.persistent
    assert letter.properties["originalDeliveryMode"] == "NON_PERSISTENT"


def fail(session: redelivery.Session, cause: BaseException) -> None:
    session.rollback(cause=cause) if session.transacted else session.recover(cause=cause)


class Narrow:
    """A protocol that can carry little."""

    def __init__(self, *, most: int = 100, longest: int = 100, texts: bool = True) -> None:
        self._most, self._longest, self._texts = most, longest, texts

    def check(self, message: Message) -> None:
        lines = {**message.properties, "type": message.type or ""}
        if any("\0" in name or "\0" in str(value) for name, value in lines.items()):
            raise MessageFormatError("NUL")
        if len(lines) > self._most or max(len(str(value)) for value in lines.values()) > self._longest:
            raise MessageFormatError("too much")
        if isinstance(message.fields["body"], str) and not self._texts:
            raise MessageFormatError("no text")


def copy(**given: Any) -> Message:
    message = Message("body", **given)
    message.stamp(destination=Queue("dlq"))
    return message


def test_only_what_cannot_be_carried_is_left_out_of_a_copy() -> None:
    message = copy(properties={"why": "x", "nul": "a\0b", "kept": 1, "long": "y" * 200}, type="a\0b")
    left_out = without_unfit(message, Narrow().check, frozenset(["why"]))
    assert dict(message.properties) == {"why": "x", "kept": 1}
    assert message.type is None
    assert left_out == ["type", "property 'nul'", "property 'long'"]


def test_of_too_many_properties_the_longest_are_left_out() -> None:
    message = copy(properties={"why": "x" * 50, **{f"p{n}": "y" * n for n in range(20)}})
    left_out = without_unfit(message, Narrow(most=12).check, frozenset(["why"]))
    assert list(message.properties) == ["why", *(f"p{n}" for n in range(10))]
    assert left_out == [f"property 'p{n}'" for n in range(10, 20)]


def test_a_copy_that_fits_is_left_alone() -> None:
    message = copy(properties={"why": "x", "kept": 1}, type="t")
    assert without_unfit(message, Narrow().check, frozenset(["why"])) == []
    assert (message.type, message.properties["kept"], message.body) == ("t", 1, "body")


def test_a_copy_of_which_nothing_can_be_carried_says_so() -> None:
    with pytest.raises(MessageFormatError, match="no text"):
        without_unfit(copy(properties={"why": "x"}), Narrow(texts=False).check, frozenset(["why"]))
