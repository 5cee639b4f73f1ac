"""Messages of which some parts cannot be read, and the rows that columns give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from redelivery import Message, MessageFormatError, Queue
from redelivery.model.values import Body, Value
from redelivery.spark.rows.columns import Columns

HALF = "\ud800"  # half a surrogate pair: a str, but no UTF-8
SENT = datetime(2026, 11, 21, 18, 6, 29, 250_000, UTC)
PARTS = ["body", "properties", "destination", "correlation_id", "reply_to", "type", "timestamp", "message_id"]


@dataclass
class Source:
    """A received message of which some parts cannot be read."""

    content: Body = b"content"
    broken: frozenset[str] = frozenset()
    count: int = 1
    named: Mapping[str, Value] = field(default_factory=dict)
    headers: Mapping[str, object] = field(default_factory=dict)

    def body(self) -> Body:
        self._check("body")
        return self.content

    def properties(self) -> Mapping[str, Value]:
        self._check("properties")
        return self.named

    def header(self, name: str) -> object:
        defaults = {"priority": 4, "persistent": True, "destination": Queue("orders")}
        self._check(name)
        return self.headers.get(name, defaults.get(name))

    def wire_count(self) -> int:
        return self.count

    def _check(self, part: str) -> None:
        if part in self.broken:
            raise MessageFormatError(f"{part} cannot be read")


def received(source: Source) -> Message:
    return Message.received(source, 0, None)


def rows(columns: Columns) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for batch in columns.batches():
        batch.validate(full=True)
        assert batch.schema.equals(columns.schema, check_metadata=True)
        found += batch.to_pylist()
    return found


def row(message: Message, **options: Any) -> dict[str, Any]:
    columns = Columns(**options)
    columns.add(message)
    return rows(columns)[0]
