"""RabbitMQ 4's queues, by its AMQP management of paths and methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from redelivery.model.destinations import Queue
from redelivery.model.errors import InvalidDestinationError
from redelivery.transports.amqp.connection.protocol import AmqpProtocol
from redelivery.transports.amqp.links.management import ManagementNode, queue_path
from redelivery.transports.flows import Flow, Waiter
from redelivery.transports.management.answers import ManagementAnswer
from redelivery.transports.management.declaring import Declaration
from redelivery.transports.management.x_arguments import ArgumentQueues, arguments_of


class ResourceQueues(ArgumentQueues):
    """See `Queues`."""

    def __init__(self, protocol: AmqpProtocol, waiter: Waiter) -> None:
        super().__init__(limited=True)
        self._protocol = protocol
        self._waiter = waiter

    def exists(self, queue: Queue) -> Flow[bool]:
        """See `Queues.exists`."""
        return (yield from self._look_up(queue)) is not None

    def describe(self, queue: Queue) -> Flow[Mapping[str, Any] | None]:
        """See `Queues.describe`: ``type``, ``durable``, ``arguments``, ``message_count``, ``consumer_count``."""
        answer = yield from self._look_up(queue)
        return answer.body if answer is not None and isinstance(answer.body, Mapping) else None

    def make(self, wanted: Declaration) -> Flow[bool]:
        """See `Queues.make`."""
        body = {"durable": True, "arguments": arguments_of(wanted)}
        answer = yield from self._ask("PUT", wanted.queue, body)
        answer.check(f"declaring {wanted.queue}", InvalidDestinationError)
        return answer.status == 201

    def remove(self, queue: Queue) -> Flow[int | None]:
        """See `Queues.remove`."""
        if (yield from self._look_up(queue)) is None:  # the broker would not say so
            raise InvalidDestinationError(f"deleting {queue}: there is no such queue")
        answer = yield from self._ask("DELETE", queue, None)
        answer.check(f"deleting {queue}", InvalidDestinationError)
        held = answer.body.get("message_count") if isinstance(answer.body, Mapping) else None
        return int(held or 0)

    def _look_up(self, queue: Queue) -> Flow[ManagementAnswer | None]:
        """None: it is not there."""
        answer = yield from self._ask("GET", queue, None)
        if answer.status == 404:
            return None
        answer.check(f"looking for {queue}", InvalidDestinationError)
        return answer

    def _ask(self, method: str, queue: Queue, body: Mapping[str, Any] | None) -> Flow[ManagementAnswer]:
        nodes = cast(ManagementNode, self._protocol.nodes)
        return (yield from nodes.answer(method, queue_path(queue.name), body, self._protocol.writing, self._waiter))
