"""The embedded broker: on the wire it is ActiveMQ Classic, less its oddities and the selectors."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from redelivery.transports.dialects import activemq
from redelivery.transports.dialects.dialect import Dialect

_STOMP: Final = replace(
    activemq.STOMP,
    capabilities=replace(activemq.STOMP.capabilities, selectors=False),
    commit_ends_parking=False,
    receipt_starves_patterns=False,
)

_AMQP: Final = replace(
    activemq.AMQP,
    capabilities=replace(activemq.AMQP.capabilities, selectors=False, poison_carries_cause=True),
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
