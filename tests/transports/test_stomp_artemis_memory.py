"""An Artemis without a journal, as everybody tests with: over STOMP it confirms a long text, and loses it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.promises.real.started import running, with_a_store

import redelivery
from redelivery import RedeliveryPolicy, SharedDeadLetterStrategy
from redelivery.testing.brokers.native import NativeBroker
from redelivery.testing.brokers.specs import artemis

pytestmark = [pytest.mark.long_form, pytest.mark.together("artemis")]


@pytest.fixture(scope="module")
def broker() -> Iterator[NativeBroker]:
    without = with_a_store(lambda text: text.replace("<persistence-enabled>true", "<persistence-enabled>false"))
    with running(artemis.SPEC, without) as broker:
        yield broker


def url(broker: NativeBroker, protocol: str) -> str:
    return f"{protocol}://{broker.host}:{broker.ports[protocol]}"


@pytest.mark.parametrize("body", ["x" * 60_000, "\u00fc" * 60_000, "x" * 1_000_000, b"x" * 1_000_000])
@pytest.mark.parametrize("to", ["stomp", "amqp"])
def test_a_long_body_arrives_with_its_type(broker: NativeBroker, to: str, body: str | bytes) -> None:
    with redelivery.connect(url(broker, "stomp")) as connection, connection.session() as session:
        session.producer("long").send(body)
    with redelivery.connect(url(broker, to)) as connection, connection.session() as session:
        message = session.consumer("long").receive(timeout=10)
        assert message is not None
        assert message.body == body


def test_a_long_text_is_dead_lettered_as_text(broker: NativeBroker) -> None:
    with (
        redelivery.connect(
            url(broker, "stomp"),
            redelivery_policy=RedeliveryPolicy(maximum_redeliveries=0),
            dead_letter_strategy=SharedDeadLetterStrategy("long.dlq"),
        ) as connection,
        connection.session("transacted") as session,
    ):
        session.producer("poison").send("x" * 60_000)
        session.commit()
        consumer = session.consumer("poison")
        assert consumer.receive(timeout=10) is not None
        session.rollback()
        assert consumer.receive(timeout=1) is None
        letter = session.consumer("long.dlq").receive(timeout=10)
        assert letter is not None
        assert letter.body == "x" * 60_000
        session.commit()
