"""The embedded broker: on the wire it is ActiveMQ Classic, less its oddities."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from redelivery.model.capabilities import Capabilities
from redelivery.transports.dialects import activemq
from redelivery.transports.dialects.dialect import Dialect

NO_DECLARING: Final = (
    "it makes a queue at its first use: send to it, or consume it; what holds for it stands in the file of config="
)
_ALL: Final = frozenset(("durable", "shared", "shared durable"))
_STOMP: Final = replace(
    activemq.STOMP,
    capabilities=replace(
        activemq.STOMP.capabilities,
        most_wildcards=0,
        temporaries_of_session=False,
        hangs_up="",
        subscriptions=_ALL,
        no_subscription="",
        no_declaring=NO_DECLARING,
    ),
    sessions_per_wire=0,
    lone_ack_commits=False,  # it could: but a test that plans a fault at COMMIT means every commit
    commit_ends_parking=False,
    amqp_bodies=None,
    maps_lacking="",
    receipt_starves_patterns=False,
    shared_headers=(("shared", "true"),),  # which Classic has not
    volatile_headers=(("durable", "false"),),
    acks_browsers_itself=False,
)

_AMQP: Final = replace(
    activemq.AMQP,
    capabilities=replace(
        activemq.AMQP.capabilities,
        most_wildcards=0,
        poison_carries_cause=True,
        exact_counts=True,
        subscriptions=_ALL,
        no_subscription="",
        no_declaring=NO_DECLARING,
    ),
    most_credit=0,
    session_end_counts=False,
    finds_global=True,
    topic_waits_for_credit=False,
)

DIALECT: Final = Dialect(
    name="embedded",
    system="redelivery",
    provider="redelivery",
    server_prefix="redelivery/",
    product="redelivery",
    stomp=_STOMP,
    amqp=_AMQP,
)

# What the broker's STOMP server knows of ActiveMQ: the headers of a SUBSCRIBE (window, no_local, exclusive, name of the
# subscription), and what a frame that breaks the protocol is answered with.
HEADERS: Final = (
    _STOMP.prefetch_header or "",
    _STOMP.no_local_header or "",
    _STOMP.exclusive_header or "",
    _STOMP.subscription_header or "",
)
PENDING_LIMIT: Final = "activemq.maximumPendingMessageLimit"  # of a SUBSCRIBE: how many may wait for it, at most
DELAY: Final = _STOMP.delay_header or ""  # of a SEND
REPEATS: Final = activemq.REPEATS  # which it refuses
PROTOCOL_EXCEPTION: Final = "org.apache.activemq.transport.stomp.ProtocolException"
MEANING: Final = activemq.DIALECT.name  # of what it does where it obeys no other broker's file


def as_broker(other: Dialect) -> Dialect:
    """The embedded broker that obeys another broker's configuration file.

    It is written to as ever; what the sessions may expect of its acknowledgements is the other one's.
    """
    stomp, amqp = other.stomp, other.amqp
    known = stomp or amqp
    assert known is not None, "a broker has one of them"
    acks = stomp or _STOMP
    return replace(
        DIALECT,
        name=other.name,
        server_prefix=f"{DIALECT.product}-{other.name}/",
        product=f"{DIALECT.product}-{other.name}",
        stomp=replace(
            _STOMP,
            capabilities=_as(_STOMP.capabilities, known.capabilities),
            owned_headers=_STOMP.owned_headers | acks.owned_headers,  # its other clients write those
            ack_in_transaction=acks.ack_in_transaction,
            enlist_at_most=acks.enlist_at_most,
            needs_extra_subscription=acks.needs_extra_subscription,
            nack_is_poison=acks.nack_is_poison,
            parks=acks.parks,
            releases_as_new=acks.releases_as_new,
        ),
        amqp=replace(
            _AMQP,
            capabilities=_as(_AMQP.capabilities, (amqp or known).capabilities),
            rejected_is_poison=(amqp or _AMQP).rejected_is_poison,
        ),
    )


def _as(own: Capabilities, other: Capabilities) -> Capabilities:
    return replace(
        own,
        native_poison=other.native_poison,
        poison_by_broker=other.poison_by_broker,
        poison_of_topics=other.poison_of_topics,
        poison_carries_cause=other.native_poison and own.poison_carries_cause,
        counts_prefetched=other.counts_prefetched,
        addresses=other.addresses,
    )
