"""The names of the columns, for what must not import Spark; `redelivery.spark.rows.schema` says what each is."""

from __future__ import annotations

from typing import Final

PROPERTIES: Final = "properties"
ERROR: Final = "_error"
COLUMNS: Final = (
    "message_id",
    "body",
    "body_type",
    "destination",
    "correlation_id",
    "reply_to",
    "type",
    "timestamp",
    "expiration",
    "priority",
    "persistent",
    "redelivered",
    "delivery_count",
    PROPERTIES,
)
"""In the order that rows have them; `ERROR` comes behind them."""
