"""Exclusive consumers (ActiveMQ's consumer.exclusive): one gets everything, and when it leaves, the next one"""

from __future__ import annotations

from typing import Any

import pytest
from tests.conformance.stage import Stage, nothing_comes, numbered, receive, receive_all

from redelivery import AckMode, ConfigError, Consumer, Queue, Session, UnsupportedError

EXCLUSIVE = "?consumer.exclusive=true"


def exclusive(stage: Stage) -> tuple[Session, Consumer]:
    session = stage.session(AckMode.CLIENT)
    return session, session.consumer(stage.queue + EXCLUSIVE)


@pytest.mark.needs("exclusive consumers", refused=UnsupportedError)
def test_the_first_exclusive_consumer_gets_all_whoever_else_consumes(stage: Stage) -> None:
    _, plain = stage.consuming(AckMode.CLIENT)
    session, first = exclusive(stage)
    _, second = exclusive(stage)
    assert first.destination == Queue(stage.queue)
    stage.send(*numbered(6))
    assert [message.body for message in receive_all(first, 6)] == numbered(6)
    session.acknowledge()
    assert nothing_comes(second)
    assert nothing_comes(plain)


@pytest.mark.needs("exclusive consumers", refused=UnsupportedError)
def test_when_it_leaves_the_next_gets_the_rest_and_at_last_a_plain_one(stage: Stage) -> None:
    one, other = exclusive(stage), exclusive(stage)
    plain_session, plain = stage.consuming(AckMode.CLIENT)
    stage.send("a", "b", "c")
    assert receive(one[1]).body == "a"
    one[0].close()
    assert [message.body for message in receive_all(other[1], 3)] == ["a", "b", "c"]
    assert nothing_comes(plain)
    other[0].close()
    assert [message.body for message in receive_all(plain, 3)] == ["a", "b", "c"]
    plain_session.acknowledge()


@pytest.mark.parametrize(
    "destination", ["orders?consumer.exclusive=maybe", "orders?consumer.prefetchSize=1", f"topic://news{EXCLUSIVE}"]
)
def test_other_options_have_arguments(stage: Stage, destination: Any) -> None:
    with pytest.raises(ConfigError, match=r"\?consumer\.|exclusive"):
        stage.session(AckMode.AUTO).consumer(destination)
