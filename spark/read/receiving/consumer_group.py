"""Several consumers of one session as one: each call returns what any of them has."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from redelivery.client.ledger import Received
from redelivery.client.operations.receive import collect
from redelivery.client.shells.consumer import check_batch
from redelivery.client.sync.consumer import Consumer
from redelivery.client.sync.made import Message
from redelivery.client.sync.session import Session
from redelivery.policies.redelivery import RedeliveryPolicy
from redelivery.spark.options.query import SourceOptions
from redelivery.transports.seam import Flow


class ConsumerGroup:
    """The consumers, at least one, of a session of mode CLIENT or TRANSACTED. JMS has only listeners for that.

    Each call begins with another consumer, so that a full queue does not keep the others waiting; within a call the
    messages of one consumer keep their order. One that the broker ends, ends the receiving: nothing is left out in
    silence.
    """

    def __init__(self, consumers: Sequence[Consumer]) -> None:
        self._consumers = list(consumers)

    @property
    def redelivery_policy(self) -> RedeliveryPolicy:
        """That of the first: the connection's, for all."""
        return self._consumers[0].redelivery_policy

    def receive(self, timeout: float) -> Message | None:
        """As `Consumer.receive`."""
        found = self.receive_many(1, timeout)
        return found[0] if found else None

    def receive_many(self, max_messages: int, timeout: float) -> list[Message]:
        """As `Consumer.receive_many`."""
        deadline = check_batch(max_messages, timeout)
        first, *others = self._consumers
        self._consumers = [*others, first]
        return first._taking("receive_many", partial(self._collect, first, max_messages, deadline), deadline, [])

    def _collect(self, first: Consumer, most: int, deadline: float, hand: list[Received]) -> Flow[list[Message]]:
        order = [first, *self._consumers[:-1]]
        for each in order:
            yield from each._get_ready()
        yield from collect(first._core, [each._state for each in order], most, deadline, hand, hold=True)
        return [Message.received(each, each.redeliveries, first._receipt) for each in hand]


def consumers_of(session: Session, options: SourceOptions) -> list[Consumer]:
    """A consumer of each destination; of a topic one of its subscription, which is made where it is not there.

    Raises:
        JMSError: the broker refuses one of them.
    """
    selector, named = options.selector, options.subscription_name
    found: list[Consumer] = []
    for place in options.destinations:
        if named is None or place.scheme != "topic":
            found.append(session.consumer(place, selector=selector))
        elif named.shared:
            found.append(session.shared_durable_consumer(place, named.name, selector=selector))
        else:
            found.append(session.durable_consumer(place, named.name, selector=selector))
    return found
