"""The abilities of a broker over a protocol: data that the sessions read, instead of a class per broker."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Facts about one (protocol, broker) pair; each is settled on the real broker (docs/brokers).

    ``transactions``: sends and acknowledgements can be one unit of work.
    ``native_poison``: a poisoned message can be handed to the broker, which is known to have a dead-letter queue.
    ``poison_by_broker``: it can be handed one at all, which it dead-letters if it is set up to.
    ``poison_of_topics``: so it does with what a subscription hands it that is not durable, instead of dropping it.
    ``poison_carries_cause``: the broker's own dead letter says why.
    ``exact_counts``: the wire carries a delivery count (otherwise only a redelivered flag: base 1 or 2).
    ``counts_prefetched``: a lost connection raises the count of messages that no application has seen.
    ``selectors``, ``browse``, ``delayed_delivery``, ``no_local``: the broker does them.
    ``most_wildcards``: of `%` in one LIKE of a selector: beyond, the broker evaluates it for hours; 0: no limit.
    ``queue_patterns``: a consumer of a pattern takes from every queue that matches.
    ``composite_destinations``: a message that is sent to ``a,topic://b`` goes to each of them.
    ``addresses``: what is sent goes to an address, whose queues may have other names; ``address::queue`` names one.
    ``exclusive_consumers``: a queue's consumer may be the only one that gets messages while it is there.
    ``temporaries_of_session``: it may be that a temporary destination is consumed by the session alone that made it.
    ``message_ids``: the broker says the id of a sent message.
    ``duplicate_id_property``: the property by which the broker drops a second message of the same value that is sent to
        the same destination; None: it drops none.
    ``hangs_up``: after which messages the broker closes the connection to a consumer.
    ``body_kinds``: the kinds of body that arrive as they were sent.
    ``subscriptions``: the kinds of named subscriptions to topics that it has, of ``durable``, ``shared`` and
        ``shared durable``; ``no_subscription`` says why not the others, or what stands for them.
    ``declares``: queues are declared and deleted over this protocol; ``no_declaring`` says what to do where not.
    """

    transactions: bool = True
    native_poison: bool = False
    poison_by_broker: bool = False
    poison_of_topics: bool = False
    poison_carries_cause: bool = False
    exact_counts: bool = False
    counts_prefetched: bool = True
    selectors: bool = False
    most_wildcards: int = 0
    browse: bool = False
    delayed_delivery: bool = False
    no_local: bool = False
    queue_patterns: bool = False
    composite_destinations: bool = False
    addresses: bool = False
    exclusive_consumers: bool = False
    temporaries_of_session: bool = False
    message_ids: bool = False
    duplicate_id_property: str | None = None
    hangs_up: str = ""
    body_kinds: frozenset[str] = frozenset(("text", "bytes", "none"))
    subscriptions: frozenset[str] = frozenset()
    no_subscription: str = ""
    declares: bool = False
    no_declaring: str = "declare it by the broker's own tools"


@dataclass(frozen=True, slots=True)
class ConnectionMetaData:
    """The broker at the other end, and what it can do.

    ``provider_name``, ``provider_version``: as the broker says them, or as it was recognised.
    ``protocol``: ``STOMP 1.2``, ``AMQP 1.0`` or ``vm``.
    ``capabilities``: what it can do over this protocol.
    ``jmsx_property_names``: the JMSX properties that its messages have (JMS 3.1, `ConnectionMetaData`).
    """

    provider_name: str
    provider_version: str
    protocol: str
    capabilities: Capabilities
    jmsx_property_names: tuple[str, ...] = ("JMSXDeliveryCount", "JMSXGroupID", "JMSXGroupSeq")
