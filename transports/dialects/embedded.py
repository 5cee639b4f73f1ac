"""The embedded broker: on the wire it is ActiveMQ Classic, less its oddities and the selectors."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from redelivery.transports.dialects import activemq
from redelivery.transports.dialects.dialect import Dialect

_STOMP: Final = replace(
    activemq.STOMP,
    capabilities=replace(activemq.STOMP.capabilities, selectors=False),
    sessions_per_wire=0,
    lone_ack_commits=False,  # it could: but a test that plans a fault at COMMIT means every commit
    commit_ends_parking=False,
    amqp_bodies=None,
    max_header=0,
    max_headers=0,
    receipt_starves_patterns=False,
)

_AMQP: Final = replace(
    activemq.AMQP,
    capabilities=replace(activemq.AMQP.capabilities, selectors=False, poison_carries_cause=True, exact_counts=True),
    most_credit=0,
    session_end_counts=False,
    topic_waits_for_credit=False,
)

DIALECT: Final = Dialect(
    name="embedded",
    provider="redelivery",
    server_prefix="redelivery/",
    product="redelivery",
    stomp=_STOMP,
    amqp=_AMQP,
)
