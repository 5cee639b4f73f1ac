"""Asks ActiveMQ Classic about its queues, where it has the statisticsBrokerPlugin.

The plug-in answers a message before the broker takes the next one, and without it nobody answers. So a message of our
own, sent to the same place behind the questions, says that all answers are there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from redelivery.client.entry.sync import Connection
from redelivery.model.destinations import Destination, Queue, Topic
from redelivery.model.errors import RequestTimeoutError, SecurityError
from redelivery.operate.doctor.observed import ObservedQueue

_BROKER: Final = Topic(
    "ActiveMQ.Statistics.Broker"
)  # the plug-in answers for a topic too, and without it nothing stays
_QUEUE: Final = "ActiveMQ.Statistics.Destination."
_SECONDS: Final = 5.0
_END: Final = "no more questions"
_LEAST: Final = 0  # priority: an answer's is not less


def has_statistics(connection: Connection) -> bool:
    """Check whether it answers this user. Only over AMQP is its answer, a map, whole.

    Raises:
        RequestTimeoutError: nothing that was sent has come back.
    """
    meta = connection.metadata
    if connection.dialect != "activemq" or meta.provider_name == "redelivery" or not meta.protocol.startswith("AMQP"):
        return False
    return bool(_answers(connection, [_BROKER]))


def classic_queues(connection: Connection, names: Iterable[str]) -> dict[str, ObservedQueue] | None:
    """The queues among these names that exist; None: this user may not ask.

    Raises:
        RequestTimeoutError: as `has_statistics`.
    """
    asked = {_QUEUE + name: name for name in names}
    answers = _answers(connection, map(Queue, asked))
    if answers is None:
        return None
    return {asked[about]: _observed(asked[about], answer) for about, answer in answers.items()}


def _answers(connection: Connection, questions: Iterable[Destination]) -> dict[str, Mapping[str, Any]] | None:
    """The answers, by the names of the destinations that were asked; None: this user may not ask them."""
    found: dict[str, Mapping[str, Any]] = {}
    try:
        with connection.session() as session:
            answers = session.temporary_queue()
            with session.consumer(answers) as consumer, session.producer(persistent=False) as producer:
                for each in questions:
                    producer.send("", each, reply_to=answers, correlation_id=each.name)
                producer.send(_END, answers, priority=_LEAST)
                while (message := consumer.receive(timeout=_SECONDS)) is not None:
                    if message.body == _END:
                        return found
                    if isinstance(message.body, dict) and isinstance(message.correlation_id, str):
                        found[message.correlation_id] = message.body
    except SecurityError:
        return None
    raise RequestTimeoutError(f"a message that was sent to {answers} did not arrive within {_SECONDS:g} s")


def _observed(name: str, answer: Mapping[str, Any]) -> ObservedQueue:
    numbers = {each: value for each, value in answer.items() if isinstance(value, int)}
    return ObservedQueue(
        name,
        numbers.get("size"),
        numbers.get("consumerCount"),
        in_flight=numbers.get("inflightCount"),
        enqueued=numbers.get("enqueueCount"),
        dequeued=numbers.get("dequeueCount"),
    )
