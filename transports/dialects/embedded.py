"""The embedded broker's STOMP server: on the wire it is ActiveMQ Classic, less two oddities and the selectors."""

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

DIALECT: Final = Dialect(name="embedded", provider="redelivery", server_prefix="redelivery/", stomp=_STOMP)
