"""Asks ActiveMQ Classic about its queues, where it has the statisticsBrokerPlugin."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from redelivery.client.entry.sync import Connection
from redelivery.model.destinations import Queue, Topic
from redelivery.model.errors import RequestTimeoutError
from redelivery.operate.doctor.observed import ObservedQueue

_BROKER: Final = Topic(
    "ActiveMQ.Statistics.Broker"
)  # the plug-in answers for a topic too, and without it nothing stays
_QUEUE: Final = "ActiveMQ.Statistics.Destination."
_SECONDS: Final = 2.0  # for an answer; there is none without the plug-in, and none about a queue that does not exist
_AT_ONCE: Final = 8


def has_statistics(connection: Connection) -> bool:
    """Check whether it answers. Only over AMQP is its answer, a map, whole.

    Raises:
        JMSError: the broker refuses to be asked.
    """
    meta = connection.metadata
    if connection.dialect != "activemq" or meta.provider_name == "redelivery" or not meta.protocol.startswith("AMQP"):
        return False
    try:
        return isinstance(connection.request(_BROKER, "", _SECONDS, persistent=False).body, dict)
    except RequestTimeoutError:
        return False


def classic_queues(connection: Connection, names: Iterable[str]) -> dict[str, ObservedQueue]:
    """The queues among these names that exist.

    Raises:
        JMSError: the broker refuses to be asked.
    """
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = list(pool.map(lambda name: _asked(connection, name), names))
    return {each.name: each for each in answers if each is not None}


def _asked(connection: Connection, name: str) -> ObservedQueue | None:
    try:
        answer = connection.request(Queue(_QUEUE + name), "", _SECONDS, persistent=False).body
    except RequestTimeoutError:
        return None
    if not isinstance(answer, dict):
        return None
    numbers = {each: value for each, value in answer.items() if isinstance(value, int)}
    return ObservedQueue(
        name,
        numbers.get("size"),
        numbers.get("consumerCount"),
        in_flight=numbers.get("inflightCount"),
        enqueued=numbers.get("enqueueCount"),
        dequeued=numbers.get("dequeueCount"),
    )
