"""A broker that is not known is treated as the safest would have it.

A dead letter is a copy, confirmed before the original is acknowledged; there is no NACK, since on some brokers it
deletes; no ACK leaves before the COMMIT is confirmed, since on some it counts at once; and what some brokers quietly
ignore (selectors, browsing, delays) is refused.
"""

from __future__ import annotations

from typing import Final

from redelivery.model.capabilities import Capabilities
from redelivery.transports.dialects import activemq, artemis, hornetq, rabbitmq
from redelivery.transports.dialects.amqp import AmqpDialect
from redelivery.transports.dialects.dialect import ALL_KINDS, Dialect, StompDialect

# What any of them would obey when it comes in a SEND; it may be one of them under another name.
_OWNED: Final = activemq.STOMP.owned_headers | artemis.STOMP.owned_headers | rabbitmq.STOMP.owned_headers

_NO_SUBSCRIPTION: Final = "this broker is not known, and some say that they have them and keep nothing"

STOMP: Final = StompDialect(
    capabilities=Capabilities(transactions=True, native_poison=False, no_subscription=_NO_SUBSCRIPTION),
    owned_headers=_OWNED,
    owned_prefixes=artemis.STOMP.owned_prefixes + hornetq.STOMP.owned_prefixes,
    requests=activemq.STOMP.requests | artemis.STOMP.requests,
    says_persistent=False,
)

AMQP: Final = AmqpDialect(
    capabilities=Capabilities(
        transactions=True,
        exact_counts=True,
        message_ids=True,
        body_kinds=ALL_KINDS,
        no_subscription=_NO_SUBSCRIPTION,
    ),
    drain=False,
    modified=False,
    session_per_link=True,
)

DIALECT: Final = Dialect(
    name="unknown",
    provider="unknown",
    virtual_host="{}",
    stomp=STOMP,
    amqp=AMQP,
)
