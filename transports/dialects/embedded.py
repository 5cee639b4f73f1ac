"""The embedded broker's STOMP server: on the wire it behaves as ActiveMQ Classic does."""

from __future__ import annotations

from typing import Final

from redelivery.transports.dialects import activemq
from redelivery.transports.dialects.dialect import Dialect

DIALECT: Final = Dialect(name="embedded", provider="redelivery", server_prefix="redelivery/", stomp=activemq.STOMP)
