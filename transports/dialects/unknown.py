"""A broker that is not known is treated as the safest would have it.

A dead letter is a copy, confirmed before the original is acknowledged; there is no NACK, since on some brokers it
deletes; no ACK leaves before the COMMIT is confirmed, since on some it counts at once; and what some brokers quietly
ignore (selectors, browsing, delays) is refused.
"""

from __future__ import annotations

from typing import Final

from redelivery.model.capabilities import Capabilities
from redelivery.transports.dialects.activemq import STOMP as _ACTIVEMQ
from redelivery.transports.dialects.dialect import Dialect, StompDialect

DIALECT: Final = Dialect(
    name="unknown",
    provider="unknown",
    server_prefix="",
    stomp=StompDialect(
        capabilities=Capabilities(transactions=True, native_poison=False),
        owned_headers=_ACTIVEMQ.owned_headers | {"expiration"},
    ),
)
