"""Qpid Broker-J, as 9.2 was found to behave: AMQP only."""

from __future__ import annotations

from typing import Final

from redelivery.model.capabilities import Capabilities
from redelivery.transports.dialects.amqp import AmqpDialect, DepthQuestion, EntityNode
from redelivery.transports.dialects.dialect import ALL_KINDS, Dialect

_MANAGEMENT: Final = "$management"
_QUEUE: Final = "org.apache.qpid.Queue"

AMQP: Final = AmqpDialect(
    capabilities=Capabilities(
        transactions=True,
        native_poison=False,  # `rejected` only counts
        exact_counts=True,
        counts_prefetched=True,
        selectors=True,
        most_wildcards=32,  # as Classic, whose evaluation it has
        browse=True,
        delayed_delivery=False,  # only on a queue with holdOnPublish; elsewhere it refuses the message
        no_local=True,
        message_ids=True,
        body_kinds=ALL_KINDS,
        subscriptions=frozenset(("durable", "shared", "shared durable")),
        declares=True,
    ),
    topic_prefix="amq.topic/",
    durable_no_local=False,  # it makes a new one each time, and what was kept is gone
    any_words="#",
    queue_capability=None,
    topic_capability=None,
    temporary_topic_capability=None,  # it would make a queue
    depth=DepthQuestion(
        address=_MANAGEMENT,
        properties=(
            ("type", _QUEUE),
            ("operation", "getStatistics"),
            ("index", "object-path"),
            ("key", "{queue}"),
        ),
        body={},
        success=("statusCode", 200),
        field="queueDepthMessages",
    ),
    queues=EntityNode(
        address=_MANAGEMENT,
        queue=_QUEUE,
        kind="qpid-type",
        limit="maximumDeliveryAttempts",
        letters="alternateBinding",
        destination="destination",
        needed="is in use",
    ),
)

DIALECT: Final = Dialect(
    name="qpid",
    system="qpid",
    provider="Qpid Broker-J",
    product="Apache Qpid Broker-J Core",
    virtual_host="{}",
    amqp=AMQP,
)
