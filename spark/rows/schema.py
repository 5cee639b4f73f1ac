"""The columns of a row, as Spark names their types and as Arrow does; both say the same.

| column | meaning |
|---|---|
| message_id | JMSMessageID; null where the broker does not report it |
| body | text as UTF-8, bytes as they are, map and stream as JSON (see `redelivery.spark.rows.bodies`), null for none |
| body_type | ``text``, ``bytes``, ``map``, ``stream`` or ``none`` |
| destination, reply_to | ``queue://name``, ``topic://name``, ``temp-queue://name`` or ``temp-topic://name`` |
| correlation_id | JMSCorrelationID; bytes are ``ID:AMQP_BINARY:`` and hexadecimal digits, as in the AMQP JMS mapping |
| type | JMSType |
| timestamp, expiration | when it was sent, when it expires; null where not set |
| priority | 0 to 9 |
| persistent, redelivered | JMSDeliveryMode, JMSRedelivered |
| delivery_count | JMSXDeliveryCount, a lower bound where the wire carries only a flag (STOMP); null where unknown |
| properties | the application's and the broker's, with JMSXGroupID and JMSXGroupSeq |
| _error | with `badMessages=permissive` only: why the message could not be a row, else null |
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    IntegerType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
    VariantType,
)

from redelivery.spark.rows.column_names import COLUMNS, ERROR, PROPERTIES

_VARIANT: Final[Any] = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata={b"variant": b"true"}),  # how Spark knows a variant
    ]
)
_TIME: Final[Any] = pa.timestamp("us", tz="UTC")
# Spark's type and Arrow's of each column; that of the properties depends on `propertiesType`.
_COLUMNS: Final[dict[str, tuple[Any, Any]]] = {
    "message_id": (StringType, pa.string()),
    "body": (BinaryType, pa.binary()),
    "body_type": (StringType, pa.string()),
    "destination": (StringType, pa.string()),
    "correlation_id": (StringType, pa.string()),
    "reply_to": (StringType, pa.string()),
    "type": (StringType, pa.string()),
    "timestamp": (TimestampType, _TIME),
    "expiration": (TimestampType, _TIME),
    "priority": (IntegerType, pa.int32()),
    "persistent": (BooleanType, pa.bool_()),
    "redelivered": (BooleanType, pa.bool_()),
    "delivery_count": (IntegerType, pa.int32()),
}


def struct_type(properties_type: str = "string", errors: bool = False, columns: Sequence[str] = COLUMNS) -> Any:
    """Spark's schema of the wanted ``columns``, in their order. ``properties_type``: ``string`` or ``variant``.

    ``errors``: with the column ``_error``.
    """
    value = VariantType() if properties_type == "variant" else StringType()
    types = {name: kind() for name, (kind, _) in _COLUMNS.items()}
    types |= {PROPERTIES: MapType(StringType(), value), ERROR: StringType()}
    return StructType([StructField(name, types[name]) for name in shown(columns, errors)])


def shown(columns: Sequence[str], errors: bool) -> list[str]:
    """The wanted columns, and ``_error`` where rows have it."""
    return [*columns, ERROR] if errors else [*columns]


def arrow_schema(properties_type: str = "string", errors: bool = False) -> Any:
    """The same for Arrow, exactly as Spark derives it: Spark refuses a RecordBatch that differs in anything.

    Built here, not by Spark's own function, which is private and changes its arguments from version to version.
    """
    columns = [pa.field(name, kind) for name, (_, kind) in _COLUMNS.items()]
    columns.append(pa.field(PROPERTIES, properties_arrow(properties_type)))
    if errors:
        columns.append(pa.field(ERROR, pa.string()))
    return pa.schema(columns)


def properties_arrow(properties_type: str) -> Any:
    """Arrow's type of the column ``properties``."""
    value = _VARIANT if properties_type == "variant" else pa.string()
    return pa.map_(pa.field("key", pa.string(), nullable=False), pa.field("value", value))
