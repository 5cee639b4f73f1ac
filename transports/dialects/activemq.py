"""ActiveMQ Classic, as 5.18 was found to behave."""

from __future__ import annotations

from typing import Final

from redelivery.model.capabilities import Capabilities
from redelivery.transports.dialects.dialect import STOMP_HEADERS, Dialect, StompDialect

# JMS headers, and what the broker adds. `JMSXGroupID` and `JMSXGroupSeq` do not arrive at all.
_OWNED: Final = STOMP_HEADERS | {
    "AMQ_SCHEDULED_DELAY",
    "JMSXDeliveryCount",
    "JMSXGroupID",
    "JMSXGroupSeq",
    "browser",
    "correlation-id",
    "expires",
    "persistent",
    "priority",
    "reply-to",
    "scheduledJobId",
    "timestamp",
    "transformation",
    "transformation-error",
    "type",
}

STOMP: Final = StompDialect(
    capabilities=Capabilities(
        transactions=True,
        native_poison=True,
        poison_carries_cause=False,  # NACK has no place for it
        exact_counts=False,  # only `redelivered:true`
        counts_prefetched=True,
        selectors=True,
        delayed_delivery=True,  # needs schedulerSupport="true" at the broker
        no_local=True,
        body_kinds=frozenset(("text", "bytes", "map", "none")),
    ),
    owned_headers=_OWNED,
    prefetch_header="activemq.prefetchSize",
    no_local_header="activemq.noLocal",
    ack_in_transaction=True,
    enlist_at_most=100,  # a backlog is paged by 200, and then sleeps until an ACK comes
    nack_is_poison=True,
    parks=True,
    commit_ends_parking=True,  # it keeps one list of transacted messages a subscription, not one a transaction
    receipt_starves_patterns=True,  # attached with prefetch 0, then opened by a command that wakes no other queue
    receipt_in_transaction=True,
    error_names_receipt=True,
    length_is_bytes=True,
    map_transformation="jms-map-json",
    delay_header="AMQ_SCHEDULED_DELAY",
)

DIALECT: Final = Dialect(name="activemq", provider="ActiveMQ", server_prefix="ActiveMQ/", stomp=STOMP)
