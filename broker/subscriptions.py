"""Shows an embedded broker's subscriptions that have a name."""

from __future__ import annotations

from dataclasses import dataclass

from redelivery.broker.engine.engine import Engine
from redelivery.model.destinations import Topic


@dataclass(frozen=True, slots=True)
class NamedSubscription:
    """A subscription to a topic that has a name (JMS 3.1 §8.3), as it is at one moment.

    Attributes:
        topic: what it is to.
        name: its name.
        client_id: of the connection that has made it; None: it has the name for all of them.
        durable: it keeps messages while nobody consumes it.
        shared: it may have several consumers.
        depth: how many messages it holds: waiting or unacknowledged.
        consumers: how many it has.
    """

    topic: Topic
    name: str
    client_id: str | None
    durable: bool
    shared: bool
    depth: int
    consumers: int


def named_subscriptions(engine: Engine) -> list[NamedSubscription]:
    """All of them, by name and client id."""
    found = [
        NamedSubscription(
            binding.topic,
            binding.named.name,
            binding.client_id,
            binding.named.durable,
            binding.named.shared,
            len(queue),
            len(queue.consumers),
        )
        for queue in engine.queues.values()
        if (binding := queue.binding) is not None and binding.named is not None
    ]
    return sorted(found, key=lambda each: (each.name, each.client_id or "", each.durable))
