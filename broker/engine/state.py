"""The state of a broker (`redelivery.broker.engine.moves` changes it), and what the engine refuses before that."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from redelivery.broker.engine.config import BrokerConfig
from redelivery.broker.engine.deadlines import Deadlines
from redelivery.broker.engine.entries import Entry
from redelivery.broker.engine.observer import EngineObserver
from redelivery.broker.engine.queues import SUBSCRIPTION, Binding, QueueState
from redelivery.broker.engine.rules.chosen import rules_of
from redelivery.broker.engine.rules.rules import EngineRules
from redelivery.broker.engine.rules.slow import SlowChecks
from redelivery.broker.engine.stored import StoredMessage
from redelivery.broker.engine.subscriptions import Dispatch, Subscription
from redelivery.broker.engine.transactions import Transaction
from redelivery.broker.store.journal import Journal
from redelivery.model.destinations import Destination, Queue
from redelivery.model.errors import (
    IllegalStateError,
    InvalidDestinationError,
    ResourceAllocationError,
    UnsupportedError,
)
from redelivery.policies.destinations.patterns import matches

TEMPORARY: Final = ("temp-queue://", "temp-topic://")  # the broker's own names; they exist for a while


@dataclass(slots=True, eq=False, repr=False)
class EngineState:
    """The queues, consumers and deadlines of one broker.

    Attributes:
        queues: by name. One that holds nothing and has no consumer is removed: names may be made by the thousand.
        bound: of the queues, those that are subscriptions to topics.
        subscriptions: the consumers of queues, also of those that are made later.
        memory_used: bytes of the messages, as `BrokerConfig.memory_limit` counts them.
        temporary: the names of the temporary destinations that exist.
        slow: the checks for slow consumers.
        rules: what the broker does by itself with what is not acknowledged.
        ready: queues in which something may be dispatched now.
        touched: subscriptions that were given something and whose outbox has not been woken since.
        observer: is notified of what happens.
        journal: who keeps it beyond this process.
        given: with a journal, dispatches that their consumers may see when it has made that step durable.
        pages: how many this call may still read from the journal; None: any number.
        searched: queues of which more is needed in memory than that, for a later call, and `starved`: consumers.
        searched_at: when that was noted.
    """

    config: BrokerConfig
    observer: EngineObserver | None = None
    journal: Journal | None = None
    given: deque[tuple[int, Dispatch]] = field(default_factory=deque)
    queues: dict[str, QueueState] = field(default_factory=dict)
    bound: dict[str, QueueState] = field(default_factory=dict)
    subscriptions: list[Subscription] = field(default_factory=list)
    memory_used: int = 0
    rules: EngineRules = field(init=False)
    deadlines: Deadlines = field(default_factory=Deadlines)
    slow: SlowChecks = field(default_factory=SlowChecks)
    temporary: set[str] = field(default_factory=set)
    ready: dict[QueueState, None] = field(default_factory=dict)
    touched: dict[Subscription, None] = field(default_factory=dict)
    pages: int | None = None
    searched: dict[QueueState, None] = field(default_factory=dict)
    starved: dict[Subscription, None] = field(default_factory=dict)
    searched_at: int = 0
    _order: int = 0

    def __post_init__(self) -> None:
        self.rules = rules_of(self.config)

    def exists(self, destination: Destination) -> bool:
        """Check whether messages can be sent there; only a temporary destination may have been removed."""
        return not destination.name.startswith(TEMPORARY) or destination.name in self.temporary

    def parts(self, message: StoredMessage) -> tuple[StoredMessage, ...]:
        """The messages to the parts of a composite destination, or the message itself. Raises as `check_exists`."""
        parts = message.parts()
        for part in parts:
            self.check_exists(part.destination)
        return parts

    def check_exists(self, destination: Destination) -> None:
        """Raise InvalidDestinationError where it is a temporary destination that was removed."""
        if not self.exists(destination):
            raise InvalidDestinationError(
                f"{destination.name} does not exist: the connection that made it has removed it or has ended"
            )

    def check_memory(self, messages: Sequence[StoredMessage], freed: int = 0) -> None:
        """Raise ResourceAllocationError where the messages do not fit, when ``freed`` bytes are free again."""
        if self.journal is not None and any(message.persistent for message in messages):
            self.journal.check_room(sum(message.size for message in messages))
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
        """An entry behind all others; ``queue`` is the name of its queue."""
        self.memory_used += message.size
        return Entry(message, self.next_number(), queue)

    def next_number(self) -> int:
        """A number above all before, after a restart too."""
        self._order += 1
        return self._order

    @property
    def last_number(self) -> int:
        """The last of them."""
        return self._order

    def continue_after(self, number: int) -> None:
        """Number higher than that from now on."""
        self._order = max(self._order, number)

    def keeps(self, name: str, message: StoredMessage) -> bool:
        """Check whether the journal is to keep a message of the queue of that name."""
        return self.journal is not None and message.persistent and not name.startswith(TEMPORARY)

    def take_page(self) -> bool:
        """Take one of the pages that this call may still read from the journal; False: none is left."""
        if self.pages is not None:
            if not self.pages:
                return False
            self.pages -= 1
        return True

    def starve(self, subscription: Subscription, now: int) -> None:
        """Let a later call read more for a consumer."""
        self.starved[subscription] = None
        self.searched_at = now

    def next_deadline(self) -> int | None:
        """The time when something is to be done without a client, None for never."""
        found = (each for each in (self.deadlines.next(), self.slow.next()) if each is not None)
        due = min(found, default=None)
        if not (self.searched or self.starved):
            return due
        return self.searched_at if due is None else min(due, self.searched_at)

    def queue(self, name: str) -> QueueState:
        """The queue of that name, which is made on first use."""
        queue = self.queues.get(name)
        if queue is None:
            queue = self.queues[name] = QueueState(name, Queue(name))
            queue.front = self._order
            for subscription in self.subscriptions:
                self.attach_matching(queue, subscription)
        return queue

    def resolved(self, name: str) -> str:
        """The name of the queue that a consumer of that name would consume."""
        return self.rules.queue_of(name, self.queues.keys())

    def named(self, name: str, client_id: str | None, *, durable: bool) -> QueueState | None:
        """The queue of the subscription of that name, if there is one."""
        for queue in self.bound.values():
            binding = queue.binding
            if binding is None or binding.named is None or queue.removed is not None:
                continue
            if (binding.named.name, binding.client_id, binding.named.durable) == (name, client_id, durable):
                return queue
        return None

    def bind(self, binding: Binding, name: str | None = None) -> QueueState:
        """A new queue that gets what is sent to a topic from now on; ``name``: the journal has it already."""
        if name is None:
            name = f"{SUBSCRIPTION}{self.next_number()}"
            if self.journal is not None and binding.durable:
                self.journal.bound(name, binding)
        queue = self.queues[name] = self.bound[name] = QueueState(name, binding.topic, binding)
        return queue

    def attach_matching(self, queue: QueueState, subscription: Subscription) -> None:
        """Let the subscription consume the queue if that is what it asked for."""
        wanted = subscription.destination
        if queue.binding is not None or (wanted.is_pattern and queue.name.startswith(TEMPORARY)):
            return
        if matches(wanted.name, queue.name):
            self.attach(queue, subscription)

    def attach_named(self, name: str, subscription: Subscription) -> None:
        """Make the queue that a consumer of that name consumes; let it consume that, if another name finds it."""
        queue = self.queue(self.resolved(name))
        if queue.name != name:
            self.attach(queue, subscription)

    def attach(self, queue: QueueState, subscription: Subscription) -> None:
        """Let the subscription consume the queue."""
        queue.attach(subscription)
        subscription.queues.append(queue.name)
        self.slow.watch(queue, self.rules.slow_rule(queue.destination))

    def detach(self, subscription: Subscription) -> list[str]:
        """Let the subscription consume nothing any more; returns its queues, which may have to be tidied."""
        if subscription in self.subscriptions:  # no browser is, nor a topic's consumer
            self.subscriptions.remove(subscription)
        names, subscription.queues = subscription.queues, []
        subscription.candidates.clear()
        for name in names:
            self.queues[name].detach(subscription)
        return names

    def forget(self, entry: Entry) -> None:
        """Remove an entry for good."""
        self.memory_used -= entry.message.size
        if self.journal is not None and entry.stored:
            self.journal.removed(entry)
        if entry.queue is not None:
            del self.queues[entry.queue].entries[entry.order]
            self.tidy(entry.queue)

    def tidy(self, name: str) -> None:
        """Remove a queue that holds nothing and that nobody consumes."""
        queue = self.queues.get(name)
        if queue is not None and not len(queue) and not queue.consumers and not queue.stays:
            del self.queues[name]
            self.bound.pop(name, None)


def check_no_local(subscription: Subscription) -> None:
    """Raise UnsupportedError where a queue is asked for no_local."""
    if subscription.no_local and isinstance(subscription.destination, Queue):
        raise UnsupportedError(
            f"no_local on {subscription.destination}: the embedded broker supports it on topics only"
        )


def check_single(destination: Destination) -> None:
    """Raise UnsupportedError for a composite destination: a queue of that name would never get a message."""
    if "," in destination.name and not destination.name.startswith(TEMPORARY):
        raise UnsupportedError(
            f"{destination} is composite: the embedded broker sends to all of its parts, and consumes or browses one"
            " destination at a time"
        )


def check_browsable(destination: Destination) -> Queue:
    """The queue to browse. Raises InvalidDestinationError for a topic, UnsupportedError for several."""
    check_single(destination)
    if not isinstance(destination, Queue):
        raise InvalidDestinationError(f"{destination}: a topic holds no messages; browse a queue")
    if destination.is_pattern:
        raise UnsupportedError(f"{destination} is a pattern: the embedded broker browses one queue at a time")
    return destination


def check_held(dispatches: Sequence[Dispatch], now: int) -> None:
    """Note that their consumers have settled something.

    Raises:
        IllegalStateError: one is not in flight or is enlisted in a transaction, or is named twice.
    """
    if len(set(dispatches)) != len(dispatches):
        raise IllegalStateError("the same delivery is named twice")
    for dispatch in dispatches:
        if dispatch.subscription.in_flight.get(dispatch.number) is not dispatch:
            raise IllegalStateError(f"message {dispatch.message.message_id} is not (or no longer) held unacknowledged")
        if dispatch.enlisted:
            raise IllegalStateError(f"message {dispatch.message.message_id} is acknowledged in an open transaction")
    for dispatch in dispatches:
        dispatch.subscription.settled += 1
        dispatch.subscription.settled_at = now


def check_open(transaction: Transaction) -> None:
    """Raise IllegalStateError where it was committed or rolled back."""
    if transaction.ended:
        raise IllegalStateError("the transaction has ended: it was committed or rolled back")


def check_changeable(queue: QueueState, binding: Binding) -> None:
    """Raise IllegalStateError where a named subscription cannot become another one (JMS 3.1 §8.3.3, §8.3.4)."""
    before, now = queue.binding, binding.named
    if before is None or before.named is None or now is None:
        return
    if before.named.shared != now.shared:
        raise IllegalStateError(f"{now} cannot be made: there is {before.named}; unsubscribe it, or use another name")
    if queue.consumers:
        raise IllegalStateError(
            f"{now} has consumers, with another topic, selector or no_local: close them first, or use another name"
        )
