"""RabbitMQ's management: queues of 3.10, 4.0 and 4.3, and a look into them by ``get`` with `ack_requeue_true`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import islice
from typing import Any, Final

from redelivery.model.capabilities import ConnectionMetaData
from redelivery.model.destinations import Queue
from redelivery.model.errors import InvalidDestinationError, UnsupportedError
from redelivery.model.messages import Message
from redelivery.operate.management.as_amqp import as_amqp, is_amqp
from redelivery.operate.management.as_stomp import as_stomp
from redelivery.operate.management.interface import MOST, Cost, ManagedQueue
from redelivery.transports.management.address import ManagementAddress
from redelivery.transports.management.rabbitmq import Json, RabbitApi

_QUORUM: Final = "quorum"
_FREE_SINCE: Final = (4, 3)  # a look at a quorum queue counts as acquired, and no more as delivered
_LIMITED_SINCE: Final = (4, 0)  # a quorum queue that says nothing has a limit
_DEFAULT_LIMIT: Final = 20
_LIMIT: Final = "delivery-limit"
_EXCHANGE: Final = "dead-letter-exchange"


class RabbitManagement:
    """See `redelivery.operate.management.interface.Management`; ``address`` is of its HTTP API.

    ``meta``: of the connection, as whose protocol shows them messages are read.
    """

    def __init__(self, address: ManagementAddress, meta: ConnectionMetaData) -> None:
        self.api = RabbitApi(address)
        self._amqp = meta.protocol.upper().startswith("AMQP")

    @cached_property
    def _overview(self) -> Json:
        return self.api.overview()

    @property
    def version(self) -> tuple[int, ...]:
        """``(4, 0, 5)``."""
        return tuple(map(int, re.findall(r"\d+", str(self._overview["rabbitmq_version"]))[:3]))

    @property
    def name(self) -> str:
        """See `Management`."""
        return f"RabbitMQ {self._overview['rabbitmq_version']}"

    def queues(self) -> Iterator[ManagedQueue]:
        """See `Management`."""
        return (managed(each) for each in self.api.queues() if not each.get("exclusive"))

    def queue(self, name: str) -> ManagedQueue | None:
        """See `Management`."""
        found = self.api.queue(name)
        return None if found is None else managed(found)

    def cost(self, queue: ManagedQueue) -> Cost:
        """See `Management`."""
        if queue.kind == "stream":
            raise UnsupportedError(
                f"queue://{queue.name} is a stream, and a stream can only be consumed, not looked into"
            )
        if queue.kind != _QUORUM:
            return Cost(says="what is looked at is marked as redelivered")
        limit = self.delivery_limit(queue)
        if self.version >= _FREE_SINCE:
            return Cost()
        says = "each look at a quorum queue of this version counts as a delivery of every message that it shows"
        if limit is None:  # so that no number of looks takes a message away
            return Cost(says=says)
        settings = {**queue.settings, **arguments_of(queue)}
        fate = (
            "dead-letters it"
            if settings.get(_EXCHANGE) is not None
            else "deletes it, as there is no dead-letter exchange"
        )
        return Cost(counts=True, says=f"{says}, and delivery {limit + 1} that is released {fate}")

    def delivery_limit(self, queue: ManagedQueue) -> int | None:
        """The limit of a quorum queue: the lower of its argument and policies, or this version's own; None: none."""
        asked = (arguments_of(queue).get(_LIMIT), queue.settings.get(_LIMIT))
        given = [each for each in asked if isinstance(each, int) and not isinstance(each, bool)]
        if given:
            if self.version < _LIMITED_SINCE or min(given) >= 0:
                return min(given)
            return max(given) if max(given) >= 0 else None  # below 0 is no limit, and gives way to any other
        return _DEFAULT_LIMIT if self.version >= _LIMITED_SINCE else None

    def browse(self, queue: str, limit: int | None = None) -> Iterator[Message]:
        """See `Management`."""
        found = self.queue(queue)
        if found is None:
            raise InvalidDestinationError(
                f"queue://{queue}: there is no such queue in the virtual host {self.api.vhost}"
            )
        self.cost(found)
        number = MOST if limit is None else min(limit, MOST)
        if found.kind == _QUORUM:  # of what was released before, a part would go behind the rest
            number = MOST
            if (found.ready or 0) > MOST:
                raise UnsupportedError(
                    f"queue://{queue} has {found.ready} messages: {MOST} can be looked at, and a look at a part of a "
                    "quorum queue can change their order"
                )
        for each in islice(self.api.get(queue, number), limit):
            yield self._read(each, Queue(queue))

    def _read(self, shown: Json, queue: Queue) -> Message:
        if self._amqp or is_amqp(shown):
            return as_amqp(shown, queue, self.version)
        return as_stomp(shown, queue)


def managed(found: Json) -> ManagedQueue:
    """The API's facts about a queue."""
    policies, counts = found.get("effective_policy_definition"), found.get("message_stats") or {}
    return ManagedQueue(
        name=str(found["name"]),
        kind=found.get("type"),
        durable=found.get("durable"),
        auto_delete=found.get("auto_delete"),
        exclusive=found.get("exclusive"),
        arguments=found.get("arguments") or {},
        policy=found.get("policy") or None,
        settings=policies if isinstance(policies, dict) else {},
        ready=found.get("messages_ready"),
        unacknowledged=found.get("messages_unacknowledged"),
        consumers=found.get("consumers"),
        enqueued=counts.get("publish"),
        dequeued=_left(counts),
    )


def _left(counts: Mapping[str, Any]) -> int | None:
    """The messages that consumers have taken for good; None where nothing was counted, as of AMQP 1.0 on RabbitMQ 4."""
    found = [counts[name] for name in ("ack", "deliver_no_ack", "get_no_ack") if name in counts]
    return sum(found) if found else None


def arguments_of(queue: ManagedQueue) -> Mapping[str, Any]:
    """A queue's arguments by the names that policies have: without ``x-``."""
    return {name.removeprefix("x-"): value for name, value in queue.arguments.items()}
