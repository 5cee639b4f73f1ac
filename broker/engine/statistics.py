"""The embedded broker's numbers of its queues: for its own process, and as the answer to a request of any client.

A message to the queue `ASKED` with a ``reply_to`` is not kept: its answer is a text message with a JSON list, an object
for each queue that is neither temporary nor a topic's subscription.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Final

from redelivery.broker.engine.queues import QueueState
from redelivery.broker.engine.state import EngineState
from redelivery.broker.engine.stored import StoredMessage, size_of

ASKED: Final = "redelivery.statistics"


@dataclass(frozen=True, slots=True)
class QueueStatistics:
    """The numbers of one queue.

    ``messages``: all that it holds; of these ``in_flight`` are with consumers, and ``retries`` wait for their next
    delivery. ``enqueued`` and ``dequeued``: since the queue was made, or the broker started with it.
    """

    name: str
    messages: int
    consumers: int
    in_flight: int
    retries: int
    enqueued: int
    dequeued: int


def statistics(queues: Mapping[str, QueueState]) -> Iterator[QueueStatistics]:
    """The numbers of all queues that are neither temporary nor a topic's."""
    for name, queue in queues.items():
        if queue.binding is None and "://" not in name:
            held = [each.entry.queue for consumer in queue.consumers for each in consumer.in_flight.values()]
            yield QueueStatistics(
                name,
                len(queue),
                len(queue.consumers),
                held.count(name),
                len(queue.parked),
                queue.enqueued,
                queue.enqueued - len(queue),
            )


def answer(state: EngineState, message: StoredMessage, now: int) -> StoredMessage | None:
    """The answer to a message that asks for the numbers; None: it is another message."""
    if message.destination.name != ASKED or message.reply_to is None:
        return None
    body = json.dumps([asdict(each) for each in statistics(state.queues)])
    return StoredMessage(
        f"{message.message_id}-answer",
        message.reply_to,
        body,
        timestamp=now,
        persistent=False,
        correlation_id=message.correlation_id or message.message_id,
        size=size_of(body, {}),
    )
