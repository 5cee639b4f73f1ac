"""What others wrote and nobody can decode: it is read as bytes, and it is dead-lettered as it came.

The raw body is there, the limit holds, the others of the queue go on with a window of one message, and the dead letter
has what can be read.
"""

from __future__ import annotations

from time import monotonic
from typing import Final

import pytest
from tests.conformance.foreign import Foreign, binary, mapping, properties, section, sequence, string, symbol
from tests.conformance.pairs import Pair
from tests.conformance.record import ALONE, RABBITMQS
from tests.conformance.stage import SOON, Stage

from redelivery import Message, MessageFormatError, RedeliveryPolicy, SharedDeadLetterStrategy
from redelivery.client.dead_letters import readable_copy

ONCE: Final = RedeliveryPolicy(maximum_redeliveries=1, initial_redelivery_delay=0.0, redelivery_delay=0.0)
LATIN: Final = "Grüße".encode("latin-1")
HALF: Final = b"half \xed\xa0\xbd"
DURABLE: Final = section(0x70, sequence(b"\x41"))
NAMED: Final = section(0x74, mapping(string(b"kept"), string(b"yes")))
NESTED: Final = mapping(string(b"order"), mapping(string(b"id"), b"\x54\x01"), string(b"items"), sequence(b"\x54\x01"))

# What stands behind the destination in a SEND: its headers, and its body.
STOMP: Final = {
    "a NUL": b"persistent:true\nkept:yes\ncontent-length:3\n\n\x08\x01\x00",
    "latin-1": b"persistent:true\nkept:yes\ncontent-type:text/plain\ncontent-length:%d\n\n%b" % (len(LATIN), LATIN),
    "broken UTF-8": b"persistent:true\nkept:yes\ncontent-length:2\n\n\xc3\x28",
    "not persistent": b"kept:yes\n\nplain",
}
# Whole messages.
AMQP: Final = {
    "latin-1": DURABLE + properties(b"text/plain") + NAMED + section(0x75, binary(LATIN)),
    "half a character": DURABLE + NAMED + section(0x77, string(HALF)),
    "a nested map": DURABLE + NAMED + section(0x77, NESTED),
    "a nested list": DURABLE + NAMED + section(0x77, sequence(sequence(b"\x41"), b"\x42")),
    "a map with numbers as keys": DURABLE + NAMED + section(0x77, mapping(b"\x54\x01", b"\x54\x02")),
    "a described value": DURABLE + NAMED + section(0x77, b"\x00" + symbol(b"other:type") + string(b"value")),
    "one number": DURABLE + NAMED + section(0x77, b"\x71\x00\x00\x10\x00"),
    "several data": DURABLE + NAMED + section(0x75, binary(b"one ")) + section(0x75, binary(b"two")),
    "not durable": NAMED + section(0x77, string(b"plain")),
    "half a character in a property": DURABLE
    + section(0x74, mapping(string(b"kept"), string(b"yes"), string(b"bad"), string(HALF)))
    + section(0x77, string(b"plain")),
    "an empty name": DURABLE
    + section(0x74, mapping(string(b"kept"), string(b"yes"), string(b""), string(b"x")))
    + section(0x77, string(b"plain")),
}

# What a broker does not take.
REFUSED: Final = {
    "embedded": ("half a character in a property",),
    "rabbitmq": ("a nested list",),  # it ends the connection
}


@pytest.fixture
def foreign(pair: Pair) -> Foreign:
    if pair.kind.protocol == "vm":
        pytest.skip(ALONE)
    return Foreign(pair.kind.protocol, pair.kind.broker or "embedded", pair.url)


def consume(stage: Stage, seen: list[Message]) -> None:
    """Fail all but what is called good, with a window of one message, until that has come."""
    connection = stage.connect(
        redelivery_policy=ONCE, dead_letter_strategy=SharedDeadLetterStrategy(stage.beside("dlq")), prefetch=1
    )
    with connection.session("individual") as session, session.consumer(stage.queue) as consumer:
        end = monotonic() + 3 * SOON
        while monotonic() < end:
            message = consumer.receive(timeout=1)
            if message is None:
                continue
            seen.append(message)
            if b"good" in message.raw_body:
                message.acknowledge()
                return
            session.recover(cause=ValueError("bad order"))


def letters(stage: Stage, number: int) -> list[Message]:
    """So many dead letters, in their order."""
    with stage.connect() as connection, connection.session() as session:
        consumer = session.consumer(stage.beside("dlq"))
        found = [consumer.receive(timeout=SOON) for _ in range(number)]
        assert consumer.receive(timeout=0.2) is None
    assert None not in found
    return [each for each in found if each is not None]


def test_what_cannot_be_decoded_is_dead_lettered_as_it_came(stage: Stage, foreign: Foreign) -> None:
    cases, good = (AMQP, section(0x77, string(b"good"))) if foreign.protocol == "amqp" else (STOMP, b"\ngood")
    cases = {name: message for name, message in cases.items() if name not in REFUSED.get(foreign.broker, ())}
    with stage.connect() as connection, connection.session() as session:
        session.consumer(stage.queue).close()  # on most brokers that makes it
    foreign.send(stage.queue, *cases.values(), good)
    seen: list[Message] = []
    consume(stage, seen)
    assert [message.raw_body for message in seen if b"good" in message.raw_body], seen
    failed = [message for message in seen if b"good" not in message.raw_body]
    assert len(failed) == 2 * len(cases)  # one redelivery each
    came = failed[1::2]
    dead = letters(stage, len(cases))
    assert [letter.raw_body for letter in dead] == [message.raw_body for message in came]
    for letter, message in zip(dead, came, strict=True):
        assert letter.properties["kept"] == "yes"
        assert letter.dead_letter is not None
        assert letter.dead_letter.cause is not None
        for name in readable_copy(message)[1]:
            assert name in letter.dead_letter.cause
        assert decoded(letter) == decoded(message)


def decoded(message: Message) -> object:
    try:
        return message.body
    except MessageFormatError:
        return MessageFormatError


def test_names_and_values_that_no_frame_can_carry_are_left_out(request: pytest.FixtureRequest, stage: Stage) -> None:
    """As a client of AMQP 0-9-1 writes them, whose headers may be anything."""
    if stage.pair.kind.name != "stomp-rabbitmq":
        pytest.skip(RABBITMQS)
    with stage.connect() as connection, connection.session() as session:
        session.consumer(stage.queue).close()
    other = Foreign("amqp", "rabbitmq", request.getfixturevalue("rabbitmq").amqp_url)
    other.publish(stage.queue, b"\x08\x01\x00", {"": "x", "kept": "yes", "nul": "a\0b"})
    other.publish(stage.queue, b"good", {})
    seen: list[Message] = []
    consume(stage, seen)
    (letter,) = letters(stage, 1)
    assert letter.raw_body == b"\x08\x01\x00"
    assert letter.properties["kept"] == "yes"
    assert letter.dead_letter is not None
    assert str(letter.dead_letter.cause).endswith("; not in this copy: property '', property 'nul'")
