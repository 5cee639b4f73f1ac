"""A listener container on a named subscription, of threads and of asyncio."""

from __future__ import annotations

from typing import Any

import pytest
from tests.client.shell import eventually
from tests.conformance.blocking import Shell

import redelivery
from redelivery import App, ConfigError, IllegalStateError, InvalidDestinationError, Message
from redelivery.broker import EmbeddedBroker
from redelivery.model.destinations import TemporaryTopic

NEWS = "topic://news"


@pytest.mark.parametrize("options", [{}, {"shared": True, "concurrency": 3}, {"max_messages_per_task": 1}])
def test_its_workers_consume_what_came_while_there_were_none(
    served: tuple[EmbeddedBroker, str], shell: Shell, options: dict[str, Any]
) -> None:
    broker, url = served
    got: list[Any] = []

    def handler(message: Message) -> None:
        if message.delivery_count == 1 and message.body == "b":
            raise ValueError("once more")
        got.append(message.body)

    policy = redelivery.RedeliveryPolicy(initial_redelivery_delay=0.01, redelivery_delay=0.01)
    with shell.connect(url, client_id="me", redelivery_policy=policy) as connection:
        with connection.listener_container(NEWS, handler, subscription="sub", **options) as container:
            for body in "ab":
                broker.send(NEWS, body)
            eventually(lambda: len(got) == 2)
            container.drain()
        for body in "cde":
            broker.send(NEWS, body)  # nobody is consuming now
        with connection.listener_container(NEWS, handler, subscription="sub", **options) as container:
            eventually(lambda: len(got) == 5)
            container.drain()
        connection.session().unsubscribe("sub")
    assert sorted(got) == list("abcde")


def test_what_it_cannot_consume_is_refused(served: tuple[EmbeddedBroker, str], shell: Shell) -> None:
    with shell.connect(served[1]) as connection:
        make = connection.listener_container
        with pytest.raises(InvalidDestinationError, match="needs a topic"):
            make("orders", print, subscription="sub")
        with pytest.raises(ConfigError, match="one consumer at a time"):
            make(NEWS, print, subscription="sub", concurrency=2)
        with pytest.raises(ConfigError, match="name it by subscription"):
            make(NEWS, print, shared=True)
        with pytest.raises(ConfigError, match="neither durable nor shared"):
            make(NEWS, print, subscription="sub", durable=False)
        container = make(NEWS, print, subscription="sub")
        with pytest.raises(IllegalStateError, match="client_id"):
            container.start()
        container.stop()


TOPICS = [
    NEWS,
    redelivery.Topic("news"),
    TemporaryTopic("news"),
    "topic://news.>",
    "orders,topic://news",
    "topic://a,b",
]


@pytest.mark.parametrize("topic", TOPICS, ids=str)
@pytest.mark.parametrize("concurrency", [2, (1, 4)])
def test_several_workers_of_a_topic_share_a_subscription_or_are_refused(
    shell: Shell, topic: Any, concurrency: Any
) -> None:
    refused = pytest.raises(ConfigError, match=r"would handle every message of .*shared=True")

    with shell.connect("vm://topics") as connection:
        with refused:
            connection.listener_container(topic, print, concurrency=concurrency)
        connection.listener_container(topic, print, concurrency=(1, 1))
        connection.listener_container("topic,news", print, concurrency=concurrency)
    with refused:
        App("vm://topics").listener(topic, concurrency=concurrency)(print)
