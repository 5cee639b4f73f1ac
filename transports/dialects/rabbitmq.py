"""RabbitMQ, as 3.10, 4.0 and 4.3 were found to behave; the AMQP 1.0 of 3 is the plug-in rabbitmq_amqp1_0."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from redelivery.model.capabilities import Capabilities
from redelivery.transports.dialects.amqp import AmqpDialect, ReturnLimits, Spellings
from redelivery.transports.dialects.dialect import (
    ALL_KINDS,
    JMS_HEADERS,
    STOMP_HEADERS,
    Dialect,
    StompDialect,
    StompTemporaries,
)

_NO_SUBSCRIPTION: Final = "bind a queue of your own to the exchange amq.topic, and consume that"
_NO_DECLARING: Final = (
    'it does so over HTTP: connect(…, management="http://user:password@host:15672"), where its management plug-in is'
)
_OTHER_QUEUE: Final = "inequivalent arg"
OLD_PROTOCOL: Final = "is the plug-in rabbitmq_amqp1_0 enabled?"  # where a port speaks AMQP 0-9-1 only

_LIMITS: Final = ReturnLimits(
    kind="quorum",
    limit="x-delivery-limit",
    exchange="x-dead-letter-exchange",
    key="x-dead-letter-routing-key",
    usual=20,  # from 4.0 on
    said=("current is 'quorum'", "'x-dead-letter-exchange'"),  # the second is said first
    exchange_said="'x-dead-letter-exchange' .* current is the value '([^']*)'",
)
_SPELLINGS: Final = Spellings(
    queues=("/amq/queue/", "/queues/"), exchanges=("/exchange/", "/exchanges/"), encoded=("/queues/", "/exchanges/")
)
_FULL: Final = "a queue that is full and rejects what is published (reject-publish)"
_FEW: Final = 10  # messages: a session that ends charges so many at most; with 10 the broker sends a third as fast

STOMP: Final = StompDialect(
    capabilities=Capabilities(
        transactions=True,  # emulated: COMMIT replays what was buffered, and its answer says nothing of the sends
        native_poison=False,  # NACK dead-letters only where there is a dead-letter exchange, and deletes elsewhere
        poison_by_broker=True,
        poison_of_topics=True,
        exact_counts=False,
        counts_prefetched=True,
        message_ids=True,
        no_subscription=_NO_SUBSCRIPTION,
        no_declaring=_NO_DECLARING,
    ),
    existing_queue_prefix="/amq/queue/",  # where there is none, what is sent is confirmed and lost
    exchange_prefix="/exchange/",
    spellings=_SPELLINGS,
    makes_queues=False,
    impossible=(("x-message-ttl", "-1"),),
    absent_refusal="invalid arg 'x-message-ttl'",
    other_queue_refusal=_OTHER_QUEUE,
    percent_encoded=True,  # one-sided, so that a name with "%2F" in it looks like one with a slash
    any_words="#",
    virtual_host="/",
    virtual_host_refused="virtual host",
    temporaries=StompTemporaries(
        queue="/reply-queue/",  # which neither SEND nor SUBSCRIBE makes
        made_queue="/queue/",
        headers=(("durable", "false"), ("exclusive", "true"), ("auto-delete", "false")),
    ),
    no_temporaries="a topic of it is a routing key, which every connection can bind to",
    owned_headers=STOMP_HEADERS
    | JMS_HEADERS
    | {"amqp-message-id", "expiration", "x-acquired-count", "x-death", "x-delivery-count"},
    owned_prefixes=("x-first-death-", "x-last-death-"),
    origin_prefix="x-first-death-",
    opaque_bodies=True,
    sections_type="amqp-1.0",  # a body with it that is something else ends the session of who consumes it over AMQP
    message_id_header="amqp-message-id",  # the header `message-id` changes with each delivery
    makes_message_ids=True,
    binary_headers=b"x-amqp-1.0-",  # what came over AMQP 1.0
    timestamp_unit=1000,
    expiration_header="expiration",
    stream="stream",
    count_header="x-delivery-count",  # of quorum queues
    prefetch_header="prefetch-count",
    needs_extra_subscription=True,
    unsubscribe_keeps="/topic/redelivery.given-back",
    nack_is_poison=True,
    nack_headers=(("requeue", "false"),),
    commit_confirms_sends=False,
    closes_silently=f"{_FULL}, or a frame larger than it takes",
)

STOMP_4_3: Final = replace(STOMP, max_frame=4 << 20, frame_setting="stomp.max_frame_size", limits=_LIMITS)
STOMP_4: Final = replace(STOMP_4_3, counted_prefetch=_FEW)

AMQP: Final = AmqpDialect(
    capabilities=Capabilities(
        transactions=False,  # a coordinator is refused
        native_poison=False,  # without a dead-letter exchange it deletes what is rejected
        poison_by_broker=True,
        poison_of_topics=True,
        exact_counts=False,  # quorum queues count, classic queues only say whether it was delivered before
        counts_prefetched=True,
        message_ids=True,
        body_kinds=ALL_KINDS,
        no_subscription=_NO_SUBSCRIPTION,  # its AMQP 1.0 echoes all that is asked for, and keeps and shares nothing
        no_declaring=_NO_DECLARING,
    ),
    queue_prefix="/queue/",
    topic_prefix="/topic/",
    existing_queue_prefix="/amq/queue/",  # the same queue, but not made; where there is none, what is sent is lost
    exchange_prefix="/exchange/",
    spellings=_SPELLINGS,
    makes_queues=False,
    other_queue_refusal=_OTHER_QUEUE,
    any_words="#",
    slash="%2F",  # one-sided: a name with "%2F" in it is another one's with a slash
    durable_nodes=True,
    queue_capability=None,
    topic_capability=None,
    temporary_queue_capability=None,
    temporary_topic_capability=None,
    rejected_is_poison=True,
    released_is_unrouted=True,
    modified=False,  # ends the session
    drain=False,  # ends the session
    redelivered_by_first_acquirer=True,
    session_per_link=True,
    end_drops_answers=True,  # it stops the session's writer, which may have much to write
)

AMQP_4: Final = AmqpDialect(
    capabilities=replace(AMQP.capabilities, declares=True, no_declaring=""),
    queue_prefix="/queues/",
    topic_prefix="/exchanges/amq.topic/",
    exchange_prefix="/exchanges/",
    spellings=_SPELLINGS,
    makes_queues=False,
    any_words="#",
    queue_capability=None,
    topic_capability=None,
    temporary_queue_capability=None,
    temporary_topic_capability=None,
    percent_encoded=True,
    management=True,
    rejected_is_poison=True,
    bare_rejection=_FULL,  # of 4.0; 4.3 says it
    released_is_unrouted=True,
    redelivered_by_first_acquirer=True,
    count_annotation="x-delivery-count",  # of quorum queues; `header.delivery-count` of classic ones from 4.3 on
    limits=_LIMITS,
    stream="stream",
    counted_prefetch=_FEW,
    session_per_link=True,  # a refused link ends its session in 4.0
    keeps_sessions=True,
    end_waits_for_senders=True,
)

AMQP_4_3: Final = replace(AMQP_4, counted_prefetch=0)  # what is released counts no more

DIALECT: Final = Dialect(
    name="rabbitmq",
    system="rabbitmq",
    provider="RabbitMQ",
    server_prefix="RabbitMQ/",
    product="RabbitMQ",
    stomp=STOMP,
    amqp=AMQP,
    stomp_since=(((4, 3), STOMP_4_3), ((4,), STOMP_4)),
    amqp_since=(((4, 3), AMQP_4_3), ((4,), AMQP_4)),
    virtual_host="vhost:{}",
    counted_properties=frozenset(("x-acquired-count", "x-delivery-count")),  # of quorum queues
)


def closed_after_login(user: str | None, vhost: str | None) -> str:
    """Explain what version 4 says in no words."""
    host = "its default virtual host, as a rule '/'" if vhost is None else f"its virtual host {vhost!r}"
    return f"RabbitMQ does so where user {user!r} has no permission for {host} (set_permissions)"
