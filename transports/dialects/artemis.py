"""ActiveMQ Artemis, as 2.44 was found to behave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from redelivery.model.capabilities import Capabilities
from redelivery.transports.dialects.amqp import AmqpDialect, DepthQuestion, OperationsNode
from redelivery.transports.dialects.dialect import (
    ALL_KINDS,
    JMS_HEADERS,
    STOMP_HEADERS,
    AddressQuestion,
    Dialect,
    StompDialect,
)

# What it writes of where a dead letter comes from: in HornetQ's way too, and over AMQP in annotations (its
# toAnnotationName); None: not there.
ORIGINAL_ADDRESS: Final = frozenset(("_AMQ_ORIG_ADDRESS", "_HQ_ORIG_ADDRESS"))
DEAD_LETTER_NOTES: Final[Mapping[str, str | None]] = {
    "_AMQ_ORIG_ADDRESS": "x-opt-ORIG-ADDRESS",
    "_AMQ_ORIG_QUEUE": "x-opt-ORIG-QUEUE",
    "_AMQ_ORIG_MESSAGE_ID": "x-opt-ORIG-MESSAGE-ID",
    "_AMQ_ACTUAL_EXPIRY": "x-opt-ACTUAL-EXPIRY",
    "_AMQ_ORIG_ROUTING_TYPE": None,
}

_MANAGEMENT: Final = "activemq.management"

STOMP: Final = StompDialect(
    capabilities=Capabilities(
        transactions=True,  # emulated: ACK counts at once, so it waits for the COMMIT of the sends
        native_poison=False,  # NACK is ACK: it deletes
        exact_counts=False,  # only `redelivered`
        counts_prefetched=True,
        selectors=True,
        most_wildcards=32,  # as Classic, whose evaluation it has: 9 of them took longer than 6 s
        delayed_delivery=True,
        no_local=True,
        addresses=True,
        duplicate_id_property="_AMQ_DUPL_ID",
        subscriptions=frozenset(("durable", "shared durable")),
        no_subscription="the queue of one may stay, and be filled, when its last consumer has left: "
        "use shared_durable_consumer(…) and unsubscribe(…), or amqp://",
        no_declaring="connect by amqp://, over which it is asked to",
    ),
    queue_prefix="",
    topic_prefix="",
    any_words="#",
    send_to_queue=(("destination-type", "ANYCAST"),),  # without it an address is a topic
    send_to_topic=(("destination-type", "MULTICAST"),),
    consume_queue=(("subscription-type", "ANYCAST"),),
    consume_topic=(("subscription-type", "MULTICAST"),),
    addresses=AddressQuestion(
        node=_MANAGEMENT,
        answers="redelivery.answers",
        reply_to="topic://redelivery.answers",
        consume=(("subscription-type", "MULTICAST"),),
        headers=(("_AMQ_ResourceName", "broker"),),
        operation="_AMQ_OperationName",
        succeeded="_AMQ_OperationSucceeded",
        # A MULTICAST queue that is named whole heeds no selector; a window of 0 lets messages through.
        takes_nothing=(("selector", "1=0"), ("ack", "client"), ("consumer-window-size", "-2")),
        unnamed="AMQ229216",
        attach_failed="AMQ339016",
    ),
    reply_to_is_uri=True,
    no_temporaries="it would be an ordinary queue, which every connection can consume and which stays; use amqp://",
    owned_headers=STOMP_HEADERS
    | JMS_HEADERS
    | {"AMQ_SCHEDULED_DELAY", "AMQ_SCHEDULED_TIME", "JMSXUserID", "NATIVE_MESSAGE_ID"}
    | {"destination-type", "ingress-timestamp", "subscription-type"},
    requests=frozenset(("AMQ_SCHEDULED_DELAY",)),
    owned_prefixes=("_AMQ_", "__AMQ_", "JMS_AMQP_"),
    origin_prefix="_AMQ_ORIG_",
    message_id_header="NATIVE_MESSAGE_ID",  # of a message that came over AMQP
    message_id_separator=",",  # before it stands the consumer
    longest_text=100_000,  # seen: from 102,400 on, where it has no journal
    kind_header="JMS_AMQP_MA_x-opt-jms-msg-type",
    group_header="_AMQ_GROUP_ID",
    group_sequence_header="_AMQ_GROUP_SEQUENCE",
    delay_header="AMQ_SCHEDULED_DELAY",
    prefetch_header="consumer-window-size",
    prefetch_unit=1024,
    unlimited_window="-1",
    # As its own client for Java. A batch that needs a second subscription is better avoided: when a connection with
    # several drops, the broker may lose sight of a message of each, until it is started again.
    default_window=1 << 20,
    needs_extra_subscription=True,
    no_local_header="no-local",
    subscription_header="durable-subscription-name",
    shared_needs_client_id=True,  # a queue that its address names may be removed when it is empty
    subscription_changes=False,
    selector_prefix="convert_string_expressions:",  # or a number in it matches no property of STOMP's, a string
    selector_names=(
        ("JMSPriority", "AMQPriority"),
        ("JMSTimestamp", "AMQTimestamp"),
        ("JMSXGroupID", "AMQGroupID"),
    ),
    ack_key=b"\nmessage-id:",  # a producer's own header `ack` comes before the broker's
    receipt_in_transaction=True,
    releases_as_new=True,
    error_closes=True,
    silence_limit=60.0,
)

AMQP: Final = AmqpDialect(
    capabilities=Capabilities(
        transactions=True,
        native_poison=False,  # without a dead-letter address it deletes what is rejected
        poison_by_broker=True,
        poison_of_topics=True,
        exact_counts=True,
        counts_prefetched=True,  # where the socket was reset
        selectors=True,
        most_wildcards=32,  # as Classic, whose evaluation it has: 9 of them took longer than 6 s
        browse=True,
        delayed_delivery=True,
        no_local=True,
        addresses=True,
        message_ids=True,
        duplicate_id_property="_AMQ_DUPL_ID",
        body_kinds=ALL_KINDS,
        subscriptions=frozenset(("durable", "shared", "shared durable")),
        declares=True,
    ),
    any_words="#",
    rejected_is_poison=True,
    expires_released=True,
    drain_overlaps=True,
    end_waits_for_senders=True,  # up to 2 s, for every second session of a connection
    origin_prefix="x-opt-ORIG-",
    delay_annotation="x-opt-delivery-delay",
    depth=DepthQuestion(  # needs the permissions `send` and `manage` there
        address=_MANAGEMENT,
        properties=(("_AMQ_ResourceName", "queue.{queue}"), ("_AMQ_Attribute", "messageCount")),
        body="[]",
        path_separator="::",
        success=("_AMQ_OperationSucceeded", True),
    ),
    queues=OperationsNode(  # needs the permissions `send` and `manage` there
        address=_MANAGEMENT,
        properties=(("_AMQ_ResourceName", "broker"),),
        operation="_AMQ_OperationName",
        succeeded="_AMQ_OperationSucceeded",
        exists="AMQ229019:",
        forbidden="does not have permission",
    ),
    duplicate_refusal="Duplicate message detected",
)

DIALECT: Final = Dialect(
    name="artemis",
    system="activemq",
    provider="ActiveMQ Artemis",
    server_prefix="ActiveMQ-Artemis/",
    product="apache-activemq-artemis",
    stomp=STOMP,
    amqp=AMQP,
    queue_of_topic="<address>::<queue>",
)
