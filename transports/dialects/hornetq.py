"""HornetQ, as 2.4.9 was found to behave: STOMP only. Queues must be there; it makes none when they are named."""

from __future__ import annotations

from typing import Final

from redelivery.model.capabilities import Capabilities
from redelivery.transports.dialects.amqp import AmqpDialect
from redelivery.transports.dialects.dialect import JMS_HEADERS, STOMP_HEADERS, Dialect, StompDialect

STOMP: Final = StompDialect(
    capabilities=Capabilities(
        transactions=True,  # emulated: ACK counts at once, so it waits for the COMMIT of the sends
        native_poison=False,  # NACK is ACK: it deletes
        exact_counts=False,  # only `redelivered`
        counts_prefetched=True,
        selectors=True,  # a property of STOMP's is a string there: a number matches none
        delayed_delivery=True,
        no_local=True,
        addresses=True,
        duplicate_id_property="_HQ_DUPL_ID",
        no_subscription="over STOMP nothing can remove a durable subscription, and it would be filled for ever",
        no_declaring="it makes no queue that is not configured: add it to hornetq-jms.xml",
    ),
    queue_prefix="jms.queue.",
    topic_prefix="jms.topic.",
    any_words="#",
    splits_qualified=True,
    no_temporaries="it makes no queue that is not configured",
    owned_headers=STOMP_HEADERS | JMS_HEADERS,
    owned_prefixes=("_HQ_", "__HQ_"),
    origin_prefix="_HQ_ORIG_",
    sessions_per_wire=1,  # it drops what it dispatches to a further subscription of a socket before it knows that
    max_body=100_000,
    group_header="_HQ_GROUP_ID",
    says_persistent=False,
    delay_header="_HQ_SCHED_DELIVERY",
    delay_is_time=True,
    prefetch_unit=1024,
    fixed_window=10 << 10,  # the acceptor's stomp-consumer-credits
    default_prefetch=10,
    needs_extra_subscription=True,
    no_local_header="no-local",
    selector_names=(
        ("JMSPriority", "HQPriority"),
        ("JMSTimestamp", "HQTimestamp"),
    ),
    acks_topics_itself=True,
    ack_key=b"\nmessage-id:",  # a producer's own header `ack` comes before the broker's
    receipt_in_transaction=True,
    releases_as_new=True,
    error_names_receipt=True,
    silence_limit=60.0,
)

AMQP: Final = AmqpDialect(
    capabilities=Capabilities(transactions=False),
    unsupported="HornetQ's AMQP settles nothing in a transaction and delivers what was consumed again; "
    "use its STOMP, stomp://host:61613",
)

DIALECT: Final = Dialect(
    name="hornetq",
    system="hornetq",
    provider="HornetQ",
    server_prefix="HornetQ/",
    anonymous=True,
    stomp=STOMP,
    amqp=AMQP,
)
