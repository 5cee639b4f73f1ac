"""ActiveMQ Classic, as 5.18 was found to behave."""

from __future__ import annotations

from typing import Final

from redelivery.model.capabilities import Capabilities
from redelivery.transports.dialects.amqp import AmqpDialect
from redelivery.transports.dialects.dialect import (
    ALL_KINDS,
    JMS_HEADERS,
    STOMP_HEADERS,
    Dialect,
    StompDialect,
    StompTemporaries,
)

# JMS headers, and what the broker adds. `JMSXGroupID` and `JMSXGroupSeq` do not arrive at all.
_OWNED: Final = (
    STOMP_HEADERS
    | JMS_HEADERS
    | {"AMQ_SCHEDULED_DELAY", "browser", "scheduledJobId", "transformation", "transformation-error"}
)
REPEATS: Final = ("AMQ_SCHEDULED_CRON", "AMQ_SCHEDULED_PERIOD", "AMQ_SCHEDULED_REPEAT")  # of SEND: deliver it often

_NO_SHARED: Final = (
    "consumers share what is sent to a virtual topic: send to topic://VirtualTopic.<topic>, and consume "
    "queue://Consumer.<name>.VirtualTopic.<topic>"
)
_NO_DECLARING: Final = (
    "it makes a queue at its first use: send to it, or consume it; what holds for it is the policyEntry of its "
    "configuration (activemq.xml)"
)

STOMP: Final = StompDialect(
    capabilities=Capabilities(
        transactions=True,
        native_poison=True,
        poison_by_broker=True,
        poison_carries_cause=False,  # NACK has no place for it
        exact_counts=False,  # only `redelivered:true`
        counts_prefetched=True,
        selectors=True,
        most_wildcards=32,  # it makes a regular expression of the pattern, which backtracks: 2,000 took hours
        browse=True,
        delayed_delivery=True,  # needs schedulerSupport="true" at the broker
        no_local=True,
        queue_patterns=True,
        composite_destinations=True,
        exclusive_consumers=True,
        temporaries_of_session=True,  # from 6.3 on: each session has a socket, and another one's is another connection
        hangs_up="it does so where it cannot write a message over STOMP, above all a Java ObjectMessage: take that off "
        "the queue over amqp://, or have it sent as text or bytes",
        body_kinds=frozenset(("text", "bytes", "map", "none")),
        subscriptions=frozenset(("durable",)),
        no_subscription=_NO_SHARED,
        no_declaring=_NO_DECLARING,
    ),
    temporaries=StompTemporaries(
        queue="/remote-temp-queue/",
        topic="/remote-temp-topic/",
        made_queue="/temp-queue/",
        made_topic="/temp-topic/",
        named_by_session=True,
    ),
    sessions_per_wire=1,  # a COMMIT forgets what the other transactions of the socket have acknowledged
    owned_headers=_OWNED,
    requests=frozenset(("AMQ_SCHEDULED_DELAY",)),
    prefetch_header="activemq.prefetchSize",
    no_local_header="activemq.noLocal",
    exclusive_header="activemq.exclusive",
    subscription_header="activemq.subscriptionName",
    acks_browsers_itself=True,  # what was sent over AMQP could not be browsed else (`amqp_bodies`)
    ack_in_transaction=True,
    enlist_at_most=100,  # a backlog is paged by 200, and then sleeps until an ACK comes
    lone_ack_commits=True,  # and no journal entry for BEGIN and COMMIT
    nack_is_poison=True,
    parks=True,
    commit_ends_parking=True,  # one list of transacted messages a subscription, not one a transaction
    receipt_starves_patterns=True,  # attached with prefetch 0, then opened by a command that wakes no other queue
    receipt_in_transaction=True,
    error_names_receipt=True,
    length_is_bytes=True,
    amqp_bodies="ActiveMQ Classic closes the connection when a message that was sent over AMQP "
    "is acknowledged over STOMP",
    max_header=10 << 10,
    max_headers=1000,
    map_transformation="jms-map-json",
    maps_lacking="ActiveMQ Classic closes the connection at consumers and maps over STOMP where it was put together "
    "without XStream (its log says NoClassDefFoundError: com/thoughtworks/xstream): give it the jars xstream, "
    "mxparser, xmlpull and jettison, which its own distribution has in lib, or use amqp://",
    delay_header="AMQ_SCHEDULED_DELAY",
)

AMQP: Final = AmqpDialect(
    capabilities=Capabilities(
        transactions=True,
        native_poison=True,
        poison_by_broker=True,
        exact_counts=False,  # the end of a session charges what nobody saw, so that 2 may stand for more
        counts_prefetched=True,
        selectors=True,
        most_wildcards=32,  # it makes a regular expression of the pattern, which backtracks: 2,000 took hours
        browse=True,
        delayed_delivery=True,
        no_local=True,
        queue_patterns=True,
        composite_destinations=True,
        exclusive_consumers=True,
        message_ids=True,
        body_kinds=ALL_KINDS,
        subscriptions=frozenset(("durable",)),
        no_subscription=_NO_SHARED,  # it echoes the capability `shared`, and gives each consumer all
        no_declaring=_NO_DECLARING,
    ),
    topic_prefix="topic://",  # it ignores capabilities: an address is a queue's
    topic_waits_for_credit=True,
    most_credit=200,  # a backlog is paged by 200, and then sleeps until credit or an outcome comes
    rejected_is_poison=True,
    session_end_counts=True,
    exclusive_option="?consumer.exclusive=true",
    delay_annotation="x-opt-delivery-delay",
)

DIALECT: Final = Dialect(
    name="activemq",
    system="activemq",
    provider="ActiveMQ",
    server_prefix="ActiveMQ/",
    product="ActiveMQ",
    stomp=STOMP,
    amqp=AMQP,
    queue_of_topic="Consumer.<name>.VirtualTopic.<topic>",
)
