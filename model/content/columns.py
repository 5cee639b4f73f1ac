"""All that a table has of a message, read at once: ten headers looked for one by one take longer than all together."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, TypeAlias

from redelivery.model.destinations import Destination
from redelivery.model.messages import HEADERS
from redelivery.model.values import Value

NAMES: Final = tuple(name for name in HEADERS if name != "delivery_time")
MessageColumns: TypeAlias = tuple[
    str | None,
    Destination | None,
    Destination | None,
    str | bytes | None,
    str | None,
    datetime | int | None,
    datetime | int | None,
    int,
    bool,
    str | None,
    int | None,
    Mapping[str, Value],
]
"""The headers `NAMES`, a time also as epoch milliseconds (0: it is not set), and the properties."""


def columns_of(source: Any) -> MessageColumns:
    """The columns of a `redelivery.model.messages.MessageSource`, read one by one where it has no method ``columns``.

    Raises:
        MessageFormatError: one of them cannot be read.
    """
    whole = getattr(source, "columns", None)
    found: MessageColumns = (*map(source.header, NAMES), source.properties()) if whole is None else whole()
    return found
