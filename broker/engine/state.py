"""What a broker holds (`redelivery.broker.engine.moves` changes it), and what the engine refuses before that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from redelivery.broker.engine.config import BrokerConfig
from redelivery.broker.engine.dead_letters import DeadLetters
from redelivery.broker.engine.deadlines import Deadlines
from redelivery.broker.engine.entries import Entry
from redelivery.broker.engine.observer import EngineObserver
from redelivery.broker.engine.queues import QueueState
from redelivery.broker.engine.stored import StoredMessage
from redelivery.broker.engine.subscriptions import Dispatch, Subscription
from redelivery.broker.engine.transactions import Transaction
from redelivery.model.destinations import Destination, Queue
from redelivery.model.errors import (
    IllegalStateError,
    InvalidDestinationError,
    ResourceAllocationError,
    UnsupportedError,
)
from redelivery.policies.destinations.map import matches

TEMPORARY: Final = ("temp-queue://", "temp-topic://")  # the broker's own names; they exist for a while


class EngineState:
    """The queues, consumers and deadlines of one broker.

    Attributes:
        queues: by name. One that holds nothing and has no consumer is removed: names may be made by the thousand.
        memory_used: bytes of the messages, as `BrokerConfig.memory_limit` counts them.
        temporary: the names of the temporary destinations that exist.
        ready: queues in which something may be dispatched now.
        touched: subscriptions that were given something and whose outbox has not been woken since.
        observer: who is told what happens.
    """

    __slots__ = (
        "_order",
        "config",
        "dead_letters",
        "deadlines",
        "memory_used",
        "observer",
        "queues",
        "ready",
        "subscriptions",
        "temporary",
        "touched",
    )

    def __init__(self, config: BrokerConfig, observer: EngineObserver | None = None) -> None:
        self.config = config
        self.observer = observer
        self.queues: dict[str, QueueState] = {}
        self.subscriptions: list[Subscription] = []
        self.memory_used = 0
        self.dead_letters = DeadLetters(config)
        self.deadlines = Deadlines()
        self.temporary: set[str] = set()
        self.ready: dict[QueueState, None] = {}
        self.touched: dict[Subscription, None] = {}
        self._order = 0

    def exists(self, destination: Destination) -> bool:
        """Whether messages can be sent there; only a temporary destination may have been removed."""
        return not destination.name.startswith(TEMPORARY) or destination.name in self.temporary

    def check_exists(self, destination: Destination) -> None:
        """Raise InvalidDestinationError where it is a temporary destination that was removed."""
        if not self.exists(destination):
            raise InvalidDestinationError(
                f"{destination.name} does not exist: the connection that made it has removed it or has ended"
            )

    def check_memory(self, messages: Sequence[StoredMessage], freed: int = 0) -> None:
        """Raise ResourceAllocationError where the messages do not fit, when ``freed`` bytes are free again."""
        limit = self.config.memory_limit
        if limit is None or not messages:
            return
        needed = sum(message.size for message in messages)
        if self.memory_used - freed + needed > limit:
            raise ResourceAllocationError(
                f"the broker's memory limit of {limit} bytes is reached: {self.memory_used} are in use, {needed} more"
                " were sent; consume messages or raise BrokerConfig.memory_limit"
            )

    def new_entry(self, message: StoredMessage, queue: str | None) -> Entry:
        """An entry behind all others."""
        self._order += 1
        self.memory_used += message.size
        return Entry(message, self._order, queue)

    def queue(self, name: str) -> QueueState:
        """The queue of that name, which is made on first use."""
        queue = self.queues.get(name)
        if queue is None:
            queue = self.queues[name] = QueueState(Queue(name))
            for subscription in self.subscriptions:
                self.attach(queue, subscription)
        return queue

    def attach(self, queue: QueueState, subscription: Subscription) -> None:
        """Let the subscription consume the queue if that is what it asked for."""
        wanted = subscription.destination
        if wanted.is_pattern and queue.destination.name.startswith(TEMPORARY):
            return
        if isinstance(wanted, Queue) and matches(wanted.name, queue.destination.name):
            queue.consumers.append(subscription)
            subscription.queues.append(queue.destination.name)

    def detach(self, subscription: Subscription) -> list[str]:
        """Let the subscription consume nothing any more; returns its queues, which may have to be tidied."""
        if subscription in self.subscriptions:  # no browser is
            self.subscriptions.remove(subscription)
        names, subscription.queues = subscription.queues, []
        for name in names:
            self.queues[name].detach(subscription)
        return names

    def forget(self, entry: Entry) -> None:
        """Remove an entry for good."""
        self.memory_used -= entry.message.size
        if entry.queue is not None:
            del self.queues[entry.queue].entries[entry.order]
            self.tidy(entry.queue)

    def tidy(self, name: str) -> None:
        """Remove a queue that holds nothing and that nobody consumes."""
        queue = self.queues.get(name)
        if queue is not None and not queue.entries and not queue.consumers:
            del self.queues[name]


def check_selector(selector: str | None) -> None:
    """Raise UnsupportedError where there is one."""
    if selector is not None:
        raise UnsupportedError(
            f"selector {selector!r}: the embedded broker does not evaluate selectors; choose among the messages"
            " in the consumer, or use a real broker"
        )


def check_no_local(subscription: Subscription) -> None:
    """Raise UnsupportedError where a queue is asked for no_local."""
    if subscription.no_local and isinstance(subscription.destination, Queue):
        raise UnsupportedError(
            f"no_local on {subscription.destination}: the embedded broker supports it on topics only"
        )


def check_browsable(destination: Destination) -> Queue:
    """The queue to browse. Raises InvalidDestinationError for a topic, UnsupportedError for a pattern."""
    if not isinstance(destination, Queue):
        raise InvalidDestinationError(f"{destination}: a topic holds no messages; browse a queue")
    if destination.is_pattern:
        raise UnsupportedError(f"{destination} is a pattern: the embedded broker browses one queue at a time")
    return destination


def check_held(dispatches: Sequence[Dispatch]) -> None:
    """Raise IllegalStateError where one is not in flight or is enlisted in a transaction, or is named twice."""
    if len(set(dispatches)) != len(dispatches):
        raise IllegalStateError("the same delivery is named twice")
    for dispatch in dispatches:
        if dispatch.subscription.in_flight.get(dispatch.number) is not dispatch:
            raise IllegalStateError(f"message {dispatch.message.message_id} is not (or no longer) held unacknowledged")
        if dispatch.enlisted:
            raise IllegalStateError(f"message {dispatch.message.message_id} is acknowledged in an open transaction")


def check_open(transaction: Transaction) -> None:
    """Raise IllegalStateError where it was committed or rolled back."""
    if transaction.ended:
        raise IllegalStateError("the transaction has ended: it was committed or rolled back")
