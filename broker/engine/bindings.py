"""Subscriptions to topics: the queue of each is made, changed and removed."""

from __future__ import annotations

from redelivery.broker.engine import moves
from redelivery.broker.engine.entries import order_of
from redelivery.broker.engine.queues import Binding, QueueState
from redelivery.broker.engine.state import EngineState, check_changeable
from redelivery.broker.engine.subscriptions import Subscription
from redelivery.broker.store import paging
from redelivery.model.destinations import Topic
from redelivery.model.errors import IllegalStateError, InvalidDestinationError
from redelivery.model.selectors.selector import Selector


def subscribe(state: EngineState, subscription: Subscription, selector: Selector | None) -> None:
    """Let a topic's consumer consume a queue that is bound to the topic: that of the name, or one of its own."""
    topic, named = subscription.destination, subscription.named
    assert isinstance(topic, Topic), "or it consumes a queue"
    no_local = subscription.origin if subscription.no_local else None
    binding = Binding(topic, no_local, selector, named, subscription.client_id)
    queue = None
    if named is not None:
        if named.durable and not named.shared and subscription.client_id is None:
            raise IllegalStateError(f"{named} needs a client id, which this connection has not")
        queue = state.named(named.name, subscription.client_id, durable=named.durable)
        if queue is not None and queue.binding != binding:
            check_changeable(queue, binding)
            remove_queue(state, queue, f"{named} was changed")
            queue = None
        if queue is not None and queue.consumers and not named.shared:
            raise IllegalStateError(f"{named} is in use: it has a consumer already")
    queue = queue or state.bind(binding)
    if not binding.durable:
        _limit(state, queue, subscription)
    state.attach(queue, subscription)


def _limit(state: EngineState, queue: QueueState, subscription: Subscription) -> None:
    """Limit what may wait for a subscriber, where the broker's rules do."""
    found = state.rules.slow_subscribers_of(subscription.destination)
    if found is None:
        return
    limit, eviction = found
    most, own = limit.of(subscription.rated_prefetch), subscription.pending_limit
    if own > 0:
        most = own if most is None else min(own, most)
    if most is not None:
        queue.slow = most, eviction


def unused(state: EngineState, name: str, client_id: str | None) -> QueueState:
    """The queue of a durable subscription that can be removed. Raises InvalidDestinationError, IllegalStateError."""
    queue = state.named(name, client_id, durable=True)
    if queue is None:
        whose = "" if client_id is None else f" of the client id {client_id!r}"
        raise InvalidDestinationError(f"there is no durable subscription {name!r}{whose}")
    if queue.consumers:
        raise IllegalStateError(f"the durable subscription {name!r} is in use: close its consumers first")
    if any(entry.backlog is None for entry in queue.entries.values()):
        raise IllegalStateError(
            f"the durable subscription {name!r} has messages that a transaction has acknowledged and not committed"
        )
    return queue


def unsubscribe(state: EngineState, name: str, client_id: str | None) -> None:
    """Remove a durable subscription with what it holds. Raises as `unused`."""
    remove_queue(state, unused(state, name, client_id), f"the durable subscription {name!r} was removed")


def remove_queue(state: EngineState, queue: QueueState, reason: str) -> None:
    """Drop what waits in a queue, and from now on what is released to it; it is gone when it holds nothing."""
    queue.removed = reason
    for entry in sorted((entry for entry in queue.entries.values() if entry.backlog is not None), key=order_of):
        entry.leave()
        moves.drop(state, entry, reason)
    paging.clear(state, queue)
    if state.journal is not None and queue.binding is not None and queue.binding.durable:
        state.journal.unbound(queue.name)
    state.tidy(queue.name)
